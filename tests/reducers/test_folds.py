"""What is assigned to the folds: whole texts, where a corpus names enough of them; few of them evenly."""

import hashlib
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from headscope.corpora import Document, summarize
from headscope.corpora.originals import mark_repeats
from headscope.corpora.summary import LISTED
from headscope.learn.probe_data import PARTS, number_part
from headscope.reducers.support.folds import FEWEST_TEXTS, FOLDS, FoldAssignment


def corpus(texts: int, *, each: int = 3) -> list[Document]:
    """So many texts of three documents each; none is named if there are none."""
    if not texts:
        return [Document(f"document {number}", (f"a{number}",)) for number in range(31)]
    return [
        Document(f"{t}-{number}", (f"a{t}-{number}",), group=f"text {t}")
        for t in range(texts)
        for number in range(each)
    ]


@pytest.mark.parametrize(("texts", "unit"), [
    (0, "document"), (1, "document of few texts"), (7, "document of few texts"), (8, "text"), (31, "text"),
])  # fmt: skip
def test_the_unit_follows_from_the_texts_that_are_named(texts: int, unit: str) -> None:
    assert FEWEST_TEXTS == 8
    assert FoldAssignment.for_corpus(summarize(corpus(texts))).unit == unit


@pytest.mark.parametrize("seed", [0, 5])
def test_documents_of_one_text_share_a_fold_only_where_texts_are_assigned(seed: int) -> None:
    documents = corpus(11, each=7)
    for unit, most in (("text", 1), ("document", 7), ("document of few texts", 7)):
        assignment = FoldAssignment(unit, seed)
        folds = [{assignment.fold(document) for document in documents[k : k + 7]} for k in range(0, 77, 7)]
        assert max(map(len, folds)) <= most
        assert (min(map(len, folds)) > 1) == (most > 1)
        assert len(set.union(*folds)) > 7
    by_name = [
        [FoldAssignment(unit, seed).fold(one) for one in documents] for unit in ("document", "document of few texts")
    ]
    assert by_name[0] == by_name[1]


def test_a_document_that_names_no_text_is_one() -> None:
    document = Document("7", ("a",))
    assert FoldAssignment("text").fold(document) == FoldAssignment("document").fold(document)


def assign(documents: list[Document]) -> list[int]:
    """The fold of each document, by the assignment that suits all of them."""
    summary = summarize(documents)
    assignment = FoldAssignment.for_corpus(summary)
    return [assignment.fold(document) for document in mark_repeats(documents, summary.originals)]


@pytest.mark.parametrize("texts", [8, 31, 32, 40, 63, 64, 65, 101, 127, LISTED])
def test_few_texts_are_spread_evenly_over_folds_and_halves(texts: int) -> None:
    folds = assign(corpus(texts))
    assert folds[::3] == folds[1::3] == folds[2::3]
    sizes = np.bincount(folds[::3], minlength=FOLDS)
    assert (sizes.min(), sizes.max()) == (texts // FOLDS, -(-texts // FOLDS))
    halves = [sum(sizes[half::2]) for half in (0, 1)]
    assert halves == [-(-texts // 2), texts // 2]
    # Forty texts are twenty clusters on the half on which heads are scored.
    assert np.count_nonzero(sizes[1::2]) == min(texts // 2, FOLDS // 2)


def test_single_documents_are_spread_evenly_too() -> None:
    documents = corpus(0)
    assert len({*assign(documents)}) == len(documents) == 31
    of_few_texts = corpus(7)
    assert len({*assign(of_few_texts)}) == len(of_few_texts) == 21


def test_the_order_of_texts_is_that_of_the_hashes_of_their_names() -> None:
    """A witness with `sorted`, and in any order of the documents the same."""
    documents = corpus(41)
    names = sorted({d.group for d in documents}, key=lambda name: hashlib.sha256(f"0 {name}".encode()).digest()[:8])
    expected = {name: 39 * rank % 64 for rank, name in enumerate(names)}
    assert assign(documents) == [expected[document.group] for document in documents]
    assert assign(documents[::-1]) == assign(documents)[::-1]


def test_more_texts_than_are_listed_go_where_their_hash_says() -> None:
    """So that tables of large corpora are what they were."""
    for documents, name in ((corpus(LISTED + 1), "group"), (corpus(0) * 5, "id")):
        unlike = [replace(d, words=(f"w{n}",), id=f"{d.id} {n}") for n, d in enumerate(documents)]
        digests = [hashlib.sha256(f"0 {getattr(d, name)}".encode()).digest() for d in unlike]
        assert assign(unlike) == [int.from_bytes(digest[:8]) % 64 for digest in digests]


def test_where_the_hash_decides_each_half_has_twenty_clusters() -> None:
    """The fewest texts of which all is left to the hash, in 701 corpora."""
    draw = np.random.default_rng(5)
    folds = draw.integers(FOLDS, size=(701, LISTED + 1))
    assert min(len({*row[row % 2 == half].tolist()}) for row in folds for half in (0, 1)) >= 20


def test_copies_are_no_texts_that_take_a_fold() -> None:
    documents = corpus(31)
    copies = [replace(document, id=f"{document.id} again", group=f"{document.group} again") for document in documents]
    assert assign([*documents, *copies]) == assign(documents) * 2


def test_the_parts_of_probes_have_as_many_of_few_texts() -> None:
    documents = corpus(40, each=1)
    assignment = FoldAssignment.for_corpus(summarize(documents))
    counts = Counter(number_part(document, assignment) for document in documents)
    assert len(counts) == PARTS
    assert {*counts.values()} <= {1, 2, 3}
