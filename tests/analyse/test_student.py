"""Student's t beside scipy, and where there is nothing to say."""

import numpy as np
import pytest
import scipy
import xarray as xr

from headscope.analyse.student import standard_error, t_interval, two_sided_p


def test_the_interval_and_the_p_value_are_scipys() -> None:
    values = np.random.default_rng(0).normal(0.2, 1, (7, 5))
    mean, error = values.mean(0), standard_error(values)
    np.testing.assert_allclose(error, scipy.stats.sem(values), rtol=1e-12)
    result = scipy.stats.ttest_1samp(values, 0)
    for level in (0.95, 0.8):
        ends = result.confidence_interval(level)
        np.testing.assert_allclose(t_interval(mean, error, 6, level), ends, rtol=1e-12)
    np.testing.assert_allclose(two_sided_p(mean / error, 6), result.pvalue, rtol=1e-12)


def test_a_single_value_has_no_error_and_no_interval() -> None:
    error = standard_error(np.ones((1, 3)))
    assert np.isnan(error).all()
    assert np.isnan(t_interval(1.0, error, 0)).all()
    assert np.isnan(t_interval(1.0, 0.5, 0)).all()


def test_without_an_error_the_interval_is_empty() -> None:
    assert t_interval(0.25, 0.0, 3) == (0.25, 0.25)


@pytest.mark.parametrize("axis", [0, 1])
def test_the_error_is_that_along_an_axis(axis: int) -> None:
    values = np.random.default_rng(1).normal(size=(3, 5))
    np.testing.assert_allclose(standard_error(values, axis), scipy.stats.sem(values, axis), rtol=1e-12)


def test_arrays_of_xarray_keep_their_dimensions() -> None:
    value = xr.DataArray([0.1, 0.2, 0.3], dims="layer")
    lower, upper = t_interval(value, xr.DataArray([0.1, 0.2, np.nan], dims="layer"), 5)
    assert lower.dims == upper.dims == ("layer",)
    np.testing.assert_allclose((lower + upper) / 2, [0.1, 0.2, np.nan])
