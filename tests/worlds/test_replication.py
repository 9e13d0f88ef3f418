"""Heads that were chosen on one corpus: where none has a lift on the other, hardly ever does one survive there."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom

from worlds.replications import ROWS, make_report, replicate
from worlds.shares import LEVEL


@pytest.fixture(scope="module")
def report() -> xr.Dataset:
    return make_report()


@pytest.mark.parametrize("worlds", [13, pytest.param(31, marks=pytest.mark.full)])
def test_where_no_row_has_a_lift_hardly_ever_one_survives(report: xr.Dataset, worlds: int) -> None:
    draw = np.random.default_rng(worlds)
    false = sum(bool(replicate(report, draw, np.zeros(ROWS)).any()) for _ in range(worlds))
    assert false <= binom.ppf(0.999, worlds, LEVEL)


def test_a_row_with_a_lift_survives_and_no_other_does(report: xr.Dataset) -> None:
    draw = np.random.default_rng(7)
    lifts = np.where(np.arange(ROWS) < 5, 0.3, 0)
    survives = [replicate(report, draw, lifts) for _ in range(3)]
    assert np.mean([each[:5] for each in survives]) > 0.9
    assert not any(each[5:].any() for each in survives)
