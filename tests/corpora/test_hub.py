"""Datasets by their names: columns that become words, links and spans, the split, and what cannot be read."""

import json
import pickle
import sys
from pathlib import Path

import datasets
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Sequence, Value

from headscope.corpora import Link, Span, read
from headscope.errors import CorpusError

UPOS = ["NOUN", "PUNCT", "VERB", "PRON"]
COLUMNS = {
    "text": ["She left.", "im Haus"],
    # The second has a row for the token im as well, as CoNLL-U has 1-2.
    "tokens": [["She", "left", "."], ["im", "in", "dem", "Haus"]],
    "upos": [[3, 2, 1], [-1, -1, -1, 0]],
    "head": [["2", "0", "2"], ["None", "3", "3", "0"]],
    "deprel": [["nsubj", "root", "punct"], ["_", "case", "det", "root"]],
    "misc": [["_", "SpaceAfter=No", "_"], ["_", "_", "_", "_"]],
}
FEATURES = Features(
    {name: Value("string") if name == "text" else Sequence(Value("string")) for name in COLUMNS}
    | {"upos": Sequence(ClassLabel(names=UPOS))}
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two splits of a treebank, as the dataset universal_dependencies has it."""
    dataset = Dataset.from_dict(COLUMNS, features=FEATURES)
    place = tmp_path / "trees"
    place.mkdir()
    dataset.to_parquet(place / "test.parquet")
    dataset.select([0]).to_parquet(place / "validation.parquet")
    return place


def write_rows(folder: Path, *rows: dict) -> str:
    folder.mkdir()
    (folder / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return f"hf:{folder}"


def refused(name: str) -> str:
    with pytest.raises(CorpusError) as caught:
        list(read(name))
    return str(caught.value)


def test_words_heads_and_tags_are_read(folder: Path) -> None:
    first, second = read(f"hf:{folder}::test")
    assert first.words == ("She", "left", ".")
    assert first.written is not None
    assert first.written.content == "She left."
    assert first.links == (Link(0, 1, "nsubj"), Link(2, 1, "punct"))
    assert first.spans == (Span(0, 1, "PRON", "upos"), Span(1, 2, "VERB", "upos"), Span(2, 3, "PUNCT", "upos"))
    assert second.words == ("in", "dem", "Haus")
    assert second.written is None
    assert second.links == (Link(0, 2, "case"), Link(1, 2, "det"))
    assert second.spans == (Span(2, 3, "NOUN", "upos"),)
    assert (first.id, second.id) == ("row:0", "row:1")


def test_a_split_is_validation_unless_it_is_named(folder: Path) -> None:
    assert (len(read(f"hf:{folder}")), len(read(f"hf:{folder}:default:test"))) == (1, 2)
    assert refused(f"hf:{folder}:default:dev") == (
        f"hf:{folder}:default:dev has no split 'dev'; its splits are validation, test: name one."
    )


def test_the_same_corpus_comes_out_of_another_process(folder: Path) -> None:
    corpus = read(f"hf:{folder}:default:test")
    sent = pickle.dumps(corpus)
    assert b"parquet" not in sent
    received = pickle.loads(sent)
    assert list(received) == list(corpus)
    assert received.sha256 == corpus.sha256
    assert corpus.source == ""


def test_links_and_spans_of_our_own_and_texts_alone_are_read(tmp_path: Path) -> None:
    link = {"source": 1, "target": 0, "label": "antecedent"}
    row = {"words": ["Ann", "her"], "links": [link], "spans": [], "group": "letter", "score": 0.5}
    (document,) = read(write_rows(tmp_path / "links", row))
    assert document.links == (Link(1, 0, "antecedent", kind="link"),)
    assert document.group == "row:letter"
    name = write_rows(tmp_path / "texts", {"review": "It was old.", "stars": 3})
    assert [document.words for document in read(f"{name}#review")] == [("It", "was", "old.")]
    assert refused(name).startswith("the dataset has no column text, sentence, words, tokens or messages; its columns")


def test_a_row_that_lacks_a_value_is_refused(tmp_path: Path) -> None:
    name = write_rows(tmp_path / "short", {"tokens": ["a", "b"], "head": [0], "deprel": ["root", "dep"]})
    assert refused(name) == (
        "row 0 of the dataset, counted from 0, has 2 words and 1 values in 'head'; it needs one for each word: correct "
        "the dataset."
    )


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["a", None], "null as word 1, counted from 0; a word is a string"),
        ([], 'the "words" []; a text needs'),
        (None, 'the "words" []; a text needs'),
    ],
)
def test_a_row_without_words_is_refused(words: list | None, fault: str, tmp_path: Path) -> None:
    rows = {"tokens": ["a"], "text": "a", "upos": None}, {"tokens": words, "text": "a", "upos": None}
    assert refused(write_rows(tmp_path / "rows", *rows)).startswith(
        f"row 1 of the dataset, counted from 0, has {fault}"
    )


def test_the_revision_of_a_dataset_of_the_hub_is_in_its_source(monkeypatch) -> None:
    dataset = Dataset.from_dict(COLUMNS, features=FEATURES, split="test")
    dataset.info.download_checksums = {f"hf://datasets/o/trees@{'5f' * 20}/en/test.parquet": {}}
    tried = []

    def load(path, configuration):
        tried.append((path, configuration))
        return DatasetDict(test=dataset)

    monkeypatch.setattr(datasets, "load_dataset", load)
    corpus = read("hf:o/trees:en")
    address = "https://huggingface.co/datasets/o/trees"
    assert corpus.source == f"test of o/trees at revision {'5f' * 20}, whose licence and citation are at {address}"
    assert (len(corpus), {*tried}) == (2, {("o/trees", "en")})


def test_no_progress_bars_of_the_library_are_drawn(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    datasets.enable_progress_bars()
    assert len(read(f"hf:{folder}")) > 0
    assert capfd.readouterr().err == ""
    assert datasets.is_progress_bar_enabled()


def test_a_dataset_that_needs_code_of_its_own_is_refused_and_not_run(tmp_path: Path) -> None:
    place = tmp_path / "coded"
    place.mkdir()
    (place / "coded.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    message = refused(f"hf:{place}")
    assert message.startswith(f"hf:{place} could not be loaded by `datasets` (")
    assert message.endswith("or name a folder of parquet, JSON Lines or CSV files.")
    assert not (tmp_path / "ran").exists()


def test_a_format_is_refused(folder: Path) -> None:
    with pytest.raises(CorpusError) as caught:
        read(f"hf:{folder}", format="records")
    assert str(caught.value) == (f"the corpus 'hf:{folder}' is a dataset, which has no format; leave out `format`.")


@pytest.mark.parametrize("name", ["hf:", "hf::en", "hf:a:b:c:d"])
def test_a_name_that_is_not_understood_is_refused(name: str) -> None:
    assert refused(name) == (
        f"the corpus {name!r} is not understood; a dataset is named hf:DATASET, hf:DATASET:CONFIG or "
        "hf:DATASET:CONFIG:SPLIT, such as hf:universal-dependencies/universal_dependencies:en_ewt:test."
    )


def test_a_missing_library_is_one_sentence(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert refused("hf:o/trees") == (
        "hf:o/trees is loaded by `datasets`, which is not installed; install headscope with the extra `datasets`: pip "
        "install 'headscope[datasets]'."
    )
