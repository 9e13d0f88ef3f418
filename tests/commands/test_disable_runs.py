"""`headscope disable --runs`: planted runs that need a head, all of them, one of them or none."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import headscope
from headscope.errors import HeadscopeError
from headscope.intervene import effect
from headscope.learn.task import Task
from headscope.view.effects_report import list_effects
from planted_task import make_task
from task_runs import plant_runs

SETTINGS = {"placebos": 3, "progress": False}


def measure(folder: Path, *, task: Task | None = None, out: str = "out", **settings):
    model, finished = str(folder / "model"), folder / "runs"
    return headscope.measure_effects(model, task or make_task(), folder / out, runs=finished, **SETTINGS | settings)


@pytest.mark.full
def test_a_head_that_each_run_needs_is_found_and_no_other(tmp_path: Path) -> None:
    plant_runs(tmp_path, [[(2, 3)]] * 3)
    table = measure(tmp_path, figures=True)
    assert table["run"].values.tolist() == ["seed-1", "seed-2", "seed-3"]
    assert table["seed"].values.tolist() == [1, 2, 3]
    rows = pd.read_csv(tmp_path / "out" / "effects.csv", dtype={"unit": str})
    heads = rows[(rows["kind"] == "head") & (rows["metric"] == "accuracy")]
    assert heads[heads["verdict"] == "needed"][["run", "unit"]].values.tolist() == [
        ["seed-1", "2-3"], ["seed-2", "2-3"], ["seed-3", "2-3"],
    ]  # fmt: skip
    summary = pd.read_csv(tmp_path / "out" / "summary.csv", dtype={"unit": str})
    for metric, verdict in (("accuracy", "needed in 3 of 3 runs"), ("loss", "needed")):
        heads = summary[(summary["kind"] == "head") & (summary["metric"] == metric)].set_index("unit")
        assert heads["verdict"]["2-3"] == verdict
        assert heads["needed_in"].to_dict() == {unit: 3 * (unit == "2-3") for unit in heads.index}
        assert set(heads["verdict"].drop("2-3")) == {"no effect seen"}
    read = headscope.read_table(tmp_path / "out" / "effects.nc")
    np.testing.assert_array_equal(read["effect_loss"], table["effect_loss"])
    assert [run["name"] for run in json.loads(read.attrs["runs"])] == ["seed-1", "seed-2", "seed-3"]
    assert (tmp_path / "out" / "figures" / "heads-accuracy.svg").is_file()


@pytest.mark.full
def test_each_run_is_measured_as_by_itself_with_other_placebos(tmp_path: Path) -> None:
    finished = plant_runs(tmp_path, [[(2, 3)], [(1, 2)]])
    table = measure(tmp_path, heads="2-3,1-2")
    for run in finished.runs:
        alone = headscope.measure_effects(
            str(finished.path(run)), make_task(), tmp_path / f"{run.name}-alone", seed=run.seed, heads="2-3,1-2",
            **SETTINGS,
        )  # fmt: skip
        for name in ("effect_loss", "effect_loss_lower", "effect_loss_placebo", "whole_loss"):
            np.testing.assert_array_equal(table[name].sel(run=run.name), alone[name], err_msg=name)


@pytest.mark.full
def test_runs_that_read_nothing_need_no_head(tmp_path: Path) -> None:
    plant_runs(tmp_path, [[]] * 3)
    frame = list_effects(headscope.analyse.summarize_effects(measure(tmp_path)))
    frame = frame[frame["metric"].isin(["accuracy", "f1", "loss"])]
    assert len(frame) == 3 * (15 + 3)
    assert not frame["verdict"].str.contains("needed|better").any()


def test_a_head_that_one_run_needs_is_said_to_be_needed_in_one(tmp_path: Path) -> None:
    plant_runs(tmp_path, [[(2, 3)], [(3, 1)], [(3, 1)]])
    frame = list_effects(headscope.analyse.summarize_effects(measure(tmp_path, heads="2-3,3-1,1-1")))
    verdicts = frame[frame["metric"] == "accuracy"].set_index("unit")["verdict"].to_dict()
    assert verdicts == {"1-1": "no effect seen", "2-3": "needed in 1 of 3 runs", "3-1": "needed in 2 of 3 runs"}


@pytest.mark.full
def test_a_killed_run_goes_on_and_gives_the_same(tmp_path: Path, monkeypatch) -> None:
    plant_runs(tmp_path, [[(2, 3)], [(3, 1)]])
    settings = {"heads": "2-3,1-2", "placebos": 2, "batch_tokens": 512}
    expected = measure(tmp_path, out="whole", **settings)
    monkeypatch.setattr("headscope.commands.unit_effects.SAVE_EVERY", 0.0)
    true_step, steps = effect._Passes.run_from_heads, []

    def fail_in_the_second_run(*arguments):
        steps.append(1)
        if (tmp_path / "out" / ".effects.partial.seed-2.npz").is_file():
            raise KeyboardInterrupt
        return true_step(*arguments)

    monkeypatch.setattr(effect._Passes, "run_from_heads", fail_in_the_second_run)
    with pytest.raises(KeyboardInterrupt):
        measure(tmp_path, **settings)
    before = len(steps)
    monkeypatch.setattr(effect._Passes, "run_from_heads", lambda *arguments: steps.append(1) or true_step(*arguments))
    resumed = measure(tmp_path, resume=True, **settings)
    assert len(steps) - before < before  # the first run was not run again
    for name in expected.data_vars:
        np.testing.assert_array_equal(resumed[name], expected[name], err_msg=str(name))
    assert not [*(tmp_path / "out").glob(".*.npz")]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    plant_runs(folder, [[(2, 3)]] * 2)
    rows = make_task(23).splits["test"]
    for name in ("nouns", "verbs"):
        (folder / name).mkdir()
        for split in ("train", "validation", "test"):
            lines = [f"{row.texts[0]}\t{row.label}\n" for row in rows]
            (folder / name / f"{split}.tsv").write_text("text\tlabel\n" + "".join(lines))
    return folder


def test_the_command_prints_the_summary(run, runs: Path, tmp_path: Path) -> None:
    code, shown, _ = run(
        "disable", runs / "model", runs / "nouns", "--runs", runs / "runs", "--heads", "2-3,1-2", "--placebos", 3,
        "-o", tmp_path / "out",
    )  # fmt: skip
    assert code == 0
    assert "means over 2 runs: accuracy 1.000" in shown
    assert "needed in 2 of 2 runs" in shown


REFUSED = {
    "another task": (
        ("{folder}/model", "{folder}/verbs", "--runs", "{folder}/runs"),
        "the runs of {folder}/runs were tuned on nouns, and the task is verbs; name the folder of the runs on it.",
    ),
    "no list": (
        ("{folder}/model", "{folder}/nouns", "--runs", "{folder}/model"),
        "{folder}/model holds no runs.json; give a folder that `headscope tune` wrote.",
    ),
    "texts": (
        ("{folder}/model", "grammar:7", "--runs", "{folder}/runs"),
        "grammar:7 has no labels, so no runs are tuned on it; name the task of the runs, nouns, or leave out --runs.",
    ),
    "pairs": (
        ("{folder}/model", "{folder}/nouns", "--runs", "{folder}/runs", "--pairs", "3"),
        "the top heads and pairs are chosen by their effects, which differ from run to run; with --runs name the heads "
        "(--heads), or disable all.",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_wrong_is_one_sentence(run, runs: Path, tmp_path: Path, what: str) -> None:
    arguments, sentence = REFUSED[what]
    given = [argument.format(folder=runs) for argument in arguments]
    code, _, complaint = run("disable", *given, "-o", tmp_path / "out")
    assert (code, complaint.splitlines()[-1]) == (2, f"headscope: {sentence.format(folder=runs)}")


def test_runs_of_a_control_and_of_another_model_are_refused(tmp_path: Path) -> None:
    plant_runs(tmp_path / "control", [[(2, 3)]], control=True)
    with pytest.raises(HeadscopeError, match="were tuned on the control of nouns, and the task is nouns"):
        measure(tmp_path / "control")
    plant_runs(tmp_path, [[(2, 3)]])
    other = str(tmp_path / "runs" / "seed-1")
    with pytest.raises(HeadscopeError, match="give the model that they were tuned from"):
        headscope.measure_effects(other, make_task(), tmp_path / "out", runs=tmp_path / "runs", **SETTINGS)


def test_a_run_of_another_shape_is_refused(tmp_path: Path) -> None:
    finished = plant_runs(tmp_path, [[(2, 3)]])
    config = finished.path(finished.runs[0]) / "config.json"
    stored = json.loads(config.read_text())
    config.write_text(json.dumps(stored | {"num_attention_heads": 1}))
    with pytest.raises(HeadscopeError, match=r"the run seed-1 of .* differ in .*heads"):
        measure(tmp_path)
