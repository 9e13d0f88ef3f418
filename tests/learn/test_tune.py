"""Tuning: that a run is what its seed makes of it, and that its scores are true."""

import json
import random
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sklearn.metrics import f1_score
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    set_seed,
)
from transformers.utils import logging as transformers_logging

import headscope
import tiny
import toys
from headscope import runs
from headscope.learn import training
from headscope.learn.task import Task
from headscope.learn.training_settings import Settings
from headscope.learn.tune import tune

BRIEF = Settings(epochs=1, learning_rate=1e-3, batch_size=13)


def weights(group: runs.Runs, seed: int) -> bytes:
    return (group.folder / f"seed-{seed}" / "model.safetensors").read_bytes()


def test_a_folder_of_runs_is_what_it_says(tuned) -> None:
    for group, name in ((tuned.task, "marks"), (tuned.control, "marks")):
        assert group == runs.read(group.folder)
        assert [(run.name, run.seed) for run in group.runs] == [("seed-1", 1), ("seed-2", 2)]
        assert (group.task, group.select) == (name, "validation")
        for run in group.runs:
            assert {path.name for path in group.path(run).iterdir()} == {
                "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
            }  # fmt: skip
            assert run.weights_sha256 == headscope.load(group.path(run)).weights_sha256
    assert (tuned.task.control, tuned.control.control) == (False, True)
    assert (tuned.task.metric, tuned.control.metric) == ("f1", "accuracy")
    assert tuned.control.folder == tuned.task.folder / "control"
    assert sorted(path.name for path in tuned.task.folder.iterdir()) == ["control", "runs.json", "seed-1", "seed-2"]
    assert tuned.task.settings["examples"] == toys.SIZES
    assert tuned.task.settings["learning_rate"] == toys.FAST.learning_rate


def test_the_epoch_that_is_best_on_validation_is_kept(tuned) -> None:
    for group in (tuned.task, tuned.control):
        for run in group.runs:
            assert len(run.epochs) == toys.FAST.epochs
            best = [epoch["validation"][group.metric] for epoch in run.epochs]
            assert run.best_epoch == best.index(max(best)) + 1
            assert run.scores is run.epochs[run.best_epoch - 1]


def predictions(folder: Path, task: Task, split: str) -> tuple[list[int], list[int]]:
    """What a tagger says of each word piece, one text at a time, and what it should say."""
    tagger = AutoModelForTokenClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    predicted, wanted = [], []
    for example in task.splits[split]:
        encoded = tokenizer(list(example.words), is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            logits = tagger(**encoded).logits[0]
        for place, word in enumerate(encoded.word_ids()):
            if word is not None and example.tags[word] is not None:
                predicted.append(int(torch.sigmoid(logits[place, 1] - logits[place, 0]) > 0.5))
                wanted.append(int(example.tags[word]))
    return predicted, wanted


def test_the_scores_are_those_of_the_weights_that_were_kept(tuned) -> None:
    task = toys.tagging()
    for run in tuned.task.runs:
        for split in ("validation", "test"):
            predicted, wanted = predictions(tuned.task.path(run), task, split)
            assert run.scores[split]["f1"] == pytest.approx(f1_score(wanted, predicted))
            assert run.scores[split]["accuracy"] == pytest.approx(np.mean(np.equal(wanted, predicted)))
            counts = {label: predicted.count(int(label)) for label in task.labels if predicted.count(int(label))}
            assert run.predicted[split] == {"texts": len(task.splits[split]), "labels": counts}
    assert max(run.scores["test"]["f1"] for run in tuned.task.runs) > 0.95


def test_a_control_run_is_also_scored_on_the_task_itself(tuned) -> None:
    task = toys.tagging()
    for run in tuned.control.runs:
        predicted, wanted = predictions(tuned.control.path(run), task, "test")
        assert run.scores["task"]["f1"] == pytest.approx(f1_score(wanted, predicted))
        assert run.scores["task"]["f1"] < 0.9
    chosen = {run.seed: run.scores["test"]["accuracy"] for run in tuned.control.runs}
    assert runs.selectivity(tuned.task, tuned.control) == {
        run.seed: run.scores["test"]["accuracy"] - chosen[run.seed] for run in tuned.task.runs
    }


def test_a_tuned_model_is_observed_as_any_other_and_attends_differently(tuned, model) -> None:
    before, *after = (
        headscope.measure(folder, headscope.read("grammar:31"), ["surface"])
        for folder in (model, *(tuned.task.path(run) for run in tuned.task.runs))
    )
    for table in after:
        difference = abs(table.mass_previous - before.mass_previous)
        assert 1e-5 < difference.max() < 1
    assert (after[0].mass_previous != after[1].mass_previous).any()


def test_a_loaded_model_is_tuned_as_the_files_that_it_came_from(tuned, model, tmp_path) -> None:
    module, tokenizer = AutoModel.from_pretrained(model), AutoTokenizer.from_pretrained(model)
    before = {name: values.clone() for name, values in module.state_dict().items()}
    again = tune(toys.tagging(), (module, tokenizer), tmp_path, toys.FAST, seeds=[2]).task
    assert weights(again, 2) == weights(tuned.task, 2)
    assert all(torch.equal(values, before[name]) for name, values in module.state_dict().items())
    table = headscope.measure((module, tokenizer), headscope.read("grammar:31"), "surface", runs=tmp_path)
    assert table["run"].size == 1


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(tuned, model, tmp_path) -> None:
    again = tune(toys.tagging(), model, tmp_path, toys.FAST, seeds=[2]).task
    assert weights(again, 2) == weights(tuned.task, 2) != weights(tuned.task, 1)
    assert asdict(again.runs[0]) == asdict(tuned.task.runs[1])


def test_neither_other_seeds_nor_the_test_split_nor_a_control_move_a_run(tuned, model, tmp_path) -> None:
    task = toys.tagging()
    other = replace(task, splits={**task.splits, "test": toys.control(task).splits["train"]})
    alike = tune(other, model, tmp_path, toys.FAST, seeds=[2]).task
    assert weights(alike, 2) == weights(tuned.task, 2)
    for epoch, full_epoch in zip(alike.runs[0].epochs, tuned.task.runs[1].epochs, strict=True):
        assert epoch["validation"] == full_epoch["validation"]
        assert epoch["test"] != full_epoch["test"]


def test_selected_on_test_it_is_trained_on_validation_too(model, tmp_path) -> None:
    task = toys.tagging()
    tuned = tune(task, model, tmp_path, replace(toys.FAST, select="test"), seeds=[1]).task
    assert tuned.select == "test"
    assert tuned.settings["examples"] == {"train": 112, "test": 13}
    (run,) = tuned.runs
    assert all(set(epoch) == {"test"} for epoch in run.epochs)
    best = [epoch["test"]["f1"] for epoch in run.epochs]
    assert run.best_epoch == best.index(max(best)) + 1


def without_padding(folder: Path) -> None:
    """The tokenizer has no token for padding, and would pad before the text, as one does who generates."""
    changes = {
        "tokenizer_config.json": {"pad_token": None, "padding_side": "left"},
        "config.json": {"pad_token_id": None},
    }
    for name, change in changes.items():
        path = folder / name
        path.write_text(json.dumps(json.loads(path.read_text()) | change))


@pytest.mark.parametrize(
    ("task", "architecture"),
    [
        (toys.classification(), "roberta"),
        (toys.classification(texts=2), "bert"),
        (toys.classification(texts=2), "gpt2"),
        (toys.classification(), "gpt2 that does not pad"),
        (toys.regression(), "bert"),
    ],
    ids=["texts", "pairs", "pairs for a decoder", "texts for a decoder that does not pad", "numbers"],
)
def test_texts_and_pairs_are_classified_and_scored(task, architecture, tmp_path) -> None:
    folder = tiny.save(tmp_path / "model", architecture.split()[0])
    if "pad" in architecture:
        without_padding(folder)
    tuned = tune(task, folder, tmp_path / "out", replace(BRIEF, max_tokens=13), seeds=[1]).task
    (run,) = tuned.runs
    classifier = AutoModelForSequenceClassification.from_pretrained(tuned.path(run)).eval()
    tokenizer = AutoTokenizer.from_pretrained(tuned.path(run))
    predicted, cut = [], 0
    for example in task.splits["test"]:
        encoded = tokenizer(*example.texts, return_tensors="pt", truncation="longest_first", max_length=13)
        cut += len(tokenizer(*example.texts)["input_ids"]) > 13
        with torch.no_grad():
            logits = classifier(**encoded).logits[0]
        predicted.append(
            logits.item() if task.kind == "regression" else classifier.config.id2label[int(logits.argmax())]
        )
    labels = [example.label for example in task.splits["test"]]
    if task.kind == "regression":
        assert run.scores["test"] == {"pearson": pytest.approx(np.corrcoef(predicted, labels)[0, 1], abs=1e-5)}
    else:
        assert run.scores["test"]["accuracy"] == np.mean(
            [guess == label for guess, label in zip(predicted, labels, strict=True)]
        )
    written = json.loads((tuned.path(run) / "tokenizer.json").read_text())
    assert written["truncation"] is written["padding"] is None
    skipped = tuned.settings["skipped"]["test"]
    assert skipped == ({"examples cut to 13 tokens (the rest is used)": cut} if cut else {})


def test_what_is_cut_or_cannot_be_tagged_is_counted(model, tmp_path) -> None:
    task = toys.tagging()
    long = replace(task.splits["train"][0], words=("the", *["dog"] * 17), tags=("0", *"1" * 17))
    empty = replace(long, tags=(None,) * 18)
    splits = {**task.splits, "train": (*task.splits["train"], long, empty)}
    tuned = tune(replace(task, splits=splits), model, tmp_path, replace(BRIEF, max_tokens=11), seeds=[1]).task
    over = [example for example in splits["train"] if len(pieces(model, example.words)) > 11]
    assert 2 < len(over) < 50
    skipped = tuned.settings["skipped"]["train"]
    assert skipped["examples cut to 11 tokens (the rest is used)"] == len(over)
    assert skipped["words after the cut"] >= 2 * 9 + len(over) - 2
    assert skipped["examples without a token that is tagged"] == 1
    assert tuned.settings["examples"]["train"] == 102


def pieces(model: Path, words: tuple[str, ...]) -> list[int]:
    return AutoTokenizer.from_pretrained(model)(list(words), is_split_into_words=True)["input_ids"]


def test_random_numbers_go_on_as_if_none_had_been_seeded() -> None:
    def numbers() -> list[float]:
        return [random.random(), np.random.random(), torch.rand(()).item()]  # noqa: NPY002 - the ones Trainer seeds

    set_seed(5)
    expected = numbers()
    set_seed(5)
    with training._preserve_random_state():
        set_seed(7)
        assert numbers() != expected
    assert numbers() == expected


def test_the_library_is_silent_and_left_as_it_was(model, tmp_path, capfd) -> None:
    verbosity = transformers_logging.get_verbosity()
    tune(toys.tagging(), model, tmp_path, replace(toys.FAST, epochs=1, batch_size=31), seeds=[1])
    assert capfd.readouterr() == ("", "")
    assert transformers_logging.get_verbosity() == verbosity


def test_the_progress_is_told_in_words(model, tmp_path) -> None:
    progress: list[tuple[str, int, int]] = []
    tune(
        toys.tagging(),
        model,
        tmp_path,
        replace(toys.FAST, epochs=1, batch_size=31),
        seeds=[1, 2],
        progress=lambda *step: progress.append(step),
    )
    words = sum(len(example.words) for example in toys.tagging().splits["train"])
    labels = list(dict.fromkeys(label for label, _, _ in progress))
    assert labels[-2:] == ["tuning seed-1 on marks (1 of 2)", "tuning seed-2 on marks (2 of 2)"]
    assert [step[1:] for step in progress if step[0] == labels[-1]][::4] == [(0, words), (words, words)]


def test_a_layer_of_another_shape_is_replaced(tuned, tmp_path) -> None:
    """A tagger of two labels is tuned further, to call texts one of three."""
    tagger = tuned.task.path(tuned.task.runs[0])
    again = tune(toys.classification(), tagger, tmp_path, BRIEF, seeds=[1]).task
    layer = load_file(again.path(again.runs[0]) / "model.safetensors")["classifier.weight"]
    assert tuple(layer.shape) == (3, 35)
    assert json.loads((again.path(again.runs[0]) / "config.json").read_text())["id2label"] == {
        "0": "few", "1": "many", "2": "some",
    }  # fmt: skip
