"""Paths of several dependencies: every path by a walk up the tree, the most frequent of a corpus, and errors."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

import witnesses
from headscope.corpora import Document, Link, read, summarize
from headscope.corpora.paths import FEWEST, KIND, MOST, list_paths
from headscope.errors import CorpusError

GARDEN = Document(
    "garden", ("she", "waits", "in", "the", "old", "garden", "."),
    (
        Link(0, 1, "nsubj"), Link(2, 5, "case"), Link(3, 5, "det"), Link(4, 5, "amod"), Link(5, 1, "obl"),
        Link(6, 1, "punct"), Link(0, 5, "ARG0", kind="role"),
    ),
)  # fmt: skip


def test_paths_lead_from_a_word_to_the_head_of_its_head() -> None:
    assert [(link.source, link.target, link.label, link.kind) for link in list_paths(GARDEN, 2)] == [
        (2, 1, "obl+case", KIND), (3, 1, "obl+det", KIND), (4, 1, "obl+amod", KIND),
    ]  # fmt: skip


def test_three_dependencies_make_paths_of_two_and_of_three() -> None:
    further = replace(GARDEN, words=(*GARDEN.words, "said"), links=(*GARDEN.links, Link(1, 7, "ccomp")))
    paths = {(link.source, link.target, link.label) for link in list_paths(further, 3)}
    assert paths == {
        (2, 1, "obl+case"), (3, 1, "obl+det"), (4, 1, "obl+amod"), (0, 7, "ccomp+nsubj"), (5, 7, "ccomp+obl"),
        (2, 7, "ccomp+obl+case"), (3, 7, "ccomp+obl+det"), (4, 7, "ccomp+obl+amod"),
    }  # fmt: skip


def test_no_path_leads_through_punctuation_or_round_in_a_circle() -> None:
    odd = Document("odd", ("a", "b", "c", "d"), (Link(0, 1, "dep"), Link(1, 2, "punct"), Link(3, 2, "dep")))
    assert not [*list_paths(odd, 3)]
    circle = Document("circle", ("a", "b", "c"), (Link(0, 1, "x"), Link(1, 2, "y"), Link(2, 0, "z")))
    assert {(link.source, link.target, link.label) for link in list_paths(circle, 3)} == {
        (0, 2, "y+x"), (1, 0, "z+y"), (2, 1, "x+z"),
    }  # fmt: skip


def see_paths(documents: Iterable[Document]) -> int:
    """The paths of some documents, which must be those that the witness finds."""
    count = 0
    for document in documents:
        ours = [(link.source, link.target, link.label) for link in list_paths(document, 3)]
        assert len(ours) == len({*ours})
        assert {*ours} == witnesses.paths(document), document.id
        count += len(ours)
    return count


def test_paths_are_all_chains_of_links() -> None:
    assert see_paths(read("grammar:101:3")) > 500


@pytest.mark.data
def test_paths_of_a_treebank_are_all_chains_of_links(data: Path) -> None:
    assert see_paths(read(data / "ud/UD_English-EWT/en_ewt-ud-dev.conllu", limit=307)) > 2000


def test_the_most_frequent_paths_of_a_corpus_become_links() -> None:
    plain, with_paths = read("grammar:300:7"), read("grammar:300:7", hops=3)
    count = Counter(link.label for document in plain for link in list_paths(document, 3))
    links = summarize(with_paths).links
    assert links["dependency"] == summarize(plain).links["dependency"]
    for length in (2, 3):
        ranked = [label for label, _ in count.most_common() if label.count("+") == length - 1]
        frequent = {label for label in ranked[:MOST] if count[label] >= FEWEST}
        assert frequent
        assert {label: times for label, times in links[KIND].items() if label.count("+") == length - 1} == {
            label: count[label] for label in frequent
        }
    assert with_paths.sha256 != plain.sha256
    assert repr(with_paths) == "Corpus('grammar:300:7', grammar, paths of up to 3 dependencies)"


def test_documents_in_memory_have_paths_too() -> None:
    documents = [replace(GARDEN, id=str(number)) for number in range(FEWEST)]
    assert summarize(read(documents, hops=2)).links[KIND] == {
        "obl+case": FEWEST, "obl+det": FEWEST, "obl+amod": FEWEST,
    }  # fmt: skip


def test_a_corpus_without_frequent_paths_is_refused() -> None:
    with pytest.raises(CorpusError) as refused:
        summarize(read([GARDEN], hops=2))
    assert str(refused.value) == (
        f"no path of 2 dependencies occurs {FEWEST} times in the corpus; give a larger treebank, or leave out the hops."
    )


@pytest.mark.parametrize("hops", [0, 4, True])
def test_other_numbers_of_hops_are_refused(hops: object) -> None:
    with pytest.raises(CorpusError, match=r"^`hops` is .*; give 1 for dependencies alone, 2 or 3 for paths"):
        read("grammar", hops=hops)
