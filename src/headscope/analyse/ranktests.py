"""Exact rank tests for few runs: of two samples, and of differences against 0.

With three to ten runs no approximation is needed: the p-value is the share of all ways to assign the ranks that are at
least as extreme. Ties have the mean of their ranks (midranks; Lehmann 1975, sections 1.4 and 3.2), so the tests stay
exact with ties. A two-sided p-value is twice the smaller tail, at most 1, as in R and scipy.

Scores are shares of counts, so their differences are often equal, but floating point separates equal values: 0.3 - 0.2
is not 0.2 - 0.1. Therefore values that differ by less than the share `TIED` are tied here, but not in R and scipy.
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
"""Smaller differences, as a share of the largest value of an entry, come from rounding."""

EMPTY = "the rank-sum test got a sample without values; it needs one of each group at least."

Values = Sequence[float | int] | Num[np.ndarray, "_"]
"""One value for each run."""


def rank_sum(first: Values, second: Values) -> float:
    """Return the exact two-sided p-value of the rank-sum test (Wilcoxon; Mann and Whitney).

    The null hypothesis is that both samples have one distribution. This is the test of Zhao and Bethard 2020, sections
    5 and 6. Without ties it equals ``scipy.stats.mannwhitneyu(method="exact")``. It is NaN if a value is NaN. If the
    spreads of the samples differ, a small p-value does not show that their means or medians differ.

    Args:
        first: One value for each run of the first group.
        second: One value for each run of the second group.

    Raises:
        HeadscopeError: A sample is empty.

    >>> round(rank_sum([0.11, 0.12, 0.13], [0.08, 0.09, 0.10]), 3)
    0.1
    """
    return float(rank_sums(np.asarray(first, dtype=float), np.asarray(second, dtype=float)))


def dominance(first: Values, second: Values) -> float:
    """Measure how far one sample lies above another, from -1 to 1: the effect that `rank_sum` tests (Cliff 1993).

    Of all pairs with one value of each sample, it is the share in which the first value is higher, less the share in
    which it is lower: 1 if all values of the first sample are above all of the second. It is NaN if a value is NaN.

    Args:
        first: One value for each run of the first group.
        second: One value for each run of the second group.

    Raises:
        HeadscopeError: A sample is empty.

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
    """Return the exact two-sided p-value of the signed-rank test (Wilcoxon).

    The null hypothesis is that differences are symmetric around 0. Differences of 0 are left out, as Wilcoxon did;
    without other differences the p-value is 1. It is NaN if a difference is NaN.

    Args:
        differences: One difference for each run.

    Raises:
        HeadscopeError: There are no differences.

    >>> signed_rank([0.02, 0.01, 0.03])
    0.25
    """
    values = np.asarray(differences, dtype=float)
    return float(signed_ranks(values, np.zeros_like(values)))


def rank_sums(first: Float[np.ndarray, "..."], second: Float[np.ndarray, "..."]) -> np.ndarray:
    """Apply `rank_sum` along the first axis, for every entry of the other axes."""
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
    """Apply `signed_rank` to `first` less `second` along the first axis, for every entry of the other axes."""
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
    """Return the smallest p-value that `rank_sum` can give for two numbers of runs: 0.1 for three and three."""
    return min(1.0, 2 / comb(first + second, first))


def least_signed_rank(runs: int) -> float:
    """Return the smallest p-value that `signed_rank` can give for a number of runs: 0.25 for three."""
    return min(1.0, 0.5 ** (runs - 1))


def _in_steps(values: Float[np.ndarray, "..."], beside: Float[np.ndarray, "..."]) -> np.ndarray:
    """Round the values of each entry to whole steps; one step is `TIED` times the largest value of `beside` there."""
    step = TIED * np.abs(beside).max(0)
    return np.asarray(np.round(values / np.where(step > 0, step, 1)))


def _doubled_ranks(values: Float[np.ndarray, "..."]) -> np.ndarray:
    """Return twice the midranks, which are whole numbers; columns with NaN have meaningless ranks."""
    return np.asarray(2 * np.nan_to_num(scipy.stats.rankdata(values, axis=0))).astype(int)


def _p_of_chosen(ranks: tuple[int, ...], chosen: int) -> np.ndarray:
    """Return the p-value of each sum that `chosen` of the ranks can have; the sum is the index."""
    ways = np.zeros((chosen + 1, sum(ranks) + 1))
    ways[0, 0] = 1
    reached = 0
    for count, rank in enumerate(ranks, 1):
        # Only the counts and sums that can occur so far, and that can still lead to `chosen` ranks, need an update.
        reached += rank
        least, most = max(1, chosen - (len(ranks) - count)), min(count, chosen)
        ways[least : most + 1, rank : reached + 1] += ways[least - 1 : most, : reached + 1 - rank]
    return _two_sided(ways[chosen])


def _p_of_signs(ranks: tuple[int, ...]) -> np.ndarray:
    """Return the p-value of each sum that the ranks of positive differences can have; the sum is the index."""
    ways = np.zeros(sum(ranks) + 1)
    ways[0] = 1
    for rank in ranks:
        ways[rank:] += ways[:-rank]
    return _two_sided(ways)


def _two_sided(ways: np.ndarray) -> np.ndarray:
    below, above = np.cumsum(ways), np.cumsum(ways[::-1])[::-1]
    return np.asarray(np.minimum(1.0, 2 * np.minimum(below, above) / ways.sum()))
