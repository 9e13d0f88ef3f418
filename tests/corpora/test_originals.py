"""Equal texts: which one is the original, whatever the order; different texts never are one; and what that costs."""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from headscope.corpora import Corpus, Document, Span, read, summarize
from headscope.corpora.document import Origin
from headscope.corpora.originals import Originals, mark_repeats, name_clusters

TEXTS = {"a": "the dog barks", "b": "it rains", "c": "yes"}


def copies() -> list[Document]:
    """Each text three times in other groups, among two texts that are there once."""
    again = [Document(f"{name}{k}", tuple(text.split()), group=f"g{k}") for name, text in TEXTS.items() for k in "312"]
    return [Document("d7", ("no",), group="g7"), *again, Document("d8", ("never",), group="g8")]


def find_origins(documents: list[Document]) -> dict[str, Origin]:
    return {document.id: document.origin for document in mark_repeats(documents, summarize(documents).originals)}


@pytest.mark.parametrize("seed", range(5))
def test_the_original_has_the_smallest_group_and_id_in_any_order(seed: int) -> None:
    documents = copies()
    random.Random(seed).shuffle(documents)
    expected = {f"{name}{k}": Origin("g1", f"{name}1") for name in TEXTS for k in "123"}
    assert find_origins(documents) == expected | {"d7": Origin("g7", "d7"), "d8": Origin("g8", "d8")}


def test_a_group_of_copies_alone_is_no_text_and_a_document_without_a_group_counts_by_its_id() -> None:
    assert summarize(copies()).texts == 3
    plain = [Document("9", ("yes",)), Document("10", ("yes",)), Document("11", ("no",), group="t")]
    assert find_origins(plain)["9"].cluster == "10"
    assert summarize(plain).texts == 2


def test_only_what_a_model_reads_alike_is_a_copy() -> None:
    text = Document("1", ("the", "dog", "barks"))
    other = [
        replace(text, id="2", words=("the", "dog barks")), replace(text, id="3", boundary=1),
        replace(text, id="4", translation=("der",)), replace(text, id="5", words=("The", "dog", "barks")),
    ]  # fmt: skip
    annotated = replace(text, id="6", label="x", spans=(Span(0, 2, "1", "mention"),), group="z")
    origins = find_origins([text, *other, annotated])
    assert [id for id, origin in origins.items() if origin.id != id] == ["6"]
    assert origins["6"] == Origin("", "1")


def test_texts_with_one_hash_stay_apart(monkeypatch) -> None:
    documents, plain = copies(), find_origins(copies())
    for module in ("originals", "summary"):
        monkeypatch.setattr(f"headscope.corpora.{module}.hash_text", lambda document: 7)
    assert find_origins(documents) == plain
    assert summarize(documents).texts == 3


def test_what_can_be_read_once_has_the_same_originals() -> None:
    assert summarize(iter(copies())).originals == summarize(copies()).originals != Originals()


@pytest.mark.parametrize(("corpus", "times"), [
    ("grammar:31", 1), ("needles:3", 1), ("repeats:3", 1), (["it rains", "it rains"], 2),
])  # fmt: skip
def test_a_corpus_is_read_again_only_if_it_has_copies(monkeypatch, corpus: object, times: int) -> None:
    given, parts = [], Corpus.read_parts

    def count(self: Corpus) -> Iterator[object]:
        given.append(1)
        return parts(self)

    documents = read(corpus)
    monkeypatch.setattr(Corpus, "read_parts", count)
    assert len(summarize(documents).originals.copies) == times - 1
    assert len(given) == times


def test_a_copy_stays_one_when_it_is_cut() -> None:
    *_, last = mark_repeats(copies()[:5], summarize(copies()).originals)
    assert last.truncate(1).origin == last.origin != Origin(last.group, last.id)


def test_texts_in_memory_are_named_by_the_cluster_of_the_original() -> None:
    origins = [Origin("b", "1"), Origin("", "2"), Origin("a", "3"), Origin("c", "4")]
    assert name_clusters(origins, ["x", "y", "x", "y"]) == ("a", "2", "a", "2")
