"""An exact test of chosen sets against random draws of the same kind, which ends early where it can.

If a chosen set is like a draw, it is the worst of 161 with a probability of 1 in 161, however the changes are spread.
How badness is measured, over parts that differ in size and spread, is the same for all runs: it decides how much the
test finds, and not how often it errs.
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
"""How many draws may be as bad after each of the first stages, for more to be made; after later stages none may be."""


@dataclass(frozen=True)
class Parts:
    """The quantities that are measured of each draw, such as the accuracy in each phenomenon.

    Attributes:
        floor: what draws differ by at least, as far as the yardstick goes.
        alike: of each part, how many parts it is one of, such as twelve phenomena.
    """

    floor: Float[np.ndarray, " part"]
    alike: Float[np.ndarray, " part"]


def count_needed_runs(tests: int) -> int:
    """Return the number of draws that a p-value below .05 needs, corrected for `tests` tests (Bonferroni)."""
    return ceil(round(tests / ALPHA, 6))


def draw_until_decided(
    draw: Callable[[Sequence[int], int, int], Mapping[int, Float[np.ndarray, "run part"]]],
    parts: Parts,
    possible: Sequence[int],
    least: int,
) -> Float[np.ndarray, "test part"]:
    """Return p-values of several things that were chosen, corrected for all of them and for all parts.

    Each has `least` draws, then twice as many, and so on, until too many are as bad, or there are as many as it takes.
    Only what no draw equals at the end is called, so that an early end calls nothing, and a p-value of at most p has a
    probability of at most p wherever it ends (as in Besag and Clifford 1991).

    Args:
        draw: given the numbers of those that go on, how many draws each has, and how many it is to have, returns the
            harm of each and behind it of all its draws. There are no more draws than are possible.
        parts: of the harm.
        possible: how many draws of each are possible, none twice. Fewer than `count_needed_runs` decide nothing: NaN.
        least: the draws of each in the first stage, or all that are possible.
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
    """Return a p-value of each part of the first run: that some run behind it is as bad in any part.

    The yardstick is Student's t of each run beside all others, with as many p-values as parts are `alike`. The first
    run is treated as the others are, so a p-value of at most p has a probability of at most p (max statistic: Westfall
    and Young 1993); that holds of parts in which it is like a draw, also if it is not in others.
    """
    harm, runs = harm.round(9), len(harm)
    if runs < 3:
        return np.ones(harm.shape[1])
    away = (harm - harm.mean(0)) * runs / (runs - 1)
    without = (harm.var(0) * runs - away**2 * (runs - 1) / runs) / (runs - 2)
    spread = np.sqrt(np.maximum(without, parts.floor**2) * (1 + 1 / (runs - 1)))
    # A metric that some run does not have, such as a recall of nothing, says nothing.
    surprise = np.nan_to_num(student.sf(away / spread, runs - 2) * parts.alike, nan=np.inf)
    return np.asarray((1 + (surprise[1:].min(1, keepdims=True) <= surprise[0]).sum(0)) / runs)
