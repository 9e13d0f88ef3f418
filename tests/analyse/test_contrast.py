"""The task's change less the control's, its test and the ratio of spreads, beside scipy's Welch."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
import xarray as xr
from scipy.stats import false_discovery_control, ttest_1samp, ttest_ind

from analyse.run_tables import HEADS, LAYERS, OTHERS, RUNS, SEEDS, tables
from headscope.analyse import compare_variable as compare
from headscope.analyse.significance import count_needed
from headscope.analyse.welch import compare_means


def levels(found: xr.Dataset) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The runs of task and control of each head, of layers, of all heads and of the head that is best before."""
    _, after, control = (table["scope_f1"].values for table in tables())
    best = tuple(int(part) - 1 for part in found.attrs["best_head"].split("-"))
    return {
        "": (after, control),
        "layer_": (after.mean(-1), control.mean(-1)),
        "average_": (after.mean((1, 2)), control.mean((1, 2))),
        "best_": (after[:, *best], control[:, *best]),
    }


def test_the_task_less_the_control_has_the_interval_of_welch() -> None:
    found = compare(*tables())
    for prefix, (one, other) in levels(found).items():
        expected = ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
        np.testing.assert_allclose(found[f"{prefix}contrast"], one.mean(0) - other.mean(0), atol=1e-14)
        np.testing.assert_allclose(found[f"{prefix}contrast_lower"], expected.low, atol=1e-12)
        np.testing.assert_allclose(found[f"{prefix}contrast_upper"], expected.high, atol=1e-12)


def test_a_contrast_of_one_run_has_no_interval_and_one_of_equal_runs_no_width() -> None:
    before, after, control = tables(runs=1, others=3)
    alone = compare(before, after, control)
    assert np.isfinite(alone["average_contrast"])
    assert np.isnan(alone["average_contrast_lower"])
    same = control.assign(scope_f1=control["scope_f1"].isel(run=0, drop=True).expand_dims(run=control["run"]))
    other = same.assign(scope_f1=same["scope_f1"] + 0.1)
    other.attrs |= {"control": after.attrs["control"], "runs": tables(runs=3)[1].attrs["runs"]}
    flat = compare(before, other.assign_coords(seed=("run", SEEDS[:3])), same)
    assert float(flat["average_contrast"]) == pytest.approx(0.1)
    assert float(flat["average_contrast_upper"]) == pytest.approx(0.1)
    assert "average_contrast" not in compare(before, after)


def test_welchs_p_and_the_ratio_of_spreads_are_those_of_scipy_and_numpy() -> None:
    found = compare(*tables())
    for prefix, (one, other) in levels(found).items():
        p = ttest_ind(one, other, equal_var=False).pvalue
        np.testing.assert_allclose(found[f"{prefix}welch_p"], p, rtol=1e-9)
        np.testing.assert_allclose(found[f"{prefix}spread_ratio"], one.std(0, ddof=1) / other.std(0, ddof=1), rtol=1e-9)
        if prefix in ("", "layer_"):
            q = false_discovery_control(p.ravel()).reshape(p.shape)
            np.testing.assert_allclose(found[f"{prefix}welch_q"], q, rtol=1e-9)


def test_with_one_run_there_is_neither_welchs_p_nor_a_ratio_of_spreads() -> None:
    found = compare(*tables(runs=1, others=3))
    for prefix in ("", "layer_", "average_", "best_"):
        assert found[f"{prefix}welch_p"].isnull().all()
        assert found[f"{prefix}spread_ratio"].isnull().all()
    assert found["welch_q"].isnull().all()
    assert found["p"].notnull().all()


def test_runs_that_do_not_differ_have_no_spread() -> None:
    draw = np.random.default_rng(3)
    varied, flat = draw.normal(0.3, 0.1, (7, 5)), np.full((11, 5), 0.1)
    assert flat.std(0, ddof=1).max() > 0  # the mean of eleven times 0.1 is not 0.1 in floating point
    one_flat = compare_means(varied, flat)
    np.testing.assert_allclose(one_flat.p, ttest_1samp(varied, 0.1).pvalue, rtol=1e-9)
    assert np.isinf(one_flat.spread_ratio).all()
    np.testing.assert_array_equal(compare_means(flat, varied).spread_ratio, 0)
    for other in (flat[:3], flat[:3] + 0.2):
        both_flat = compare_means(flat, other)
        assert np.isnan(both_flat.p).all()
        assert np.isnan(both_flat.spread_ratio).all()
        np.testing.assert_array_equal(both_flat.upper, both_flat.lower)


def test_a_head_without_a_value_has_no_welchs_p_and_is_not_corrected_for() -> None:
    before, after, control = tables()
    control["scope_f1"][4, 0, 1] = np.nan
    found = compare(before, after, control)
    known = np.arange(LAYERS * HEADS) != 1
    for name in ("welch_p", "welch_q", "spread_ratio"):
        np.testing.assert_array_equal(found[name].notnull().values.ravel(), known)
    q = false_discovery_control(found["welch_p"].values.ravel()[known])
    np.testing.assert_allclose(found["welch_q"].values.ravel()[known], q)
    assert float(found["heads_needed"]) == count_needed(np.array(2 / comb(RUNS + OTHERS, RUNS)), LAYERS * HEADS - 1)


@pytest.mark.parametrize("runs", [3, 4, 5, 6, 7, 10])
@pytest.mark.parametrize("tests", [13, 63, 72, 144])
def test_so_many_heads_need_the_smallest_p_for_a_small_q(runs: int, tests: int) -> None:
    least = Fraction(2, comb(2 * runs, runs))
    exact = next((k for k in range(1, tests + 1) if least * tests / k <= Fraction(1, 20)), None)
    needed = float(count_needed(np.array(float(least)), tests))
    assert needed == exact or (np.isnan(needed) and exact is None)
    if exact:
        p = np.ones((2, tests))
        p[0, :exact] = p[1, : exact - 1] = float(least)
        assert (false_discovery_control(p, axis=1) <= 0.05).sum(1).tolist() == [exact, 0]


def test_five_runs_against_five_need_twelve_of_72_heads() -> None:
    assert count_needed(np.array([2 / 252, 0.0625, np.nan]), 72).tolist()[0] == 12
    assert np.isnan(count_needed(np.array([0.0625, np.nan]), 72)).all()


def test_each_test_says_how_many_heads_it_needs() -> None:
    found = compare(*tables())
    assert found["heads_needed"] == 1
    assert found["before_heads_needed"].values.tolist() == [5, 1]  # 15 heads; p is 1/64 or 1/1024 at least
    assert np.isnan(found["paired_heads_needed"])  # 5 pairs: 1/16
    assert "before_heads_needed" in compare(*tables()[:2])
