"""What claims read of families of runs, against loops over the same numbers."""

import math

import numpy as np
import pytest
import xarray as xr
from scipy.stats import mannwhitneyu, t

from headscope.analyse.ends import ENDS
from headscope.studies import run_extractors
from headscope.studies.study import NotMeasuredError

LAYERS, HEADS, RUNS, CONTROLS = 11, 3, 5, 7
NAMES = ("noun", "sep")


def make_runs(runs: int, seed: int) -> xr.Dataset:
    rng = np.random.default_rng(seed)
    return xr.Dataset(
        {
            "x": (("run", "layer", "head"), rng.random((runs, LAYERS, HEADS))),
            "y": (("run", "layer", "head", "token_class"), rng.random((runs, LAYERS, HEADS, len(NAMES)))),
            "accuracy": ("run", rng.random(runs)),
        },
        coords={
            "layer": np.arange(1, LAYERS + 1),
            "head": np.arange(1, HEADS + 1),
            "run": [f"seed-{number}" for number in range(runs)],
            "token_class": list(NAMES),
        },
    )


TASK, CONTROL = make_runs(RUNS, 1), make_runs(CONTROLS, 2)
BEFORE = make_runs(1, 3).isel(run=0, drop=True)


def interval(values: list[float]) -> tuple[float, float]:
    """Scipy's, not ours."""
    return t.interval(0.95, len(values) - 1, np.mean(values), np.std(values, ddof=1) / math.sqrt(len(values)))


def test_the_average_head_with_its_interval_and_spread() -> None:
    averages = [100 * sum(run.ravel()) / (LAYERS * HEADS) for run in TASK["x"].values]
    value = run_extractors.mean_over_runs(run_extractors.average_head("x"))(TASK)
    assert (value.number, value.detail) == (pytest.approx(np.mean(averages)), "5 runs")
    assert (value.lower, value.upper) == pytest.approx(interval(averages))
    deviation = math.sqrt(sum((first - value.number) ** 2 for first in averages) / RUNS)
    assert run_extractors.deviation_over_runs(run_extractors.average_head("x"))(TASK).number == pytest.approx(deviation)


def test_one_run_has_no_interval() -> None:
    value = run_extractors.mean_over_runs(run_extractors.average_head("x"))(TASK.isel(run=[2]))
    assert (value.detail, value.ends) == ("1 run", (value.number, value.number))


def test_the_best_head_is_chosen_before() -> None:
    layer, head = divmod(int(BEFORE["x"].values.argmax()), HEADS)
    value = run_extractors.mean_over_runs(run_extractors.best_head_before("x", "x"))(BEFORE, TASK)
    assert value.number == pytest.approx(100 * sum(run[layer, head] for run in TASK["x"].values) / RUNS)


def test_the_best_head_after() -> None:
    values = TASK["y"].sel(token_class="sep").values
    means = {(i, j): sum(run[i, j] for run in values) / RUNS for i in range(LAYERS) for j in range(HEADS)}
    layer, head = max(means, key=means.get)
    value = run_extractors.best_head_after("y", token_class="sep")(TASK)
    assert (value.number, value.detail) == (pytest.approx(100 * means[layer, head]), f"{layer + 1}-{head + 1}")


def test_a_head_by_its_number() -> None:
    read = run_extractors.head_value(7, 2, "y", token_class="noun")
    assert read(TASK).number == pytest.approx(100 * np.mean([run[6, 1, 0] for run in TASK["y"].values]))
    before = read(BEFORE)
    assert (before.number, before.detail) == (pytest.approx(100 * BEFORE["y"].values[6, 1, 0]), "7-2")
    with pytest.raises(NotMeasuredError, match=r"^the model has no head 12-1$"):
        run_extractors.head_value(12, 1, "y", token_class="noun")(TASK)


def test_layers_by_their_depth() -> None:
    # Of 11 layers, 10 and 11 lie deeper than ten twelfths.
    deep = run_extractors.deep_layers("x", 10 / 12, scale=1.0)(TASK)
    assert deep == pytest.approx([run[9:].mean() for run in TASK["x"].values])
    others = run_extractors.lowest_other_layer("x", 10 / 12, scale=1.0)(TASK)
    assert others == pytest.approx([min(layer.mean() for layer in run[:9]) for run in TASK["x"].values])
    last = run_extractors.deep_layers("y", 0.999, token_class="sep")(TASK)
    assert last == pytest.approx([100 * run[10, :, 1].mean() for run in TASK["y"].values])
    with pytest.raises(NotMeasuredError, match=r"^the model has no other layers$"):
        run_extractors.lowest_other_layer("x", 0.5)(TASK.isel(layer=[10]).assign_coords(layer=[1]))


def test_the_mean_over_heads_of_a_class() -> None:
    value = run_extractors.average_head("y", token_class="noun")(TASK)
    assert value == pytest.approx([100 * run[..., 0].mean() for run in TASK["y"].values])


def test_task_against_control() -> None:
    per_run = run_extractors.average_head("x")
    value = run_extractors.rank_sum_p(run_extractors.on_tables(per_run, 0), run_extractors.on_tables(per_run, 1))(
        TASK, CONTROL
    )
    first, second = ([run.mean() for run in table["x"].values] for table in (TASK, CONTROL))
    assert (value.number, value.detail) == (
        pytest.approx(mannwhitneyu(first, second, method="exact").pvalue),
        "5 and 7 runs",
    )


def test_task_against_control_has_a_sign() -> None:
    per_run = run_extractors.average_head("x")
    effect = run_extractors.rank_sum_effect(run_extractors.on_tables(per_run, 0), run_extractors.on_tables(per_run, 1))
    first, second = ([run.mean() for run in table["x"].values] for table in (TASK, CONTROL))
    for tables, pair in (((TASK, CONTROL), (first, second)), ((CONTROL, TASK), (second, first))):
        test = mannwhitneyu(*pair, method="exact")
        value = effect(*tables)
        assert value.number == pytest.approx(2 * test.statistic / (RUNS * CONTROLS) - 1)
        assert value.p == pytest.approx(test.pvalue)
        assert math.isnan(value.lower)


def test_the_corrected_change_is_the_mean_over_runs_with_its_interval() -> None:
    taus = {f"baseline_tau_mean{end}": ("group", [value]) for end, value in zip(ENDS, (0.1, -0.2, 0.4), strict=True)}
    of_runs = {"baseline_tau_corrected": (("group", "run"), [[0.0, 0.2]])}
    value = run_extractors.corrected_change(xr.Dataset(taus | of_runs, coords={"group": ["task"]}))
    assert (value.number, value.lower, value.upper) == (0.1, -0.2, 0.4)
    assert "2 runs" in value.detail


@pytest.mark.parametrize(("task_runs", "control_runs", "least"), [(2, 7, "0.056"), (3, 3, "0.1"), (1, 7, "0.25")])
def test_runs_too_few_to_differ_are_not_judged(task_runs, control_runs, least) -> None:
    per_run = run_extractors.average_head("x")
    read = run_extractors.rank_sum_p(run_extractors.on_tables(per_run, 0), run_extractors.on_tables(per_run, 1))
    with pytest.raises(NotMeasuredError) as caught:
        read(TASK.isel(run=slice(task_runs)), CONTROL.isel(run=slice(control_runs)))
    assert (
        str(caught.value) == f"{task_runs} and {control_runs} runs cannot give a p-value below {least}; take more seeds"
    )


def test_selectivity() -> None:
    first, second = (100 * table["accuracy"].values.mean() for table in (TASK, CONTROL))
    value = run_extractors.selectivity(TASK, CONTROL)
    assert (value.number, value.detail) == (pytest.approx(first - second), f"{first:.1f} less {second:.1f}")


@pytest.mark.parametrize(
    ("read", "tables", "why"),
    [
        (run_extractors.average_head("z"), (TASK,), "the table has no z of several runs"),
        (run_extractors.average_head("x"), (BEFORE,), "the table has no x of several runs"),
        (run_extractors.model_score("task_f1"), (TASK,), "the runs have no task f1"),
        (run_extractors.best_head_after("y", token_class="verb"), (TASK,), "the corpus has no token_class verb"),
        (run_extractors.best_head_after("z"), (TASK,), "the table has no z of several runs"),
        (run_extractors.best_head_before("x", "z"), (BEFORE, TASK), "the table has no z"),
    ],
)
def test_what_is_not_there_is_not_measured(read, tables, why) -> None:
    with pytest.raises(NotMeasuredError) as caught:
        read(*tables)
    assert str(caught.value) == why
