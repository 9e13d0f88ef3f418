"""Student's t: intervals and p-values of a value with a standard error, and the standard error of a mean.

`scipy.stats` takes longer to load than pandas and xarray together. `scipy.stats.t` calls the same functions as this
file, so the results are the same to the last bit. Arguments may be numpy or xarray numbers of any shape. Results are
NaN without degrees of freedom, and where the error is NaN; if the error is 0, both ends of an interval are the value.
"""

from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

LEVEL = 0.95
"""The level of all intervals."""


def ppf(probability: Any, freedom: Any) -> Any:
    """Return the value that Student's t does not exceed with each probability (the quantile)."""
    return stdtrit(freedom, probability)


def cdf(statistic: Any, freedom: Any) -> Any:
    """Return the probability that Student's t is at most as large as each statistic."""
    return stdtr(freedom, statistic)


def sf(statistic: Any, freedom: Any) -> Any:
    """Return the probability that Student's t is larger than each statistic."""
    return stdtr(freedom, np.negative(statistic))


def two_sided_p(statistic: Any, freedom: Any) -> Any:
    """Return the probability that Student's t is at least as far from 0 as each statistic, on either side."""
    return 2 * sf(np.abs(statistic), freedom)


def half_width(error: Any, freedom: Any, level: float = LEVEL) -> Any:
    """Return half the width of the confidence interval of a value with the standard error `error`."""
    return error * ppf((1 + level) / 2, freedom)


def t_interval(value: Any, error: Any, freedom: Any, level: float = LEVEL) -> tuple[Any, Any]:
    """Return the lower and the upper end of the confidence interval of each value with the standard error `error`."""
    half = half_width(error, freedom, level)
    return value - half, value + half


def standard_error(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """Return the standard error of the mean along an axis; NaN for a single value."""
    count = values.shape[axis]
    return np.asarray(values.std(axis, ddof=1) / np.sqrt(count) if count > 1 else np.nan * values.mean(axis))
