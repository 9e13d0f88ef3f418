"""Worlds in which attention adds nothing to words and distances, and one in which it does: what the probes say."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from headscope.learn import probe, probe_training
from headscope.learn.probe import (
    ATTENTION,
    CONTROLLED,
    DISTANCES,
    PROBES,
    RIGHT_BRANCHING,
    UNTRAINED,
    WORDS,
    Fitting,
    run_steps,
    split,
)
from headscope.learn.probe_table import tabulate_probes
from probe_worlds import (
    TEXTS,
    Answer,
    at_random,
    by_distance,
    by_head,
    by_type,
    make_data,
    make_vectors,
    nearest_of_type,
)
from probe_worlds import WORDS as LENGTH

EPOCHS = 30
"""The most; in the worlds of one answer for each distance, every further epoch is a little better."""


@pytest.fixture(autouse=True)
def _few_epochs(monkeypatch) -> None:
    monkeypatch.setattr(probe_training, "MAX_EPOCHS", EPOCHS)


ABOUT = {"model": "planted", "corpus": "a world", "links": "pattern"}


def measure(
    folder: Path, answer: Answer, *, style: str = "random", seeds: tuple[int, ...] = (0, 1), whole: bool = True,
    names: Sequence[str] = (RIGHT_BRANCHING, DISTANCES, ATTENTION, WORDS),
) -> xr.Dataset:  # fmt: skip
    """What probes find in a world: all of them, with the control task and the code, or some."""
    data = make_data(folder, answer, style=style, blocks=1)
    by_seed = {}
    for seed in seeds:
        fitting = Fitting(split(data, seed), None, make_vectors(), 1, seed, "word")
        steps = fitting.steps(control=whole, code_length=whole, rank=None, layers=0)
        by_seed[seed] = dict(run_steps(steps if whole else {name: steps[name] for name in names}, {}))
    return tabulate_probes(by_seed, data, ["linked"], tests_per_text=1).assign_attrs(ABOUT)


def gain(table: xr.Dataset, measured: str = WORDS, baseline: str = DISTANCES) -> tuple[float, float, float]:
    places = {"probe": measured, "baseline": baseline, "relation": "all"}
    return tuple(float(table[f"probe_gain{end}"].sel(places)) for end in ("", "_lower", "_upper"))


@pytest.mark.full
def test_where_a_head_marks_the_link_attention_adds_to_words(tmp_path: Path) -> None:
    planted = measure(tmp_path, by_head(2), seeds=(0,), whole=False)
    value, lower, upper = gain(planted)
    assert lower > 0.3
    assert lower <= value <= upper
    weights = planted["probe_weight"].sel(layer=1)
    assert int(weights.argmax("head").sel(direction="dependent_to_head")) + 1 == 3
    planted_one = weights.sel(head=3, direction="dependent_to_head")
    assert float(np.abs(weights).sum() - planted_one) < 0.5 * float(planted_one)


@pytest.mark.full
def test_the_control_task_and_the_code_tell_probes_that_memorize(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(probe, "PORTIONS", (0.02, 0.08, 0.32, 1.0))
    planted = measure(tmp_path, by_head(2), seeds=(0,))
    assert [*planted["probe"].values] == [name for name in PROBES if name != UNTRAINED]
    selectivity = planted["probe_selectivity"].sel(controlled=[*CONTROLLED])
    assert float(selectivity.sel(controlled=ATTENTION)) > 0.3
    accuracy = planted["control_accuracy"]
    # Word types alone tell the control's answer; a probe without words can only guess.
    assert float(accuracy.sel(controlled=DISTANCES)) > float(accuracy.sel(controlled=ATTENTION)) + 0.2
    bits = planted["probe_code_length"]
    assert float(bits.sel(controlled=ATTENTION)) < float(bits.sel(controlled=DISTANCES))
    # Chance has six candidates.
    ratio = np.log2(LENGTH - 1) / float(bits.sel(controlled=ATTENTION))
    assert float(planted["probe_compression"].sel(controlled=ATTENTION)) == pytest.approx(ratio, rel=0.1)


@pytest.mark.full
@pytest.mark.parametrize(
    ("answer", "style"),
    [
        (at_random, "random"), (by_distance, "nearby"), (by_type, "lexical"), (nearest_of_type, "near and lexical"),
    ],
)  # fmt: skip
def test_where_attention_knows_no_more_it_adds_nothing(tmp_path, answer: Answer, style: str) -> None:
    table = measure(tmp_path, answer, style=style, seeds=(0,), whole=False)
    _, lower, _ = gain(table)
    assert lower <= 0.001


@pytest.mark.full
def test_accuracies_are_pooled_over_seeds(tmp_path: Path) -> None:
    planted = measure(tmp_path, by_head(2), whole=False, names=(RIGHT_BRANCHING, ATTENTION))
    assert [*planted["relation"].values] == ["all", "linked"]
    # Two of five seeds test on two fifths of the texts, each once.
    assert planted["probe_count"].sel(relation="all") == 2 * 4 * TEXTS * LENGTH
    by_seed = planted["probe_accuracy_by_seed"]
    np.testing.assert_allclose(by_seed.mean("seed"), planted["probe_accuracy"].sel(relation="all"))
    inside = (planted["probe_accuracy_lower"] <= planted["probe_accuracy"]) & (
        planted["probe_accuracy"] <= planted["probe_accuracy_upper"]
    )
    assert inside.all()
