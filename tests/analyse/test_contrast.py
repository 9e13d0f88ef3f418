"""The task's change less the control's, beside scipy's Welch."""

import numpy as np
import pytest
from scipy.stats import ttest_ind

from analyse.run_tables import SEEDS, tables
from headscope.analyse import compare_variable as compare


def test_the_task_less_the_control_has_the_interval_of_welch() -> None:
    found = compare(*tables())
    _, after, control = (table["scope_f1"].values for table in tables())
    best = tuple(int(part) - 1 for part in found.attrs["best_head"].split("-"))
    sides = {
        "": (after, control),
        "layer_": (after.mean(-1), control.mean(-1)),
        "average_": (after.mean((1, 2)), control.mean((1, 2))),
        "best_": (after[:, *best], control[:, *best]),
    }
    for prefix, (one, other) in sides.items():
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
