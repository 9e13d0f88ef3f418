"""Classifiers that others tuned: labels of other names, several labels at once, and numbers."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoConfig, AutoTokenizer, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

import headscope
import tiny
import toys
from headscope.errors import HeadscopeError
from headscope.intervene.label_names import match_labels
from headscope.intervene.labels import prepare_task
from planted_task import make_task, plant_task, save_task

SETTINGS = {"heads": "1-1,2-3", "placebos": 2, "progress": False}
LABELS = {"LABEL_0": "cat", "LABEL_1": "dog"}


def rename(folder: Path, names: tuple[str, ...], **others: Any) -> None:
    """Give the labels of a model on disk other names."""
    config = json.loads((folder / "config.json").read_text())
    config |= {"id2label": dict(enumerate(names)), "label2id": {name: n for n, name in enumerate(names)}, **others}
    (folder / "config.json").write_text(json.dumps(config))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny classifier that transformers' Trainer tuned, with no names of labels, and its task as TSV files."""
    folder = tmp_path_factory.mktemp("plain")
    base = tiny.save(folder / "base")
    tokenizer = AutoTokenizer.from_pretrained(base)
    task = make_task()
    rows = [
        {**tokenizer(*each.texts, padding="max_length", max_length=12, truncation=True), "labels": n % 2}
        for n, each in enumerate(task.splits["test"])
    ]
    set_seed(0)
    trainer = Trainer(
        model=BertForSequenceClassification.from_pretrained(base),
        args=TrainingArguments(
            output_dir=str(folder / "trainer"), max_steps=3, learning_rate=1e-2, report_to=[], use_cpu=True,
            disable_tqdm=True, save_strategy="no",
        ),
        train_dataset=rows, processing_class=tokenizer,
    )  # fmt: skip
    trainer.train()
    trainer.save_model(str(folder / "model"))
    assert AutoConfig.from_pretrained(folder / "model").id2label == {0: "LABEL_0", 1: "LABEL_1"}
    shutil.copytree(folder / "model", folder / "named")
    rename(folder / "named", ("cat", "dog"))
    rename(folder / "model", ("LABEL_0", "LABEL_1"))
    return folder


@pytest.mark.parametrize("labels", ["LABEL_0=cat,LABEL_1=dog", " LABEL_1 = dog, LABEL_0=cat", LABELS])
def test_named_labels_give_the_same_to_the_last_bit(plain: Path, tmp_path: Path, labels: object) -> None:
    expected = headscope.measure_effects(plain / "named", make_task(), tmp_path / "named", **SETTINGS)
    table = headscope.measure_effects(plain / "model", make_task(), tmp_path / "out", labels=labels, **SETTINGS)
    assert {*table.data_vars} == {*expected.data_vars}
    for name in expected.data_vars:
        np.testing.assert_array_equal(table[name], expected[name], err_msg=str(name))
    assert table.attrs["label_names"] == "LABEL_0 as cat, LABEL_1 as dog"
    assert "label_names" not in expected.attrs


def test_swapped_labels_turn_the_accuracy_round(plain: Path, tmp_path: Path) -> None:
    right, swapped = (
        headscope.measure_effects(
            plain / "model", make_task(), tmp_path / labels, labels=labels, heads="1-1", placebos=0, progress=False
        )
        for labels in ("LABEL_0=cat,LABEL_1=dog", "LABEL_0=dog,LABEL_1=cat")
    )
    assert right["whole_accuracy"].item() + swapped["whole_accuracy"].item() == pytest.approx(1)


@pytest.mark.parametrize("command", ["disable", "lesions"])
def test_the_commands_say_how_labels_were_read(run, tmp_path: Path, command: str) -> None:
    save_task(tmp_path, [(2, 3)])
    rename(tmp_path / "model", ("CAT", "Dog"))
    if command == "disable":
        code, shown, _ = run(
            "disable", tmp_path / "model", tmp_path / "nouns", "--heads", "2-3", "--placebos", 0, "-o", tmp_path / "out"
        )
        assert code == 0
        shown = " ".join(shown.split())
        assert "1 of 1 head makes the accuracy worse when disabled, which was not compared with placebos: 2-3." in shown
        assert "Labels of the model were read as those of the task: CAT as cat, Dog as dog." in shown
        return
    table = headscope.lesions(
        tmp_path / "model", tmp_path / "nouns", {"noun": ["2-3"]}, labels={"CAT": "cat", "Dog": "dog"}, progress=False
    )
    assert table.attrs["label_names"] == "CAT as cat, Dog as dog"


MATCHED = {
    "equal": (("dog", "cat"), ("cat", "dog"), [1, 0], ""),
    "capitals": (("POS", "NEG"), ("neg", "pos"), [1, 0], "NEG as neg, POS as pos"),
    "some equal": (("Good", "bad"), ("bad", "good"), [1, 0], "bad as bad, Good as good"),
    "a label more": (("YES", "maybe", "NO"), ("no", "yes"), [2, 0], "NO as no, YES as yes"),
    "equal before capitals": (("Good", "good", "bad"), ("bad", "good"), [2, 1], ""),
    "numbers": (("LABEL_0", "LABEL_1"), ("0", "1"), [0, 1], "LABEL_0 as 0, LABEL_1 as 1"),
    "three numbers": (
        ("LABEL_0", "LABEL_1", "LABEL_2"), ("0", "1", "2"), [0, 1, 2], "LABEL_0 as 0, LABEL_1 as 1, LABEL_2 as 2",
    ),
    "digits": (("0", "1"), ("0", "1"), [0, 1], ""),
}  # fmt: skip


@pytest.mark.parametrize("what", MATCHED)
def test_names_that_need_no_option(what: str) -> None:
    names, labels, numbers, sentence = MATCHED[what]
    assert match_labels("m", dict(enumerate(names)), "t", labels, {}) == (numbers, sentence)


UNMATCHED = {
    "no names": (
        ("LABEL_0", "LABEL_1"), ("negative", "positive"),
        "the model 'm' has the labels 'LABEL_0', 'LABEL_1', and the task t has 'negative', 'positive'; say which is "
        "which with `labels` LABEL_0=negative,LABEL_1=positive, in the order that is right, or give a model that "
        "`headscope tune` tuned on it.",
    ),
    "digits of one side": (
        ("0", "1"), ("no", "very good"),
        "the model 'm' has the labels '0', '1', and the task t has 'no', 'very good'; say which is which with `labels` "
        "'0=no,1=very good', in the order that is right, or give a model that `headscope tune` tuned on it.",
    ),
    "more numbers than labels": (
        ("LABEL_0", "LABEL_1", "LABEL_2"), ("0", "1"),
        "the model 'm' has the labels 'LABEL_0', 'LABEL_1', 'LABEL_2', and the task t has '0', '1'; say which is which "
        "with `labels` LABEL_0=0,LABEL_1=1, in the order that is right, or give a model that `headscope tune` tuned on "
        "it.",
    ),
    "commas": (
        ("a,b", "c"), ("d", "e"),
        "the model 'm' has the labels 'a,b', 'c', and the task t has 'd', 'e'; say which is which with a mapping in "
        "Python, such as labels={'a,b': 'd', 'c': 'e'}, in the order that is right, or give a model that `headscope "
        "tune` tuned on it.",
    ),
    "too few": (
        ("no", "yes"), ("a", "b", "c"),
        "the model 'm' has the labels 'no', 'yes', and the task t has 'a', 'b', 'c'; give a model with a label for "
        "each of these, such as one that `headscope tune` tuned on it.",
    ),
    "two names in capitals": (
        ("GOOD", "Good", "bad"), ("bad", "good"),
        "the model 'm' has the labels 'GOOD', 'Good', 'bad', and the task t has 'bad', 'good'; say which is which with "
        "`labels` GOOD=bad,Good=good, in the order that is right, or give a model that `headscope tune` tuned on it.",
    ),
    "one name twice": (
        ("cat", "dog", "dog"), ("cat", "dog"),
        "the model 'm' has several labels called 'dog'; give each another name in id2label of its config.json.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", UNMATCHED)
def test_names_that_cannot_be_matched(what: str) -> None:
    names, labels, sentence = UNMATCHED[what]
    with pytest.raises(HeadscopeError) as refused:
        match_labels("m", dict(enumerate(names)), "t", labels, {})
    assert str(refused.value) == sentence


AS_IN = "as in LABEL_0=negative,LABEL_1=positive."
REFUSED = {
    "a name of the model twice": (
        "LABEL_0=cat,LABEL_0=dog",
        "`labels` names the label 'LABEL_0' of the model twice; name each label of the model and of the task once.",
    ),
    "two labels mapped to one": (
        {"LABEL_0": "cat", "LABEL_1": "cat"},
        "`labels` names the label 'cat' of the task twice; name each label of the model and of the task once.",
    ),
    "no label of the task": (
        "LABEL_0=cat,LABEL_1=dogs",
        "`labels` names the label 'dogs', and the task nouns has 'cat', 'dog' (did you mean dog?); write the model's "
        f"label, = and one of these, {AS_IN}",
    ),
    "no label of the model": (
        "LABEL_0=cat,LABEL_7=dog",
        "`labels` names the label 'LABEL_7', and the model 'planted task' has 'LABEL_0', 'LABEL_1' (did you mean "
        f"LABEL_1?); write one of these, = and the task's label, {AS_IN}",
    ),
    "a part": (
        {"LABEL_0": "cat"},
        "`labels` has no label of the model for 'dog' (task nouns); give one for each of 'cat', 'dog'.",
    ),
    "no =": (
        "LABEL_0=cat,dog",
        f"`labels` has 'dog'; write a label of the model, = and the task's, and a comma before the next, {AS_IN}",
    ),
    "nothing": (
        "",
        f"`labels` has ''; write a label of the model, = and the task's, and a comma before the next, {AS_IN}",
    ),
    "no mapping": (
        ["LABEL_0"],
        "`labels` is ['LABEL_0']; give a text such as LABEL_0=negative,LABEL_1=positive, or a mapping from labels of "
        "the model to those of the task.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_labels_that_cannot_be_used(tmp_path: Path, what: str) -> None:
    labels, sentence = REFUSED[what]
    model = plant_task([(2, 3)])
    model.module.config.id2label = dict(enumerate(LABELS))
    with pytest.raises(HeadscopeError) as refused:
        headscope.measure_effects((model.module, model.tokenizer), make_task(), tmp_path, labels=labels, **SETTINGS)
    name = repr(headscope.load((model.module, model.tokenizer)).name)
    assert str(refused.value) == sentence.replace("'planted task'", name)


@pytest.mark.parametrize("examples", ["grammar:7", toys.regression()])
def test_labels_of_examples_without_any_are_refused(examples: object, tmp_path: Path) -> None:
    with pytest.raises(HeadscopeError, match=r"labels, only tasks have; leave out|no labels; leave out `labels`\.$"):
        headscope.measure_effects("minilm", examples, tmp_path, labels=LABELS, **SETTINGS)


def set_config(model: Any, **values: Any) -> Any:
    for name, value in values.items():
        setattr(model.module.config, name, value)
    return model


HEADS: Mapping[str, tuple[dict[str, Any], Any, str]] = {
    "several labels at once": (
        {"problem_type": "multi_label_classification"}, make_task(),
        "the model 'planted task' gives a text several labels at once (its problem_type is multi_label_classification),"
        " and an example of the task nouns has one label; give a classifier that chooses one of its labels.",
    ),
    "several labels for a number": (
        {"problem_type": "multi_label_classification"}, toys.regression(),
        "the model 'planted task' gives a text several labels at once (its problem_type is multi_label_classification),"
        " and an example of the task count has one number; give a classifier that chooses one of its labels.",
    ),
    "a number for labels": (
        {"num_labels": 1}, make_task(),
        "the model 'planted task' gives numbers and no labels (it is a regression), and the task nouns has the labels "
        "'cat', 'dog'; give a classifier.",
    ),
    "numbers for labels": (
        {"problem_type": "regression"}, make_task(),
        "the model 'planted task' gives numbers and no labels (it is a regression), and the task nouns has the labels "
        "'cat', 'dog'; give a classifier.",
    ),
    "labels for a number": (
        {}, toys.regression(),
        "the model 'planted task' has 2 labels, and the task count needs one number; give a model that `headscope "
        "tune` tuned on it.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", HEADS)
def test_a_head_that_gives_something_else_is_refused(what: str) -> None:
    values, task, sentence = HEADS[what]
    with pytest.raises(HeadscopeError) as refused:
        prepare_task(set_config(plant_task([(2, 3)]), **values), task)
    assert str(refused.value) == sentence


def test_a_classifier_of_one_label_is_taken_whether_it_says_so_or_not() -> None:
    for problem in (None, "single_label_classification"):
        prepared = prepare_task(set_config(plant_task([(2, 3)]), problem_type=problem), replace(make_task(7), name="n"))
        assert prepared.reading == {}
