"""The difference of two means over runs, where the two groups need not spread alike."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headscope.analyse.ranktests import TIED
from headscope.analyse.student import t_interval, two_sided_p

WELCH = "Welch's t over runs"


@dataclass(frozen=True)
class MeanDifference:
    """The difference of the means of two groups of runs, at every place.

    Attributes:
        difference: the mean of the first group less that of the second.
        lower: end of its 95 % interval, which is empty where the runs of neither group differ.
        upper: the other end.
        p: the two-sided p-value that the means are equal; NaN where the runs of neither group differ.
        spread_ratio: the standard deviation over runs (ddof 1) of the first group to that of the second; infinite
            where only the second's runs do not differ, NaN where those of neither do.

    All but the difference are NaN where a group has one run, and all are NaN where a run is.
    """

    difference: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    p: np.ndarray
    spread_ratio: np.ndarray


def compare_means(first: Float[np.ndarray, "..."], second: Float[np.ndarray, "..."]) -> MeanDifference:
    """The difference of the means down the first axis, with Welch's test and interval, for every place of the others.

    The null is that the means are equal, whatever the spreads (Welch 1947). The values of a group are taken as about
    normal. Spreads by rounding alone (less than `TIED` of the largest value of a place) count as none.

    Args:
        first: a value of each run of one group, and its places.
        second: of each run of the other, with the same places.
    """
    difference = np.asarray(first.mean(0) - second.mean(0))
    if min(len(first), len(second)) < 2:
        unknown = np.full(difference.shape, np.nan)
        return MeanDifference(difference, unknown, unknown, unknown, unknown)
    rounding = np.asarray(TIED * np.maximum(np.abs(first).max(0), np.abs(second).max(0)))
    spreads = [_measure_spread(values, rounding) for values in (first, second)]
    squares = [spread**2 / len(values) for spread, values in zip(spreads, (first, second), strict=True)]
    error = np.sqrt(sum(squares))
    freedoms = [square**2 / (len(values) - 1) for square, values in zip(squares, (first, second), strict=True)]
    with np.errstate(divide="ignore", invalid="ignore"):
        # Without any error the interval is empty, whatever the degrees of freedom.
        freedom = np.where(error == 0, 1.0, error**4 / sum(freedoms))
        p = np.where(error == 0, np.nan, two_sided_p(difference / error, freedom))
        ends = t_interval(difference, error, freedom)
        return MeanDifference(difference, *ends, p, np.asarray(spreads[0] / spreads[1]))


def _measure_spread(values: Float[np.ndarray, "..."], rounding: np.ndarray) -> np.ndarray:
    """The standard deviations down the first axis, 0 in place of those that are by rounding alone."""
    spread = values.std(0, ddof=1)
    return np.where(spread <= rounding, 0, spread)
