"""A folder of runs on disk: written whole, read back, and refused where it is not what it says."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headscope import runs
from headscope.errors import HeadscopeError
from headscope.runs import Run, Runs, selectivity


def made(folder: Path, accuracies: dict[int, float], **changes: object) -> Runs:
    """Runs of the given accuracies on the test split, whose models are there."""
    of = []
    for seed, accuracy in accuracies.items():
        (folder / f"seed-{seed}").mkdir(parents=True)
        (folder / f"seed-{seed}" / "model.safetensors").write_bytes(b"weights")
        epochs = ({"test": {"accuracy": 0.0}}, {"test": {"accuracy": accuracy}})
        of.append(Run(f"seed-{seed}", seed, 2, epochs, str(seed) * 64))
    settings = {"epochs": 2, "learning_rate": 4e-5}
    return replace(
        Runs(folder, "negation", False, "minilm", "0" * 64, "validation", "f1", settings, tuple(of)), **changes
    )


def test_what_is_written_is_read(tmp_path) -> None:
    written = made(tmp_path, {2: 0.5, 3: 0.25})
    assert runs.write(written) == tmp_path / "runs.json"
    assert runs.read(tmp_path) == written
    assert [written.path(run).name for run in written.runs] == ["seed-2", "seed-3"]
    assert written.runs[0].scores == {"test": {"accuracy": 0.5}}


def test_weights_may_be_in_several_files(tmp_path) -> None:
    runs.write(made(tmp_path, {2: 0.5}))
    (tmp_path / "seed-2" / "model.safetensors").rename(tmp_path / "seed-2" / "model-00001-of-00002.safetensors")
    assert len(runs.read(tmp_path).runs) == 1


def refusal(folder: Path) -> str:
    with pytest.raises(HeadscopeError) as refused:
        runs.read(folder)
    return str(refused.value)


def test_folders_that_hold_no_runs(tmp_path) -> None:
    assert refusal(tmp_path) == f"{tmp_path} holds no runs.json; give a folder that `headscope tune` wrote."
    runs.write(made(tmp_path, {}))
    path = tmp_path / "runs.json"
    assert refusal(tmp_path) == f"{path} lists no finished run; go on with `headscope tune --resume`."
    assert runs.read(tmp_path, empty=True).runs == ()


def test_runs_that_repeat(tmp_path) -> None:
    both = made(tmp_path, {2: 0.5, 3: 0.25})
    path = runs.write(replace(both, runs=(both.runs[0], replace(both.runs[1], seed=2))))
    said = f"{path} lists the {{}} more than once; runs differ in their seeds, so take one out."
    assert refusal(tmp_path) == said.format("seed 2")
    runs.write(replace(both, runs=(both.runs[0], replace(both.runs[1], name="seed-2"))))
    assert refusal(tmp_path) == said.format("name seed-2")


def test_a_run_without_its_model(tmp_path) -> None:
    path = runs.write(made(tmp_path, {2: 0.5}))
    (tmp_path / "seed-2" / "model.safetensors").unlink()
    assert refusal(tmp_path) == (
        f"{path} lists the run seed-2, but {tmp_path / 'seed-2'} holds no model.safetensors; copy that folder again, "
        "or take the run out of the list."
    )


def of_run(**changes: object) -> Callable[[dict[str, Any]], object]:
    return lambda stored: stored["runs"][0].update(changes)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda stored: stored["runs"][0].pop("seed"), "'seed'"),
        (lambda stored: stored.pop("runs"), "'runs'"),
        (lambda stored: stored.update(runs=3), "runs is 3"),
        (lambda stored: stored.update(runs=[3]), ""),
        (lambda stored: stored.update(settings=None), "settings is None"),
        (lambda stored: stored.update(control=1), "control is 1"),
        (lambda stored: stored.update(colour="red"), "colour"),
        (of_run(best_epoch=3), "the best epoch of seed-2 is 3, and it lists 2"),
        (of_run(epochs=[]), "the best epoch of seed-2 is 2, and it lists 0"),
        (of_run(best_epoch=True), "best_epoch is True"),
        (of_run(seed="2"), "seed is '2'"),
        (of_run(weights_sha256=None), "weights_sha256 is None"),
        (of_run(epochs="ab"), "epochs is 'ab'"),
        (of_run(seed=2**63), "the seed of seed-2 is no number of 64 bits"),
        (of_run(epochs=[{"test": {"f1": 10**400}}, {}]), "too large"),
        (of_run(weights_sha256="\ud83d"), "weights_sha256 is '\\ud83d'"),
        (of_run(name="a" * 201), f"the name '{'a' * 60}' ... is 201 bytes long"),
        (of_run(name="a\0"), "name is 'a\\x00'"),
        (lambda stored: stored.update(model="a\x1b[2J"), "model is 'a\\x1b[2J'"),
        (lambda stored: stored.update(task=["a" * 99]), f"task is ['{'a' * 58})"),
        (of_run(epochs=[{"test": 3}, {}]), "no attribute 'values'"),
        (of_run(epochs=[{"test": {"f1": "x"}}, {}]), "seed-2 has the score 'x'"),
        (of_run(epochs=[{"test": {"f1": float("nan")}}, {}]), "seed-2 has the score nan"),
        *(
            (of_run(name=name), f"the run {name!r} is not named as a")
            for name in ("../a", "..", ".", "", "a/b", "/a", "a/")
        ),
    ],
)
def test_damage(tmp_path, change, reason) -> None:
    path = runs.write(made(tmp_path, {2: 0.5}))
    stored = json.loads(path.read_text())
    change(stored)
    path.write_text(json.dumps(stored))
    said = refusal(tmp_path)
    assert said.startswith(f"{path} is damaged (")
    assert reason in said
    assert said.endswith("); copy it again, or tune again.")
    for content, sentence in {"{": "", "[" * 5000 + "]" * 5000: "100 deep", "9" * 5000: "digits", "3": "pop"}.items():
        path.write_text(content)
        assert refusal(tmp_path).startswith(f"{path} is damaged (")
        assert sentence in refusal(tmp_path)


def test_another_version(tmp_path) -> None:
    path = runs.write(made(tmp_path, {2: 0.5}))
    path.write_text(path.read_text().replace('"version": 2', '"version": 7'))
    expected = f"{path} has version {{}}, and this headscope reads version 2; tune again into another folder."
    assert refusal(tmp_path) == expected.format(7)
    # As the first version wrote it.
    old_run = {"name": "seed-2", "seed": 2, "kept": 1, "epochs": [{"test": {"f1": 0.5}}], "weights_sha256": "0" * 64}
    old_file = {
        "format": 1, "task": "tags", "control": False, "model": "minilm", "weights_sha256": "1" * 64,
        "select": "validation", "metric": "f1", "settings": {"epochs": 1}, "runs": [old_run],
    }  # fmt: skip
    path.write_text(json.dumps(old_file, indent=2) + "\n")
    assert refusal(tmp_path) == expected.format(1)
    path.write_text(json.dumps({name: value for name, value in old_file.items() if name != "format"}))
    assert refusal(tmp_path) == f"{path} is damaged ('format'); copy it again, or tune again."


def test_selectivity_is_of_the_seeds_that_both_have(tmp_path) -> None:
    task, control = made(tmp_path / "a", {2: 0.75, 3: 0.5, 5: 0.9}), made(tmp_path / "b", {3: 0.25, 2: 0.875, 7: 0.1})
    assert selectivity(task, control) == {2: -0.125, 3: 0.25}
    of_numbers = replace(task, runs=(replace(task.runs[0], epochs=({"test": {"pearson": 0.5}},), best_epoch=1),))
    assert selectivity(of_numbers, control) == {}
