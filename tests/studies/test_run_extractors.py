"""What claims read of families of runs, against loops over the same numbers."""

import math

import numpy as np
import pytest
import xarray as xr
from scipy.stats import mannwhitneyu, t

from headscope.studies import run_extractors
from headscope.studies.study import NotMeasuredError

LAYERS, HEADS, RUNS, CONTROLS = 11, 3, 5, 7
NAMES = ("noun", "sep")


def family(runs: int, seed: int) -> xr.Dataset:
    draw = np.random.default_rng(seed)
    return xr.Dataset(
        {
            "x": (("run", "layer", "head"), draw.random((runs, LAYERS, HEADS))),
            "y": (("run", "layer", "head", "token_class"), draw.random((runs, LAYERS, HEADS, len(NAMES)))),
            "accuracy": ("run", draw.random(runs)),
        },
        coords={
            "layer": np.arange(1, LAYERS + 1),
            "head": np.arange(1, HEADS + 1),
            "run": [f"seed-{number}" for number in range(runs)],
            "token_class": list(NAMES),
        },
    )


TASK, CONTROL = family(RUNS, 1), family(CONTROLS, 2)
BEFORE = family(1, 3).isel(run=0, drop=True)


def interval(values: list[float]) -> tuple[float, float]:
    """Scipy's, not ours."""
    return t.interval(0.95, len(values) - 1, np.mean(values), np.std(values, ddof=1) / math.sqrt(len(values)))


def test_the_average_head_with_its_interval_and_spread() -> None:
    averages = [100 * sum(run.ravel()) / (LAYERS * HEADS) for run in TASK["x"].values]
    found = run_extractors.mean(run_extractors.of_average_head("x"))(TASK)
    assert (found.number, found.of) == (pytest.approx(np.mean(averages)), "5 runs")
    assert (found.lower, found.upper) == pytest.approx(interval(averages))
    deviation = math.sqrt(sum((one - found.number) ** 2 for one in averages) / RUNS)
    assert run_extractors.spread(run_extractors.of_average_head("x"))(TASK).number == pytest.approx(deviation)


def test_one_run_has_no_interval() -> None:
    found = run_extractors.mean(run_extractors.of_average_head("x"))(TASK.isel(run=[2]))
    assert (found.of, found.ends) == ("1 run", (found.number, found.number))


def test_the_best_head_is_chosen_before() -> None:
    layer, head = divmod(int(BEFORE["x"].values.argmax()), HEADS)
    found = run_extractors.mean(run_extractors.of_best_head("x", "x"))(BEFORE, TASK)
    assert found.number == pytest.approx(100 * sum(run[layer, head] for run in TASK["x"].values) / RUNS)


def test_the_best_head_after() -> None:
    values = TASK["y"].sel(token_class="sep").values
    means = {(i, j): sum(run[i, j] for run in values) / RUNS for i in range(LAYERS) for j in range(HEADS)}
    layer, head = max(means, key=means.get)
    found = run_extractors.best_after("y", token_class="sep")(TASK)
    assert (found.number, found.of) == (pytest.approx(100 * means[layer, head]), f"{layer + 1}-{head + 1}")


def test_a_head_by_its_number() -> None:
    read = run_extractors.at_head(7, 2, "y", token_class="noun")
    assert read(TASK).number == pytest.approx(100 * np.mean([run[6, 1, 0] for run in TASK["y"].values]))
    before = read(BEFORE)
    assert (before.number, before.of) == (pytest.approx(100 * BEFORE["y"].values[6, 1, 0]), "7-2")
    with pytest.raises(NotMeasuredError, match=r"^the model has no head 12-1$"):
        run_extractors.at_head(12, 1, "y", token_class="noun")(TASK)


def test_layers_by_their_depth() -> None:
    # Of 11 layers, 10 and 11 lie deeper than ten twelfths.
    deep = run_extractors.of_deep_layers("x", 10 / 12, scale=1.0)(TASK)
    assert deep == pytest.approx([run[9:].mean() for run in TASK["x"].values])
    others = run_extractors.least_of_other_layers("x", 10 / 12, scale=1.0)(TASK)
    assert others == pytest.approx([min(layer.mean() for layer in run[:9]) for run in TASK["x"].values])
    last = run_extractors.of_deep_layers("y", 0.999, token_class="sep")(TASK)
    assert last == pytest.approx([100 * run[10, :, 1].mean() for run in TASK["y"].values])
    with pytest.raises(NotMeasuredError, match=r"^the model has no other layers$"):
        run_extractors.least_of_other_layers("x", 0.5)(TASK.isel(layer=[10]).assign_coords(layer=[1]))


def test_the_mean_over_heads_of_a_class() -> None:
    found = run_extractors.of_heads_mean("y", token_class="noun")(TASK)
    assert found == pytest.approx([100 * run[..., 0].mean() for run in TASK["y"].values])


def test_task_against_control() -> None:
    of = run_extractors.of_average_head("x")
    found = run_extractors.rank_sum_p(run_extractors.at(of, 0), run_extractors.at(of, 1))(TASK, CONTROL)
    one, other = ([run.mean() for run in table["x"].values] for table in (TASK, CONTROL))
    assert (found.number, found.of) == (pytest.approx(mannwhitneyu(one, other, method="exact").pvalue), "5 and 7 runs")


@pytest.mark.parametrize(("one", "other", "least"), [(2, 7, "0.056"), (3, 3, "0.1"), (1, 7, "0.25")])
def test_runs_too_few_to_differ_are_not_judged(one, other, least) -> None:
    of = run_extractors.of_average_head("x")
    read = run_extractors.rank_sum_p(run_extractors.at(of, 0), run_extractors.at(of, 1))
    with pytest.raises(NotMeasuredError) as caught:
        read(TASK.isel(run=slice(one)), CONTROL.isel(run=slice(other)))
    assert str(caught.value) == f"{one} and {other} runs cannot give a p-value below {least}; take more seeds"


def test_selectivity() -> None:
    one, other = (100 * table["accuracy"].values.mean() for table in (TASK, CONTROL))
    found = run_extractors.selectivity(TASK, CONTROL)
    assert (found.number, found.of) == (pytest.approx(one - other), f"{one:.1f} less {other:.1f}")


@pytest.mark.parametrize(
    ("read", "tables", "why"),
    [
        (run_extractors.of_average_head("z"), (TASK,), "the table has no z of several runs"),
        (run_extractors.of_average_head("x"), (BEFORE,), "the table has no x of several runs"),
        (run_extractors.score("task_f1"), (TASK,), "the runs have no task f1"),
        (run_extractors.best_after("y", token_class="verb"), (TASK,), "the corpus has no token_class verb"),
        (run_extractors.best_after("z"), (TASK,), "the table has no z"),
        (run_extractors.of_best_head("x", "z"), (BEFORE, TASK), "the table has no z"),
    ],
)
def test_what_is_not_there_is_not_measured(read, tables, why) -> None:
    with pytest.raises(NotMeasuredError) as caught:
        read(*tables)
    assert str(caught.value) == why
