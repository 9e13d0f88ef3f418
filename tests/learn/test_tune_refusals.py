"""What tuning refuses, in one sentence, before anything is trained."""

import importlib.util
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tiny
import toys
from headscope import runs
from headscope.errors import HeadscopeError
from headscope.learn import training
from headscope.learn.splits import sample_training
from headscope.learn.task import Example, Task
from headscope.learn.training_settings import Settings
from headscope.learn.tune import tune

TASK, TEXTS = toys.tagging(), toys.classification()


@pytest.fixture(autouse=True)
def _nothing_is_trained(monkeypatch) -> None:
    monkeypatch.setattr(training, "fit", lambda *_, **__: pytest.fail("trained"))


def refusal(task: Task, model: Path, out: Path, *, seeds=(1, 2), control=False, resume=False, **settings: Any) -> str:
    there = out.exists()
    with pytest.raises(HeadscopeError) as refused:
        tune(task, model, out, Settings(**settings), seeds=seeds, control=control, resume=resume)
    assert out.exists() == there
    return str(refused.value)


ARGUMENTS = {
    "the seed 3 is given more than once; runs differ in their seeds.": {"seeds": [3, 2, 3]},
    "there is no seed, and so no run; give at least one.": {"seeds": []},
    "the seeds -1 to 2 are not all from 0 to 4294967295; give others.": {"seeds": [2, -1]},
    "0 epochs train nothing; give 1 or more.": {"epochs": 0},
    "a batch of 0 examples trains nothing; give 1 or more.": {"batch_size": 0},
    "0 training examples are too few to train on; give 1 or more.": {"max_examples": 0},
    "the learning rate 0.0 is not above 0; give one such as 4e-5.": {"learning_rate": 0.0},
    "the learning rate nan is not above 0; give one such as 4e-5.": {"learning_rate": float("nan")},
    "4 tokens leave no room for an example; give 5 or more.": {"max_tokens": 4},
    "an epoch cannot be chosen on 'train'; choose it on validation or test.": {"select": "train"},
    "there is no precision 'int8'; there are float32, bfloat16, float16.": {"precision": "int8"},
    "the device 'cuda:3' names one GPU, and tuning uses all visible ones; give cuda, and choose the GPU by the "
    "environment: CUDA_VISIBLE_DEVICES=3.": {"device": "cuda:3"},
    (
        "'amounts' is not a control of 'marks': a control has the kind and the labels of its task; make it with "
        "make_control."
    ): {"control": replace(TEXTS, control=True)},
    "the control of marks holds out 11 examples for validation, and epochs are chosen on test; make it with "
    "make_control(merge_validation(task)).": {"control": toys.control(TASK), "select": "test"},
}


@pytest.mark.parametrize("sentence", ARGUMENTS)
def test_arguments(sentence, model, tmp_path) -> None:
    assert refusal(TASK, model, tmp_path / "out", **ARGUMENTS[sentence]) == sentence


def changed(task: Task, split: str, **changes: Any) -> Task:
    """The task with its eighth example of a split changed."""
    examples = list(task.splits[split])
    examples[7] = replace(examples[7], **changes)
    return replace(task, splits={**task.splits, split: tuple(examples)})


def only(task: Task, split: str, examples: tuple[Example, ...]) -> Task:
    return replace(task, splits={**task.splits, split: examples})


THREE = ("few", "many", "some")
UNTAGGED = tuple(replace(example, tags=(None,) * len(example.tags)) for example in TASK.splits["train"])
NEVER = tuple(replace(example, tags=tuple(tag and "0" for tag in example.tags)) for example in TASK.splits["test"])
UNSEEN = tuple(example for example in TEXTS.splits["train"] if example.label != "few")
SPLITS = (
    "give it examples, since a model is trained on `train`, its epoch is chosen on `validation`, and it is scored on "
    "`test`."
)
TASKS = {
    f"the validation split of marks is empty; {SPLITS}": only(TASK, "validation", ()),
    f"the train split of marks is empty; {SPLITS}": only(TASK, "train", ()),
    "test.tsv:7 has no label; the task amounts needs one for each example.": changed(TEXTS, "test", label=None),
    "test.tsv:7 has the label 'lots', and the task amounts has 'few', 'many', 'some'; correct it, or give splits with "
    "the same labels.": changed(TEXTS, "test", label="lots"),
    "train.tsv:7 has the label 'B', and the task marks has '0', '1'; correct it, or give splits with the same "
    "labels.": changed(TASK, "train", words=("dog",), tags=("B",)),
    "train.tsv:7 has 2 words and 1 tags; give each word a tag.": changed(
        TASK, "train", words=("a", "dog"), tags=("1",)
    ),
    "train.tsv:7 has 3 texts; give one or two.": changed(TEXTS, "train", texts=("a", "dog", "sees")),
    "validation.tsv:7 has the label 'many'; count needs a number.": changed(
        toys.regression(), "validation", label="many"
    ),
    "validation.tsv:7 has the label nan; count needs a number.": changed(
        toys.regression(), "validation", label=float("nan")
    ),
    "no example of the task marks has a label; give it files that have them.": only(TASK, "train", UNTAGGED),
    "the test split of marks never has the label '1', whose F1 is the score; give splits with the same labels.": only(
        TASK, "test", NEVER
    ),
    "the validation split of amounts has the label 'few' (validation.tsv:0), and the training split has only 'many', "
    "'some'; give splits with the same labels.": only(TEXTS, "train", UNSEEN),
    "the training split of amounts never has the label 'none'; give splits with the same labels.": replace(
        TEXTS, labels=(*THREE, "none")
    ),
    "the task marks has 1 label, and needs two or more; give it more labels.": replace(TASK, labels=("1",)),
    "the task amounts is scored by 'f1', which classification without a positive label does not have; it has "
    "accuracy, matthews.": replace(TEXTS, metric="f1"),
}


@pytest.mark.parametrize("sentence", TASKS)
def test_tasks(sentence, model, tmp_path) -> None:
    assert refusal(TASKS[sentence], model, tmp_path / "out") == sentence


def test_the_validation_split_may_be_empty_where_nothing_is_chosen_on_it(model, tmp_path) -> None:
    with pytest.raises(pytest.fail.Exception, match="trained"):
        tune(only(TASK, "validation", ()), model, tmp_path, Settings(select="test"), seeds=[1])


def test_a_model_that_is_none_for_the_task(tmp_path) -> None:
    bart = tiny.save(tmp_path / "bart", "bart")
    assert refusal(TASK, bart, tmp_path / "out") == (
        f"'{bart}' is a bart model, and transformers has no such model for tagging, which the task marks needs; give "
        "another model, such as a BERT."
    )
    assert "no model could be loaded" in refusal(TASK, tmp_path, tmp_path / "out")


def test_what_only_the_extra_brings(model, tmp_path, monkeypatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "accelerate" else find(name))
    assert refusal(TASK, model, tmp_path / "out") == (
        "tuning needs accelerate, which is not installed; install headscope with the extra `tune`: "
        "pip install 'headscope[tune]'."
    )


def recorded(model: Path, folder: Path, monkeypatch) -> runs.Runs:
    """A folder with one finished run that was never trained."""
    listed: list[runs.Runs] = []
    with monkeypatch.context() as patch:
        patch.setattr(runs, "write", lambda written_runs: listed.append(written_runs) or Path())
        folder.mkdir()
        with pytest.raises(BaseException, match=r"trained|No such file"):
            tune(TASK, model, folder, Settings(), seeds=[1])
    for folder_of_run in folder.glob(".seed-*"):
        folder_of_run.rmdir()
    run = runs.Run("seed-1", 1, 1, ({"validation": {"f1": 0.5}, "test": {"f1": 0.5}},), "0" * 64)
    (folder / run.name).mkdir()
    (folder / run.name / "model.safetensors").write_bytes(b"finished")
    present = replace(listed[0], runs=(run,))
    runs.write(present)
    return present


def test_a_folder_that_has_runs(model, tmp_path, monkeypatch) -> None:
    out = tmp_path / "out"
    recorded(model, out, monkeypatch)
    (out / ".seed-2.unfinished").mkdir()
    assert refusal(TASK, model, out) == (
        f"{out} holds runs (seed-1, .seed-2.unfinished); add --resume to go on with them, or name another folder."
    )
    assert (out / "seed-1" / "model.safetensors").read_bytes() == b"finished"


def test_runs_of_other_settings(model, tmp_path, monkeypatch) -> None:
    out = tmp_path / "out"
    present = recorded(model, out, monkeypatch)
    message = refusal(TASK, model, out, resume=True, epochs=3, learning_rate=1e-3)
    assert message == (
        f"the runs in {out} have other settings: epochs was 8 and is 3; learning_rate was 4e-05 and is 0.001; use the "
        "same settings, or name another folder."
    )
    assert "task was marks and is amounts" in refusal(TEXTS, model, out, resume=True)
    assert "examples_sha256 was" in refusal(changed(TASK, "test", words=("a",), tags=("1",)), model, out, resume=True)
    assert "select was validation and is test" in refusal(TASK, model, out, resume=True, select="test")
    other = tiny.save(tmp_path / "other", "roberta")
    assert re.search(r"weights_sha256 was \w{12}\.\.\. and is \w{12}\.\.\.;", refusal(TASK, other, out, resume=True))
    assert runs.read(out) == present


def test_a_run_folder_that_is_half_written_or_not_listed(model, tmp_path, monkeypatch) -> None:
    out = tmp_path / "out"
    recorded(model, out, monkeypatch)
    (out / "seed-2").mkdir()
    assert refusal(TASK, model, out, resume=True) == (
        f"{out / 'seed-2'} is in the way: runs.json does not list it as the finished run of that seed; move it away, "
        "or name another folder."
    )
    (out / "seed-1" / "model.safetensors").unlink()
    assert refusal(TASK, model, out, resume=True) == (
        f"{out / 'runs.json'} lists the run seed-1, but {out / 'seed-1'} holds no model.safetensors; copy that folder "
        "again, or take the run out of the list."
    )


def test_a_run_in_the_making_of_which_nothing_is_known(model, tmp_path) -> None:
    (tmp_path / ".seed-5.unfinished").mkdir()
    assert refusal(TASK, model, tmp_path, resume=True) == (
        f"{tmp_path} holds .seed-5.unfinished, and no runs.json that says what is tuned there; move it away, or name "
        "another folder."
    )


def test_folders_that_cannot_be(model, tmp_path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    assert refusal(TASK, model, file) == f"{file} is a file; name a folder for the runs, which may be a new one."
    out = tmp_path / "out"
    out.mkdir()
    (out / "control").write_text("mine")
    assert refusal(TASK, model, out, control=toys.control(TASK)).startswith(f"{out / 'control'} is a file;")
    assert [path.name for path in out.iterdir()] == ["control"]


def test_a_sample_of_the_training_examples(tmp_path) -> None:
    task = sample_training(TASK, 13)
    train = task.splits["train"]
    assert len(set(train)) == 13
    assert [example for example in TASK.splits["train"] if example in train] == list(train)
    assert sample_training(TASK, 13) == task
    assert train != TASK.splits["train"][:13]
    assert task.skipped == {"training examples beyond a sample of 13": 88}
    assert {name: task.splits[name] for name in ("validation", "test")} == {
        name: TASK.splits[name] for name in ("validation", "test")
    }
    assert sample_training(TASK, 101) is TASK
    assert json.loads(json.dumps(task.skipped))
