"""An exact test of chosen sets against random draws of the same kind, which stops early if it can.

If a chosen set is like a random draw, it is the worst of 161 sets with a probability of 1 in 161, whatever the
distribution of the changes. The measure of badness, over parts that differ in size and spread, is the same for all
runs: it affects the power of the test, but not its error rate.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, repeat
from math import ceil

import numpy as np
from jaxtyping import Float

from headscope.analyse import student
from headscope.analyse.uncertainty import ALPHA

SPARED = (2, 2, 1, 1)
"""The largest number of draws as bad as the set with which the test goes on, after each of the first stages.

After later stages it is 0.
"""


@dataclass(frozen=True)
class Parts:
    """The quantities that are measured for each draw, such as the accuracy in each phenomenon.

    Attributes:
        floor: The smallest standard deviation of each part that is assumed when draws are compared.
        alike: For each part, the number of parts of the same kind, such as twelve phenomena.
    """

    floor: Float[np.ndarray, " part"]
    alike: Float[np.ndarray, " part"]


def count_needed_runs(tests: int) -> int:
    """Return the number of draws that are needed for a p-value below .05 after correction for `tests` tests.

    The correction is Bonferroni's.
    """
    return ceil(round(tests / ALPHA, 6))


def draw_until_decided(
    draw: Callable[[Sequence[int], int, int], Mapping[int, Float[np.ndarray, "run part"]]],
    parts: Parts,
    possible: Sequence[int],
    least: int,
) -> Float[np.ndarray, "test part"]:
    """Return a p-value for each chosen set and each part, corrected for all sets and for all parts.

    Each set first has `least` draws, then twice as many, and so on, until too many draws are as bad as the set, or the
    number of draws is sufficient. A set is significant only if no draw is as bad at the end. So stopping early makes no
    set significant, and a p-value of at most p has a probability of at most p wherever the draws stop (as in Besag and
    Clifford 1991).

    Args:
        draw: A function. Its arguments are the numbers of the sets that go on, the number of draws that each set has,
            and the number of draws that each set is to have. For each set it returns the harm of the set, followed by
            the harm of all its draws. A set has no more draws than are possible.
        parts: The parts of the harm.
        possible: The number of different draws that are possible for each set. Fewer than `count_needed_runs` decide
            nothing: NaN.
        least: The number of draws of each set in the first stage, or all draws if fewer are possible.
    """
    tests, needed = len(possible), count_needed_runs(len(possible))
    p = np.ones((tests, len(parts.floor)))
    going, stages = [*range(tests)], [0, least]
    while stages[-1] < needed:
        stages.append(min(2 * stages[-1], needed))
    for (done, until), spared in zip(pairwise(stages), chain(SPARED, repeat(0)), strict=False):
        harm = draw(going, done, until)
        for each in going:
            p[each] = rank_first_run(harm[each], parts)
        going = [
            each
            for each in going
            if possible[each] >= needed > until and round(p[each].min() * (until + 1)) <= 1 + spared
        ]
        if not going:
            break
    return np.where(np.array(possible)[:, None] < needed, np.nan, np.minimum(1, tests * p))


def rank_first_run(harm: Float[np.ndarray, "run part"], parts: Parts) -> Float[np.ndarray, " part"]:
    """Return the p-value of the first run for each part: the share of runs that are at least as bad in any part.

    Runs are compared by Student's t of each run against all others, with its p-value multiplied by the number of parts
    that are `alike`. The first run is treated like the others, so a p-value of at most p has a probability of at most p
    (max statistic: Westfall and Young 1993). This holds for the parts in which it is like a draw, even if it is not in
    other parts.
    """
    harm, runs = harm.round(9), len(harm)
    if runs < 3:
        return np.ones(harm.shape[1])
    away = (harm - harm.mean(0)) * runs / (runs - 1)
    without = (harm.var(0) * runs - away**2 * (runs - 1) / runs) / (runs - 2)
    spread = np.sqrt(np.maximum(without, parts.floor**2) * (1 + 1 / (runs - 1)))
    # A metric that is undefined for some run, such as a recall without items, tells nothing.
    surprise = np.nan_to_num(student.sf(away / spread, runs - 2) * parts.alike, nan=np.inf)
    return np.asarray((1 + (surprise[1:].min(1, keepdims=True) <= surprise[0]).sum(0)) / runs)
