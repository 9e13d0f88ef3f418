"""Texts on the page of an atlas: which are chosen, how many, and what a large model or a corpus without gold gets."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import headscope
import tiny
from headscope.analyse import assess
from headscope.capture.model.model import Model
from headscope.commands.atlas import atlas_examples as job
from headscope.commands.atlas.atlas_examples import choose_candidates, make_examples
from headscope.corpora import Document, read, summarize
from headscope.errors import HeadscopeError
from headscope.examples import CLEAR, FAILS, read_examples, unpack
from headscope.runner import Plan, measure, resolve_reducers
from view.parsed import Page


def ignore(step: str, done: int, total: int) -> None:
    pass


@pytest.mark.full
def test_an_atlas_has_texts_with_clear_examples_and_failures(tmp_path: Path) -> None:
    model = tiny.save(tmp_path / "bert")
    headscope.atlas(
        model, "grammar:97", tmp_path / "atlas", examples=13, permutations=0, map_documents=0,
        progress=False,
    )  # fmt: skip
    dataset = read_examples(tmp_path / "atlas" / "examples.nc")
    texts, examples = unpack(dataset)
    assert len(texts) == len({text.id for text in texts}) == 13
    assert all(text.weights["encoder"].shape[:2] == (2, 5) for text in texts)
    table = headscope.read_table(tmp_path / "atlas" / "heads.nc")
    assert len({example.row for example in examples if example.row.startswith("relation:")}) > 5
    assert {example.kind for example in examples} == {CLEAR, FAILS}
    for example in examples:
        if example.row.startswith("relation:") and not example.row.endswith((":*", ":all")):
            links = [link for link in texts[example.text].links if link[2] == example.row.partition(":")[2]]
            assert len(links) == example.count
    assert dataset.attrs["weights_sha256"] == table.attrs["weights_sha256"]
    page = Page((tmp_path / "atlas" / "atlas.html").read_text(encoding="utf-8"))
    assert len(page.find("script", id="sentences-data")) == 1


@pytest.mark.full
def test_no_examples_are_made_where_none_are_asked_for(tmp_path: Path) -> None:
    model = tiny.save(tmp_path / "bert")
    result = headscope.atlas(
        model, "grammar:31", tmp_path / "atlas", examples=0, permutations=0, map_documents=0,
        progress=False,
    )  # fmt: skip
    assert "examples.nc" not in result.files
    with pytest.raises(HeadscopeError, match=r"^`examples` is -1; give 0 or more"):
        headscope.atlas(model, "grammar:31", tmp_path / "atlas", examples=-1, progress=False)


def test_a_corpus_without_gold_gets_texts_at_random() -> None:
    model = Model.from_module(*tiny.make("bert"), name="bert")
    documents = read([f"the dog sees a cat {'now ' * (number % 5)}." for number in range(17)])
    table = measure(model, documents, ["surface"])
    dataset = make_examples(model, documents, table, [], Plan(), size=7, seed=0, progress=ignore)
    assert dataset is not None
    texts, examples = unpack(dataset)
    assert len(texts) == 7
    assert examples == []


def test_more_heads_get_shorter_texts_so_that_the_page_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "MOST_WEIGHTS", 10 * 7 * 17 * 17)
    model = Model.from_module(*tiny.make("bert"), name="bert")
    documents = tiny.documents(97)
    reducers = [reducer for reducer in resolve_reducers(["relations"], summarize(documents)) if reducer.reports_heads]
    table = assess(measure(model, documents, reducers))
    dataset = make_examples(model, documents, table, reducers, Plan(), size=7, seed=0, progress=ignore)
    assert dataset is not None
    assert dataset["encoder_weight"].size <= 10 * 7 * 17 * 17
    assert max(len(text.sides["encoder"].tokens) for text in unpack(dataset)[0]) <= 17


def count_words(documents: Sequence[Document]) -> list[int]:
    return [len(document.words) for document in documents]


def test_candidates_have_10_to_24_tokens_if_there_are_enough() -> None:
    documents = tiny.documents(131)
    chosen = choose_candidates(documents, 17, 0, count_words)
    assert len({document.id for document in chosen}) == 17
    assert all(10 <= len(document.words) <= 24 for document in chosen)
    assert choose_candidates(documents, 17, 0, count_words) == chosen
    assert choose_candidates(documents, 17, 1, count_words) != chosen
    everything = choose_candidates(documents, 1000, 0, count_words)
    assert {document.id for document in everything} == {document.id for document in documents}


@pytest.mark.parametrize(("many", "size"), [(10, 50), (9, 24)])
def test_a_model_with_many_heads_has_fewer_texts(monkeypatch: pytest.MonkeyPatch, many: int, size: int) -> None:
    monkeypatch.setattr(job, "MANY_HEADS", many)
    model = Model.from_module(*tiny.make("bert"), name="bert")  # 2 layers of 5 heads
    documents = read([f"the dog sees a cat in the house {'now ' * (number % 5)}." for number in range(71)])
    dataset = make_examples(model, documents, measure(model, documents, ["surface"]), [], Plan(), size=None, seed=0,
                            progress=ignore)  # fmt: skip
    assert dataset is not None
    texts = unpack(dataset)[0]
    assert len(texts) == size
    assert all(10 <= len(text.sides["encoder"].tokens) <= 24 for text in texts)
