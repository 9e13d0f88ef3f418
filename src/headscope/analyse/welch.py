"""The difference of two means over runs, for groups that may have unequal spreads."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headscope.analyse.ranktests import TIED
from headscope.analyse.student import t_interval, two_sided_p

WELCH = "Welch's t over runs"


@dataclass(frozen=True)
class MeanDifference:
    """The difference of the means of two groups of runs, at every entry.

    Attributes:
        difference: The mean of the first group less the mean of the second.
        lower: The lower end of its 95 % interval, which has no width if neither group varies over its runs.
        upper: The upper end of this interval.
        p: The two-sided p-value of equal means; NaN if neither group varies over its runs.
        spread_ratio: The standard deviation over runs (ddof 1) of the first group divided by that of the second;
            infinite if only the second group does not vary, NaN if neither does.

    All values except the difference are NaN if a group has one run, and all are NaN if a run is NaN.
    """

    difference: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    p: np.ndarray
    spread_ratio: np.ndarray


def compare_means(first: Float[np.ndarray, "..."], second: Float[np.ndarray, "..."]) -> MeanDifference:
    """Compare the means of two groups along the first axis by Welch's test, at every entry of the other axes.

    The null hypothesis is that the means are equal, whatever the spreads (Welch 1947). The values of a group are
    assumed to be about normal. A spread that comes from rounding (less than `TIED` of the largest value of an entry)
    counts as 0.

    Args:
        first: The values of the first group: a run for each index of the first axis.
        second: The values of the second group, with the same other axes.
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
        # If the error is 0, the interval has no width, whatever the degrees of freedom.
        freedom = np.where(error == 0, 1.0, error**4 / sum(freedoms))
        p = np.where(error == 0, np.nan, two_sided_p(difference / error, freedom))
        ends = t_interval(difference, error, freedom)
        return MeanDifference(difference, *ends, p, np.asarray(spreads[0] / spreads[1]))


def _measure_spread(values: Float[np.ndarray, "..."], rounding: np.ndarray) -> np.ndarray:
    """Return the standard deviations along the first axis, with 0 for deviations that come from rounding."""
    spread = values.std(0, ddof=1)
    return np.where(spread <= rounding, 0, spread)
