"""Exact tests of few runs by ranks: two samples, and differences against 0.

With ten runs or three no approximation is needed: the p-value is the share of all ways to assign the ranks that are as
far out. Ties have the mean of their ranks (midranks; Lehmann 1975, sections 1.4 and 3.2), so the tests stay exact with
ties. A two-sided p-value is twice the smaller tail, at most 1, as in R and scipy.

Scores are shares of counts, so their differences are often equal, and floating point parts what is equal: 0.3 - 0.2 is
not 0.2 - 0.1. What differs by less than `TIED` of the values is therefore tied, as it is not in R and scipy.
"""

from collections.abc import Sequence
from functools import cache
from math import comb

import numpy as np
import scipy
from jaxtyping import Float, Num

from headscope.errors import HeadscopeError

WILCOXON = "Wilcoxon 1945; exact, two-sided, with midranks (Lehmann 1975)"

TIED = 1e-10
"""What differs by less, as a share of the largest value of a place, differs by rounding alone."""

EMPTY = "the rank-sum test got a sample without values; it needs one of each group at least."

Values = Sequence[float | int] | Num[np.ndarray, "_"]
"""A value of each run."""


def rank_sum(first: Values, second: Values) -> float:
    """The exact two-sided p-value of the rank-sum test (Wilcoxon; Mann and Whitney); null: both have one distribution.

    It is the test of Zhao and Bethard 2020, sections 5 and 6. Where no values are tied it is that of
    ``scipy.stats.mannwhitneyu(method="exact")``. NaN where a value is. Where the spreads of the samples differ, a small
    p-value does not say that their means or medians do.

    Args:
        first: a value of each run of one group.
        second: of each run of the other.

    Raises:
        HeadscopeError: a sample is empty.

    >>> round(rank_sum([0.11, 0.12, 0.13], [0.08, 0.09, 0.10]), 3)
    0.1
    """
    return float(rank_sums(np.asarray(first, dtype=float), np.asarray(second, dtype=float)))


def dominance(first: Values, second: Values) -> float:
    """How far one sample lies above another, from -1 to 1: the effect that `rank_sum` tests (Cliff 1993).

    It is the share of all pairs, one value of each sample, in which the first is higher, less the share in which it is
    lower: 1 where all of the first are above all of the second. NaN where a value is.

    Args:
        first: a value of each run of one group.
        second: of each run of the other.

    Raises:
        HeadscopeError: a sample is empty.

    >>> dominance([0.11, 0.12, 0.13], [0.08, 0.09, 0.10])
    1.0
    """
    samples = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if not all(map(len, samples)):
        raise HeadscopeError(EMPTY)
    joint = np.concatenate(samples)
    higher, lower = np.split(_in_steps(joint, joint), [len(first)])
    return float(np.sign(higher[:, None] - lower).mean())


def signed_rank(differences: Values) -> float:
    """The exact two-sided p-value of the signed-rank test (Wilcoxon); null: differences are symmetric around 0.

    Differences of 0 are left out, as Wilcoxon did; 1 where there are no others. NaN where a difference is.

    Args:
        differences: one of each run.

    Raises:
        HeadscopeError: there are none.

    >>> signed_rank([0.02, 0.01, 0.03])
    0.25
    """
    values = np.asarray(differences, dtype=float)
    return float(signed_ranks(values, np.zeros_like(values)))


def rank_sums(first: Float[np.ndarray, "..."], second: Float[np.ndarray, "..."]) -> np.ndarray:
    """`rank_sum` down the first axis, for every place of the others."""
    if not (len(first) and len(second)):
        raise HeadscopeError(EMPTY)
    joint = np.concatenate([first, second]).reshape(len(first) + len(second), -1)
    joint = _in_steps(joint, joint)
    doubled, p_of_chosen = _doubled_ranks(joint), cache(_p_of_chosen)
    p = np.full(joint.shape[1], np.nan)
    for place in np.flatnonzero(np.isfinite(joint).all(0)):
        ranks = doubled[:, place]
        p[place] = p_of_chosen(tuple(sorted(ranks.tolist())), len(first))[ranks[: len(first)].sum()]
    return p.reshape(first.shape[1:])


def signed_ranks(first: Float[np.ndarray, "..."], second: Float[np.ndarray, "..."]) -> np.ndarray:
    """`signed_rank` of `first` less `second` down the first axis, for every place of the others."""
    if not len(first):
        raise HeadscopeError("the signed-rank test got no differences; it needs one at least.")
    differences = _in_steps(first - second, np.maximum(np.abs(first), np.abs(second)))
    flat, p_of_signs = differences.reshape(len(differences), -1), cache(_p_of_signs)
    p = np.full(flat.shape[1], np.nan)
    for place in np.flatnonzero(np.isfinite(flat).all(0)):
        changed = flat[flat[:, place] != 0, place]
        ranks = _doubled_ranks(np.abs(changed))
        p[place] = p_of_signs(tuple(sorted(ranks.tolist())))[ranks[changed > 0].sum()]
    return p.reshape(differences.shape[1:])


def least_rank_sum(first: int, second: int) -> float:
    """The smallest p-value that `rank_sum` can give for so many runs: 0.1 for three and three."""
    return min(1.0, 2 / comb(first + second, first))


def least_signed_rank(runs: int) -> float:
    """The smallest p-value that `signed_rank` can give for so many runs: 0.25 for three."""
    return min(1.0, 0.5 ** (runs - 1))


def _in_steps(values: Float[np.ndarray, "..."], beside: Float[np.ndarray, "..."]) -> np.ndarray:
    """The values of each place as whole numbers of steps, of which the largest one beside them has 1 / `TIED`."""
    step = TIED * np.abs(beside).max(0)
    return np.asarray(np.round(values / np.where(step > 0, step, 1)))


def _doubled_ranks(values: Float[np.ndarray, "..."]) -> np.ndarray:
    """Twice the midranks, which are whole numbers; of columns with NaN they mean nothing."""
    return np.asarray(2 * np.nan_to_num(scipy.stats.rankdata(values, axis=0))).astype(int)


def _p_of_chosen(ranks: tuple[int, ...], chosen: int) -> np.ndarray:
    """The p-value of each sum that so many of these ranks can have."""
    ways = np.zeros((chosen + 1, sum(ranks) + 1))
    ways[0, 0] = 1
    reached = 0
    for count, rank in enumerate(ranks, 1):
        # There is no way yet to a larger sum or to one of more ranks, and from one of fewer ranks none to the last.
        reached += rank
        least, most = max(1, chosen - (len(ranks) - count)), min(count, chosen)
        ways[least : most + 1, rank : reached + 1] += ways[least - 1 : most, : reached + 1 - rank]
    return _two_sided(ways[chosen])


def _p_of_signs(ranks: tuple[int, ...]) -> np.ndarray:
    """The p-value of each sum that the ranks with a plus can have."""
    ways = np.zeros(sum(ranks) + 1)
    ways[0] = 1
    for rank in ranks:
        ways[rank:] += ways[:-rank]
    return _two_sided(ways)


def _two_sided(ways: np.ndarray) -> np.ndarray:
    below, above = np.cumsum(ways), np.cumsum(ways[::-1])[::-1]
    return np.asarray(np.minimum(1.0, 2 * np.minimum(below, above) / ways.sum()))
