"""A user's own tables: what is read from them, and which are refused in which sentence."""

import csv
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from headscope.errors import CorpusError
from headscope.learn.table_task import read_table
from headscope.learn.task import SPLITS, Example

HEAD = "text\tlabel\n"
ROWS = HEAD + 'a "quoted film\tgood\nb\tbad\n'
TAGGED = "He\tPRON\nslept\tVERB\n\nShe\tPRON\n"


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """A folder with these files."""

    def write(**files: str | bytes) -> Path:
        for name, content in files.items():
            path = tmp_path / f"{name}.tsv"
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path

    return write


def test_rows_of_three_files(folder):
    where = folder(train="﻿id\ttext\ttext2\tlabel\n7\t I say \"no\ty\tyes\n\n8\tc d\te\tno\n", dev=(
        "text2\ttext\tlabel\np\tq\tno\nr\ts\tyes\n"), test="label\ttext\ttext2\nyes\tu\tv\nno\tx\tz\n")  # fmt: skip
    task = read_table(where)
    assert task.splits["train"] == (
        Example(f"{where}/train.tsv:2", texts=('I say "no', "y"), label="yes", group='I say "no\ty'),
        Example(f"{where}/train.tsv:4", texts=("c d", "e"), label="no", group="c d\te"),
    )
    assert [(example.texts, example.label) for example in task.splits["validation"]] == [
        (("q", "p"), "no"),
        (("s", "r"), "yes"),
    ]
    assert (task.kind, task.labels, task.metric, task.positive) == ("classification", ("no", "yes"), "accuracy", "")
    assert task.source == {
        name: hashlib.sha256((where / name).read_bytes()).hexdigest() for name in ("train.tsv", "dev.tsv", "test.tsv")
    }
    assert task.notes == ("the texts are in text and text2, the labels in label",)


def test_words_and_tags(folder):
    where = folder(train=TAGGED, validation="He PRON\nslept VERB\n", test="\n\nI\tPRON\n\n\n")
    task = read_table(where)
    assert task.splits["train"] == (
        Example(f"{where}/train.tsv:1", words=("He", "slept"), tags=("PRON", "VERB"), group="He slept"),
        Example(f"{where}/train.tsv:4", words=("She",), tags=("PRON",), group="She"),
    )
    assert [(example.name, example.words) for example in task.splits["test"]] == [(f"{where}/test.tsv:3", ("I",))]
    assert (task.kind, task.labels, task.metric) == ("tagging", ("PRON", "VERB"), "accuracy")
    assert task.notes == (
        "1 of the 1 examples of validation have the text of a training example, apart from case and punctuation",
    )


def test_tags_of_0_and_1_are_scored_by_f1(folder):
    binary = TAGGED.replace("PRON", "0").replace("VERB", "1")
    task = read_table(folder(train=binary, dev=binary, test=binary))
    assert (task.labels, task.metric, task.positive) == (("0", "1"), "f1", "1")


def test_scores_are_numbers(folder):
    scores = "sentence1\tsentence2\tscore\na\tb\t3.25\nc\td\t-1e1\n"
    task = read_table(folder(train=scores, dev=scores, test=scores))
    assert (task.kind, task.labels, task.metric) == ("regression", (), "pearson")
    assert [example.label for example in task.splits["test"]] == [3.25, -10.0]


def test_a_single_file_is_split_by_a_fixed_hash_with_equal_texts_together(folder):
    rows = [f"text {i % 89}\t{'ab'[i % 2]}\n" for i in range(211)]
    where = folder(own=HEAD + "".join(rows))
    task = read_table(where / "own.tsv")
    with (where / "own.tsv").open() as file:
        wanted = [(row["text"], row["label"]) for row in csv.DictReader(file, delimiter="\t")]
    pairs = [(example.texts[0], example.label) for split in SPLITS for example in task.splits[split]]
    assert sorted(pairs) == sorted(wanted)
    texts = {split: {example.texts for example in task.splits[split]} for split in SPLITS}
    assert sum(map(len, texts.values())) == 89
    assert [len(task.splits[split]) for split in SPLITS] == pytest.approx([143, 26, 42], abs=2)
    assert task == read_table(where / "own.tsv")
    assert task.notes[1].startswith(f"test is {len(task.splits['test'])} of 211 examples")


@pytest.mark.parametrize(
    "labels", [("yes", "yes, but"), ("New York, NY", "Albany, NY"), ("a/b", "[NEG]"), ("a,b", "c,d")]
)
def test_a_label_with_a_comma_is_one(folder, labels):
    rows = HEAD + "".join(f"text {i}\t{label}\n" for i, label in enumerate(labels))
    assert read_table(folder(train=rows, dev=rows, test=rows)).labels == tuple(sorted(labels))


REFUSED = {
    "no such place": ({}, "there is no file or folder {at}/missing; name one that holds the examples."),
    "no training": (
        {"test": ROWS},
        "{at} holds no train.tsv; a task's folder needs train.tsv, test.tsv and perhaps validation.tsv: add it, or "
        "give a single file, which is then split.",
    ),
    "no test": (
        {"train": ROWS, "dev": ROWS},
        "{at} holds no test.tsv; a task's folder needs train.tsv, test.tsv and perhaps validation.tsv: add it, or "
        "give a single file, which is then split.",
    ),
    "two validations": (
        {"train": ROWS, "dev": ROWS, "validation": ROWS, "test": ROWS},
        "{at} holds both validation.tsv and dev.tsv, and there is one validation split; remove one of them.",
    ),
    "no label column": (
        {"train": "text\tmark\na\tb\n", "test": ROWS},
        "{at}/train.tsv:1 names no column 'label', and no empty lines separate tagged sentences; it names 'text', "
        "'mark': name the columns 'text', perhaps 'text2', and 'label' in the first row, or write one word and its "
        "tag on each row, and an empty line after each sentence.",
    ),
    "no label column in the test": (
        {"train": ROWS, "test": "text\na\n"},
        "{at}/test.tsv:1 names no columns 'label' and must name one; it names 'text': correct the first row.",
    ),
    "two label columns": (
        {"train": "text\tlabel\tlabel\na\tb\tc\n", "test": ROWS},
        "{at}/train.tsv:1 names 2 columns 'label' and must name one; it names 'text', 'label', 'label': correct the "
        "first row.",
    ),
    "no column of texts": (
        {"train": "review\tlabel\na\tb\n", "test": ROWS},
        "{at}/train.tsv:1 names no column of texts; it names 'review', 'label': call it 'text', and a second one "
        "'text2'.",
    ),
    "too few fields": (
        {"train": ROWS + "c\n", "test": ROWS},
        "{at}/train.tsv:4 has 1 field and needs 2 (text, label), separated by tabs; correct the row.",
    ),
    "too many fields": (
        {"train": ROWS, "test": ROWS + "c\td\te\n"},
        "{at}/test.tsv:4 has 3 fields and needs 2 (text, label), separated by tabs; correct the row.",
    ),
    "an empty label": (
        {"train": ROWS + "c\t \n", "test": ROWS},
        "{at}/train.tsv:4 has no label in 'label'; write one, or leave the row out.",
    ),
    "an empty text": (
        {"train": ROWS + "\tgood\n", "test": ROWS},
        "{at}/train.tsv:4 has no text in 'text'; write one, or leave the row out.",
    ),
    "no rows": (
        {"train": HEAD, "test": ROWS},
        "{at}/train.tsv has no rows; a task needs examples: check that the file is complete.",
    ),
    "an empty file": (
        {"train": TAGGED, "test": "\n"},
        "{at}/test.tsv has no rows; a task needs examples: check that the file is complete.",
    ),
    "no UTF-8": (
        {"train": ROWS, "test": ROWS.encode() + "c\tcafé\n".encode("latin1")},
        "{at}/test.tsv:4 holds the byte 0xe9, which is not UTF-8; headscope reads UTF-8: convert the file, for "
        "instance with `iconv -f LATIN1 -t UTF-8`.",
    ),
    "a label in one split only": (
        {"train": ROWS, "dev": ROWS, "test": ROWS + "c\tugly\n"},
        "the task table has the label 'ugly' in test (first in {at}/test.tsv:4) and not in train, which has 'bad', "
        "'good'; all splits need the same labels: correct it, or split the examples again.",
    ),
    "a score that is none": (
        {"train": "text\tscore\na\t1\nb\tnan\n", "test": "text\tscore\na\t1\n"},
        "{at}/train.tsv:3 has 'nan' in 'score', which is not a number; write one, or drop the row.",
    ),
    **{
        f"several labels: {label}": (
            {"train": ROWS + f"c\t{label}\n", "test": ROWS},
            f"{{at}}/train.tsv:4 has the label {label!r}, which is a list of labels, and a text has one label here; "
            "choose one for each text, or make a table for each label, with yes and no.",
        )
        for label in ("good,bad", "bad; good", "good|bad", "['good', 'bad']", "[]", '["ugly"]')
    },
    "a word without a tag": (
        {"train": TAGGED + "ran\n", "test": TAGGED},
        "{at}/train.tsv:5 has the word 'ran' without a tag; write one after it and a tab.",
    ),
    "a word with an empty tag": (
        {"train": TAGGED, "test": TAGGED + "ran\t\n"},
        "{at}/test.tsv:5 has the word 'ran' without a tag; write one after it and a tab.",
    ),
    "four columns": (
        {"train": TAGGED, "test": "ran VBD B-VP O\n"},
        "{at}/test.tsv:1 has 4 fields, of which the first is 'ran'; a row is a word and its tag: correct it, or leave "
        "the other columns out.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_tables_that_cannot_be_read_are_refused(folder, case):
    files, sentence = REFUSED[case]
    where = folder(**files)
    with pytest.raises(CorpusError) as caught:
        read_table(where if files else where / "missing")
    assert str(caught.value) == sentence.format(at=where)
