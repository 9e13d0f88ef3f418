"""Student's t distribution without `scipy.stats`, which takes longer to load than pandas and xarray together.

`scipy.stats.t` calls the same functions, so the results are the same to the last bit.
"""

from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit


def ppf(probability: Any, freedom: Any) -> Any:
    """Return the quantile of each probability; NaN where there are no degrees of freedom."""
    return stdtrit(freedom, probability)


def cdf(statistic: Any, freedom: Any) -> Any:
    """Return the probability of at most each statistic."""
    return stdtr(freedom, statistic)


def sf(statistic: Any, freedom: Any) -> Any:
    """Return the probability of more than each statistic."""
    return stdtr(freedom, np.negative(statistic))
