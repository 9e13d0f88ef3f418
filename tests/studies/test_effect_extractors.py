"""What a study reads from effects of disabling, in worlds that we make: gains of noise, and of one head."""

import json

import numpy as np
import pytest
import xarray as xr
from scipy.stats import ttest_1samp

from headscope.studies.effect_extractors import best_gain, count_better_without, layer_gain, mean_gain
from headscope.studies.run_extractors import mean_over_runs
from headscope.studies.study import NotMeasuredError

RUNS, LAYERS, HEADS = 5, 3, 7


def make_effects(gains: np.ndarray, placebos: np.ndarray, task: str = "mrpc") -> xr.Dataset:
    """A table of runs: the gains from heads, those of their placebos, and ten times as large ones of layers."""
    dims = ("run", "how", "subset", "layer", "head")
    values = {"effect_accuracy": gains, "effect_accuracy_placebo": placebos}
    variables = {name: (dims, each[:, None, None]) for name, each in values.items()}
    variables |= {f"effect_accuracy{end}": (dims, np.ones((len(gains), 1, 1, LAYERS, HEADS))) for end in (
        "_p_corrected", "_placebo_p_corrected")}  # fmt: skip
    variables |= {f"layer_{name}": (dims[:-1], 10 * each.mean(-1)[:, None, None]) for name, each in values.items()}
    variables |= {"whole_accuracy": (("run", "subset"), np.full((len(gains), 1), 0.8))}
    variables |= {"removed_norm": (dims[:2] + dims[3:], np.ones((len(gains), 1, LAYERS, HEADS)))}
    variables |= {"layer_removed_norm": (("run", "how", "layer"), np.ones((len(gains), 1, LAYERS)))}
    metric = {"name": "accuracy", "title": "accuracy", "units": "share", "better": 1}
    coords = {"how": ["uniform"], "subset": ["all"], "layer": [1, 2, 3], "head": [*range(1, HEADS + 1)]}
    runs = [{"name": f"seed-{seed}"} for seed in range(1, len(gains) + 1)]
    coords["run"] = [run["name"] for run in runs]
    attrs = {"metrics": json.dumps([metric]), "runs": json.dumps(runs), "task": task}
    return xr.Dataset(variables, coords=coords, attrs=attrs)


@pytest.fixture
def noise() -> np.ndarray:
    return np.random.default_rng(0).normal(0, 0.01, (RUNS, LAYERS, HEADS))


def test_the_best_head_is_scored_on_runs_on_which_it_was_not_chosen(noise) -> None:
    gains = noise.copy()
    gains[:, 1, 4] += 0.05
    best = best_gain("head")(make_effects(gains, noise))
    assert (best.detail, best.number) == ("2-5", pytest.approx(100 * gains[:, 1, 4].mean()))
    assert (best.held_out.detail, best.held_out.number) == ("2-5", pytest.approx(best.number))
    interval = ttest_1samp(100 * gains[:, 1, 4], 0).confidence_interval(0.95)
    assert (best.held_out.lower, best.held_out.upper) == (pytest.approx(interval.low), pytest.approx(interval.high))
    beyond = best_gain("head", beyond_placebos=True)(make_effects(gains, noise))
    assert (beyond.detail, beyond.number) == ("2-5", pytest.approx(5))


def test_the_best_of_noise_is_no_gain_on_other_runs() -> None:
    generator, chosen, held_out = np.random.default_rng(3), [], []
    for _ in range(200):
        best = best_gain("head")(make_effects(*generator.normal(0, 0.01, (2, RUNS, LAYERS, HEADS))))
        chosen.append(best.number)
        held_out.append(best.held_out.number)
    assert np.mean(chosen) > 0.5
    # The mean of 200, each with a standard deviation of about 1 / sqrt(5).
    assert abs(np.mean(held_out)) < 0.1


def test_means_are_those_over_heads_and_layers(noise) -> None:
    effects = make_effects(noise, 2 * noise)
    of_runs = 100 * noise.mean((1, 2))
    average = mean_over_runs(mean_gain("head"))(effects)
    assert average.number == pytest.approx(of_runs.mean())
    assert average.upper == pytest.approx(ttest_1samp(of_runs, 0).confidence_interval(0.95).high)
    assert mean_over_runs(mean_gain("head", placebos=True))(effects).number == pytest.approx(2 * average.number)
    first = mean_over_runs(layer_gain(1))(effects).number
    assert first == pytest.approx(1000 * noise[:, 0].mean())
    assert best_gain("layer")(effects).detail in {"1", "2", "3"}


def test_a_claim_about_one_task_is_not_judged_on_another(noise) -> None:
    rte = layer_gain(1, tasks=("rte",))
    assert len(rte(make_effects(noise, noise, "rte"))) == RUNS
    with pytest.raises(NotMeasuredError, match="the paper says this of rte, and the runs are of another task"):
        rte(make_effects(noise, noise))


def test_heads_that_are_better_disabled_are_listed(noise) -> None:
    gains = noise.copy()
    gains[:, 2, 0] += 0.5
    better = count_better_without("head")(make_effects(gains, noise[::-1]))
    assert (better.number, better.detail, better.lower) == (1, "3-1", 1)
    none = count_better_without("head")(make_effects(noise, noise[::-1]))
    assert (none.number, none.lower) == (0, 0)
    assert none.upper > 10  # the intervals of the others reach above 0


def test_with_one_run_no_head_is_best(noise) -> None:
    with pytest.raises(NotMeasuredError, match="take 2 seeds"):
        best_gain("head")(make_effects(noise[:1], noise[:1]))
