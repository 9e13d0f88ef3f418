"""Sets that `datasets` loads, here from folders: which columns are used, and what is refused."""

import json
import sys
from pathlib import Path

import pytest

from headscope.errors import CorpusError, HeadscopeError
from headscope.learn.hub import NO_TEXT, UNLABELLED, read_hub
from headscope.learn.task import SPLITS

datasets = pytest.importorskip("datasets", reason="`datasets` comes with the extra `tune`")


@pytest.fixture(autouse=True)
def _apart(tmp_path_factory, monkeypatch):
    """What `datasets` keeps goes to a folder of the test's own, and no bars are drawn."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.fixture
def folder(tmp_path: Path):
    """A folder of JSON Lines: a file for each split."""

    def write(**splits: list[dict]) -> Path:
        for split, rows in splits.items():
            (tmp_path / f"{split}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return tmp_path

    return write


def rows(count: int, **columns) -> list[dict]:
    return [{"id": f"r{i}", "review": f"text {i}", "label": "ab"[i % 2], **columns} for i in range(count)]


def refused(name: str) -> str:
    with pytest.raises(CorpusError) as caught:
        read_hub(name)
    return str(caught.value)


def test_the_only_column_of_strings_is_the_text(folder):
    where = folder(train=[*rows(7), *rows(3, review=" "), *rows(1, label=None)], validation=rows(3), test=rows(5))
    task = read_hub(f"datasets:{where}")
    assert [(example.texts, example.label) for example in task.splits["validation"]] == [
        (("text 0",), "a"), (("text 1",), "b"), (("text 2",), "a"),
    ]  # fmt: skip
    assert [len(task.splits[split]) for split in SPLITS] == [7, 3, 5]
    assert (task.kind, task.labels, task.metric) == ("classification", ("a", "b"), "accuracy")
    assert task.skipped == {NO_TEXT: 3, UNLABELLED: 1}
    assert task.notes == (
        "the texts are in review, the labels in label",
        "3 of the 3 examples of validation have the text of a training example, apart from case and punctuation",
        "5 of the 5 examples of test have the text of a training example, apart from case and punctuation",
    )
    assert task.splits["test"][0].name == f"datasets:{where}, test, row 1"
    (sha,) = task.source.values()
    folder(train=[*rows(7), *rows(1, review="another")])
    assert read_hub(f"datasets:{where}").source != {str(where): sha}


def test_classes_of_parquet_have_their_names_and_an_unlabelled_test_is_none(tmp_path):
    features = datasets.Features(
        {"idx": datasets.Value("int32"), "premise": datasets.Value("string"), "hypothesis": datasets.Value("string"),
         "label": datasets.ClassLabel(names=["not_entailment", "entailment"])}
    )  # fmt: skip
    for split, count, labels in (("train", 53, (0, 1)), ("validation", 11, (1, 0)), ("test", 13, (-1, -1))):
        records = {
            "idx": list(range(count)), "premise": [f"p {split} {i}" for i in range(count)], "hypothesis": ["h"] * count,
            "label": [labels[i % 2] for i in range(count)],
        }  # fmt: skip
        datasets.Dataset.from_dict(records, features=features).to_parquet(tmp_path / f"{split}.parquet")
    task = read_hub(f"datasets:{tmp_path}")
    assert [len(task.splits[split]) for split in SPLITS] == [45, 8, 11]
    assert [(example.texts, example.label) for example in task.splits["test"][:2]] == [
        (("p validation 0", "h"), "entailment"), (("p validation 1", "h"), "not_entailment"),
    ]  # fmt: skip
    assert task.notes[:3] == (
        "the texts are in premise and hypothesis, the labels in label",
        "its split test has no labels",
        "test is the 11 examples of validation, since there is no test with labels",
    )
    assert task.skipped == {}


def test_numbers_make_a_task_of_numbers(folder):
    records = [{"sentence1": f"a {i}", "sentence2": "b", "score": i / 7} for i in range(31)]
    task = read_hub(f"datasets:{folder(train=records)}")
    assert (task.kind, task.labels, task.metric) == ("regression", (), "pearson")
    assert sorted(example.label for split in SPLITS for example in task.splits[split]) == [i / 7 for i in range(31)]


def test_words_and_the_only_tags(folder):
    records = [{"id": "x", "tokens": [f"w{i}", "and"], "ner_tags": [i % 2, 0]} for i in range(31)]
    task = read_hub(f"datasets:{folder(train=records, test=records[:3])}")
    assert [(example.words, example.tags) for example in task.splits["test"]] == [
        (("w0", "and"), ("0", "0")), (("w1", "and"), ("1", "0")), (("w2", "and"), ("0", "0")),
    ]  # fmt: skip
    assert (task.kind, task.metric, task.positive) == ("tagging", "f1", "1")


def test_one_of_several_columns_of_tags_is_named(folder):
    records = [{"tokens": [f"w{i}", "and"], "ner_tags": ["X", "O"], "pos_tags": ["N", "C"]} for i in range(31)]
    where = folder(train=records, test=records[:3])
    assert refused(f"datasets:{where}") == (
        f"datasets:{where} has the columns tokens, ner_tags, pos_tags, and it is not clear which one tags the words "
        f"of 'tokens'; name it: datasets:{where}#COLUMN."
    )
    assert read_hub(f"datasets:{where}#pos_tags").labels == ("C", "N")
    assert refused(f"datasets:{where}#chunks") == (
        f"datasets:{where}#chunks has no column 'chunks'; it has tokens, ner_tags, pos_tags."
    )


def test_words_and_tags_of_another_number_are_refused(folder):
    records = [{"tokens": ["a", "b"], "tags": ["X", "O"]}, {"tokens": ["a", "b"], "tags": ["X"]}]
    where = folder(train=records)
    assert refused(f"datasets:{where}") == (
        f"datasets:{where}, train, row 2 has 2 words and 1 tags; give each word a tag."
    )


def test_columns_that_cannot_be_told_are_refused(folder):
    where = folder(train=[{"one": "a", "two": "b", "three": "c", "label": 0}])
    assert refused(f"datasets:{where}") == (
        f"datasets:{where} has the columns one, two, three, label, and it is not clear which one or two hold the "
        "texts; rename them 'text' and 'text2' in a folder of your own."
    )
    where = folder(train=[{"text": "a", "stars": 5}])
    assert refused(f"datasets:{where}") == (
        f"datasets:{where} has the columns text, stars, and none of them is called 'label' or 'labels' or 'score'; "
        f"name the column of the labels: datasets:{where}#COLUMN."
    )
    records = [{"text": f"a {i}", "stars": i % 3} for i in range(97)]
    assert read_hub(f"datasets:{folder(train=records)}#stars").labels == ("0", "1", "2")


def test_a_set_without_training_rows_is_refused(folder):
    where = folder(test=rows(5))
    assert refused(f"datasets:{where}") == (
        f"datasets:{where} has no rows with a label to train on; its splits are test: give a set with a split 'train'."
    )


def test_labels_that_differ_between_splits_are_refused(folder):
    where = folder(train=rows(8), test=rows(4, label="c"), validation=rows(4))
    assert refused(f"datasets:{where}").startswith(
        f"the task datasets:{where} has the label 'c' in test (first in datasets:{where}, test, row 1) and not in train"
    )


def test_what_datasets_cannot_load_is_refused(tmp_path):
    (tmp_path / "notes.md").write_text("nothing")
    message = refused(f"datasets:{tmp_path}")
    assert message.startswith(f"datasets:{tmp_path} could not be loaded by `datasets` (")
    assert message.endswith(
        "); check the name, the configuration and the network, or name a folder of parquet, JSON Lines or CSV files."
    )


@pytest.mark.parametrize(
    ("name", "tries"),
    [
        ("imdb", [("imdb", None)]),
        ("glue/cola", [("glue/cola", None), ("glue", "cola")]),
        ("nyu-mll/glue/cola", [("nyu-mll/glue", "cola")]),
    ],
)
def test_the_second_part_of_a_name_may_be_a_configuration(monkeypatch, name, tries):
    tried = []

    def load(path, configuration):
        tried.append((path, configuration))
        raise FileNotFoundError("no such set.\nand more")

    monkeypatch.setattr(datasets, "load_dataset", load)
    assert "(no such set)" in refused(f"datasets:{name}")
    assert tried == tries


def test_a_missing_library_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert refused("datasets:imdb") == (
        "datasets:imdb is loaded by `datasets`, which is not installed; install headscope with the extra `datasets`: "
        "pip install 'headscope[datasets]'."
    )


def test_a_name_that_no_file_has_is_refused_at_once(monkeypatch):
    monkeypatch.setattr(datasets, "load_dataset", lambda path, configuration: pytest.fail("nothing is to be loaded"))
    with pytest.raises(HeadscopeError) as caught:
        read_hub(f"datasets:{'a' * 300}")
    assert str(caught.value) == f"{'a' * 300} cannot be read (File name too long); check the name."
    with pytest.raises(HeadscopeError, match="is a device or a pipe"):
        read_hub("datasets:/dev/zero")
