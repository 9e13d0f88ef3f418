"""`headscope tune` as a user types it."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import headscope
import tiny
import toys
from headscope import runs
from headscope.commands.tune.request import Tune, TypedTune
from headscope.errors import HeadscopeError
from headscope.learn import training_settings

LABELS = {"few": "no", "some": "no", "many": "yes"}


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("model"))


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


REFUSED = {
    "no such split": (["--select", "train"], "--select is 'train'; give validation or test."),
    "no such precision": (["--precision", "int8"], "--precision is 'int8'; give float32, bfloat16 or float16."),
    "no epoch": (["--epochs", 0], "--epochs is 0; give 1 or more."),
    "no example in a step": (["--batch-size", 0], "--batch-size is 0; give 1 or more."),
    "no example": (["--max-examples", 0], "--max-examples is 0; give 1 or more."),
    "no room": (["--max-tokens", 4], "--max-tokens is 4; give 5 or more."),
    "no rate": (["--learning-rate", 0], "the learning rate 0.0 is not above 0; give one such as 4e-5."),
    "no number": (["--seeds", "many"], "--seeds is 'many'; give a whole number."),
    "no run": (["--seeds", 0], "there is no seed, and so no run; give at least one."),
    "a seed twice": (
        ["--seed", 2, "--seed", 2],
        "the seed 2 is given more than once; runs differ in their seeds.",
    ),
    "a file": (["-o", __file__], f"{__file__} is a file; name a folder for the runs, which may be a new one."),
}


@pytest.mark.parametrize("case", REFUSED)
def test_tune_refuses_in_one_sentence(run, table, model, tmp_path, case) -> None:
    arguments, sentence = REFUSED[case]
    code, printed, complaint = run("tune", table, model, "-o", tmp_path / "out", *arguments)
    assert (code, printed, complaint) == (2, "", f"headscope: {sentence}\n")
    assert not (tmp_path / "out").exists()


def test_a_task_that_there_is_not_is_refused(run, model) -> None:
    with pytest.raises(HeadscopeError) as refused:
        headscope.learn.read_task("nothing")
    assert run("tune", "nothing", model) == (2, "", f"headscope: {refused.value}\n")


def test_the_shortest_example_and_the_choices_are_those_of_training() -> None:
    options = Tune.options
    assert options["max_tokens"].at_least == training_settings.LEAST_TOKENS
    assert options["precision"].choices == training_settings.PRECISIONS
    assert options["select"].choices == training_settings.SELECT


def test_seeds_are_a_number_or_the_seeds_themselves() -> None:
    task = toys.classification()
    assert Tune(task, "minilm", "runs", seeds=3).each_seed == (1, 2, 3)
    assert Tune(task, "minilm", "runs", seeds=iter([5, 2])).each_seed == (5, 2)
    typed = {"task": "negation", "model": "minilm", "out": "runs"}
    assert TypedTune.parse(typed | {"seeds": "2"}).each_seed == (1, 2)
    assert TypedTune.parse(typed | {"seed": ["7", "3"]}).each_seed == (7, 3)
    with pytest.raises(HeadscopeError, match=r"^the seed 3 is given more than once; runs differ in their seeds\.$"):
        headscope.tune(task, "minilm", "runs", seeds=[3, 3])


def test_what_is_wrong_is_refused_before_torch_is_loaded(table, model) -> None:
    script = (
        "import sys; from headscope.commands.tune.request import Tune\n"
        f"Tune({str(table)!r}, {str(model)!r}, 'new').check(lambda *step: None); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr
