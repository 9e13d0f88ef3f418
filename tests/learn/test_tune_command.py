"""`headscope tune` as a user types it."""

import re
from pathlib import Path

import numpy as np
import pytest

import headscope
import toys
from headscope import runs

LABELS = {"few": "no", "some": "no", "many": "yes"}


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    """A user's own task, in TSV."""
    folder = tmp_path_factory.mktemp("mine")
    for split, examples in toys.classification().splits.items():
        rows = [f"{example.texts[0]}\t{LABELS[example.label]}" for example in examples]
        (folder / f"{split}.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    return folder


FAST = ("--epochs", 1, "--learning-rate", "1e-3", "--batch-size", 7)


@pytest.mark.full
def test_tune_writes_runs_and_says_how_well_they_learnt(run, table, model, tmp_path) -> None:
    out = tmp_path / "out"
    code, output, _ = run("tune", table, model, "-o", out, "--seeds", 3, "--control", "--max-examples", 53, *FAST)
    assert code == 0
    task_runs, control = runs.read(out), runs.read(out / "control")
    assert [finished.seed for finished in task_runs.runs] == [finished.seed for finished in control.runs] == [1, 2, 3]
    assert task_runs.settings["examples"]["train"] == control.settings["examples"]["train"] == 53
    assert task_runs.settings["skipped"]["reading"]["training examples beyond a sample of 53"] == 48
    accuracies = [finished.scores["test"]["accuracy"] for finished in task_runs.runs]
    assert re.search(rf"mean ± sd .* {np.mean(accuracies):.3f} ± {np.std(accuracies):.3f} ", output)
    assert f"{Path(model).name} tuned on {table.name}: the test split" in output.replace("\n", "")
    assert "the control of" in output
    selective = list(runs.selectivity(task_runs, control).values())
    assert f"{np.mean(selective):.3f} ± {np.std(selective):.3f} over 3 seeds" in output
    assert f"The runs are listed in {out / 'runs.json'}." in output

    code, _, complaint = run("tune", table, model, "-o", out, "--seed", 5, *FAST)
    assert code == 2
    assert "holds runs (seed-1, seed-2, seed-3); add --resume" in complaint
    code, output, _ = run(
        "tune", table, model, "-o", out, "--seed", 5, "--seed", 2, "--max-examples", 53, *FAST, "--resume"
    )
    assert code == 0
    assert [finished.seed for finished in runs.read(out).runs] == [1, 2, 3, 5]
    assert headscope.load(out / "seed-5").weights_sha256 == runs.read(out).runs[3].weights_sha256


def test_selected_on_test_the_control_has_labels_for_all_that_is_trained_on(run, model, tmp_path) -> None:
    splits = {split: examples[:17] for split, examples in toys.tagging().splits.items()}
    folder, held = tmp_path / "mine", ("zebra", "0")  # a word of which the training file knows nothing
    folder.mkdir()
    pairs = {
        split: [
            [(word, tag or "0") for word, tag in zip(example.words, example.tags, strict=True)] for example in examples
        ]
        for split, examples in splits.items()
    }
    pairs["validation"][2].append(held)
    for split, examples in pairs.items():
        rows = ["".join(f"{word}\t{tag}\n" for word, tag in example) for example in examples]
        (folder / f"{split}.tsv").write_text("\n".join(rows))
    out = tmp_path / "out"
    assert run("tune", folder, model, "-o", out, "--seeds", 1, "--control", "--select", "test", *FAST)[0] == 0
    trained = pairs["train"] + pairs["validation"]
    types = {word.casefold() for example in trained for word, _ in example}
    for group in (runs.read(out), runs.read(out / "control")):
        assert group.settings["examples"]["train"] == len(trained) == 28
    note = f"each of the {len(types)} word types of the training examples has one arbitrary label"
    assert note in group.settings["notes"]


def test_tune_refuses_in_one_sentence(run, table, model, tmp_path) -> None:
    code, _, complaint = run("tune", table, model, "-o", tmp_path / "out", "--select", "train")
    assert code == 2
    assert complaint.splitlines()[-1] == (
        "headscope: an epoch cannot be chosen on 'train'; choose it on validation or test."
    )
    code, _, complaint = run("tune", table, model, "-o", tmp_path / "out", "--seed", 2, "--seed", 2)
    assert (code, complaint.splitlines()[-1]) == (
        2, "headscope: the seed 2 is given more than once; runs differ in their seeds.",
    )  # fmt: skip
