"""Effects over runs beside scipy and statsmodels, on tables that we make."""

import json

import numpy as np
import pytest
import xarray as xr
from scipy.stats import ttest_1samp
from statsmodels.stats.multitest import multipletests

from headscope.analyse.run_effects import join_effects, summarize_effects
from headscope.view.effects_report import list_effects

RUNS, LAYERS, HEADS = 5, 2, 7
METRIC = {"name": "accuracy", "title": "accuracy", "units": "share", "better": 1}


def make_table(effects: np.ndarray, placebos: np.ndarray, p: np.ndarray) -> xr.Dataset:
    """A table of one run: effects, the means of placebos, and the p-values of both tests, by layer and head."""
    dims = ("how", "subset", "layer", "head")
    values = {"": effects, "_placebo": placebos, "_p_corrected": p, "_placebo_p_corrected": p}
    variables = {f"effect_accuracy{end}": (dims, each[None, None], {"units": "share"}) for end, each in values.items()}
    variables |= {"removed_norm": (("how", "layer", "head"), np.ones((1, LAYERS, HEADS)))}
    variables |= {"whole_accuracy": ("subset", [0.75]), "examples": ("subset", [61]), "texts": ("subset", [31])}
    coords = {"how": ["uniform"], "subset": ["all"], "layer": [1, 2], "head": [*range(1, HEADS + 1)]}
    return xr.Dataset(variables, coords=coords, attrs={"metrics": json.dumps([METRIC])})


def join(effects: np.ndarray, placebos: np.ndarray, p: np.ndarray) -> xr.Dataset:
    tables = [make_table(*of_run) for of_run in zip(effects, placebos, p, strict=True)]
    names = [f"seed-{seed}" for seed in range(1, len(tables) + 1)]
    table = join_effects(tables, names, range(1, len(tables) + 1))
    return table.assign_attrs(runs=json.dumps([{"name": name} for name in names]))


@pytest.fixture
def values() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    effects, placebos = generator.normal(0, 0.01, (2, RUNS, LAYERS, HEADS))
    effects[:, 1, 4] += 0.5
    return effects, placebos


def test_means_intervals_and_p_values_are_those_of_scipy(values) -> None:
    effects, placebos = values
    summary = summarize_effects(join(effects, placebos, np.ones_like(effects))).isel(how=0, subset=0)
    for stem, sample in (("effect_accuracy", effects), ("effect_accuracy_placebo", placebos)):
        interval = ttest_1samp(sample, 0).confidence_interval(0.95)
        np.testing.assert_allclose(summary[stem], sample.mean(0))
        np.testing.assert_allclose(summary[f"{stem}_lower"], interval.low)
        np.testing.assert_allclose(summary[f"{stem}_upper"], interval.high)
    for name, sample in (("p_corrected", effects), ("placebo_p_corrected", effects - placebos)):
        expected = multipletests(ttest_1samp(sample, 0).pvalue.ravel(), method="holm")[1]
        np.testing.assert_allclose(summary[f"effect_accuracy_{name}"].values.ravel(), expected)
    verdicts = list_effects(summarize_effects(join(effects, placebos, np.ones_like(effects))))
    assert verdicts["unit"][verdicts["verdict"] == "better without"].tolist() == ["2-5"]


def test_runs_are_counted_after_a_correction_for_all_of_them(values) -> None:
    effects, placebos, p = -np.abs(values[0]), np.zeros((RUNS, LAYERS, HEADS)), np.ones((RUNS, LAYERS, HEADS))
    p[:3, 0, 1] = 0.009  # 5 x 0.009 is below .05
    p[3, 0, 1] = 0.011
    effects[1, 0, 1] = 0.2
    effects[4, 0, 1] = 0.1
    summary = summarize_effects(join(effects, placebos, p))
    row = list_effects(summary).set_index("unit").loc["1-2"]
    assert (row["needed_in"], row["better_without_in"]) == (2, 1)
    assert row["verdict"] == "needed in 2 of 5 runs, better without in 1 of 5 runs"
    assert float(summary["effect_accuracy_needed_in"].sum()) == 2
    rows = list_effects(join(effects, placebos, p))
    assert rows[rows["unit"] == "1-2"]["verdict"].tolist() == [
        "needed", "better without", "needed", "needed", "no effect seen",
    ]  # fmt: skip


@pytest.mark.full
def test_where_nothing_is_any_unit_is_called_sure_in_5_percent_of_samples() -> None:
    generator, false = np.random.default_rng(7), 0
    for _ in range(200):
        effects, placebos = generator.normal(0, 0.01, (2, RUNS, LAYERS, HEADS))
        verdicts = list_effects(summarize_effects(join(effects, placebos, np.ones_like(effects))))["verdict"]
        false += bool(verdicts.isin(["needed", "better without"]).any())
    assert false <= 18  # 0.05 * 200 and 2.6 standard deviations


def test_runs_that_do_not_differ_are_not_tested_but_for_those_without_any_change() -> None:
    effects = np.zeros((RUNS, LAYERS, HEADS))
    effects[:, 0, 0] = 0.1
    verdicts = list_effects(summarize_effects(join(effects, np.zeros_like(effects), np.ones_like(effects))))
    verdicts = verdicts.set_index("unit")["verdict"]
    assert verdicts["1-1"] == "not tested"
    assert set(verdicts.drop("1-1")) == {"no effect seen"}


def test_a_single_run_has_no_interval(values) -> None:
    effects, placebos = (each[:1] for each in values)
    p = np.ones_like(effects)
    p[0, 1, 4] = 0.01
    summary = summarize_effects(join(effects, placebos, p))
    assert summary["effect_accuracy_lower"].isnull().all()
    row = list_effects(summary).set_index("unit").loc["2-5"]
    assert (row["effect"], row["verdict"]) == (effects[0, 1, 4], "better without in 1 of 1 runs")
