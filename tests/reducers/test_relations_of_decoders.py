"""Relations of a decoder: worlds of causal heads, in which each direction has links of its own."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest
import xarray as xr

from causal_heads import Scores, attend_evenly, build, like_tokens, look_at_place, look_back, look_nearby
from family_maps import make
from headscope.corpora import Document, Link, read, summarize
from headscope.reducers import Relations
from headscope.reducers.relations import ACCURACY
from headscope.view.offsets import best_offset

IGNORANT = [attend_evenly, like_tokens, look_at_place(0), look_at_place(3), look_nearby(2.0), look_nearby(5.0)]
TEXTS = 199


def judge(heads: list[Scores], documents: list[Document]) -> xr.DataArray:
    table = build(Relations.for_corpus(summarize(documents)), make("gpt2"), heads, documents)
    return table.sel(relation="all")


def look_at_equal(ids: Sequence[int]) -> np.ndarray:
    """To the same token, where it stood before."""
    return 9.0 * (np.equal.outer(ids, ids) & ~np.eye(len(ids), dtype=bool))


@pytest.fixture(scope="module")
def texts() -> list[Document]:
    """The same random words twice, 16 to 30 of them."""
    return [document for document in read("repeats:997:5") if len(document.words) <= 60][:TEXTS]


@pytest.fixture(scope="module")
def mostly_ahead(texts: list[Document]) -> list[Document]:
    """Nearly all links lead from a word to the next one, or to that behind it, and one in each text leads back."""
    documents = []
    for document in texts:
        ahead = [Link(place, place + (2 if place % 5 == 0 else 1), "x") for place in range(3, 13)]
        documents.append(replace(document, links=(*ahead, Link(9, 5, "x"))))
    return documents


def test_a_direction_with_few_links_is_not_the_one_reported_because_a_head_gets_all_of_them(
    mostly_ahead: list[Document],
) -> None:
    row = judge([*IGNORANT, look_back(1), look_back(4)], mostly_ahead)
    to_head, to_dependent = (
        row["relation_accuracy"].sel(direction=way) for way in ("dependent_to_head", "head_to_dependent")
    )
    assert to_head.values[0, -1] == 1
    assert to_dependent.values[0, -2] == pytest.approx(0.8)
    assert row["relation_count"].sel(direction=["dependent_to_head", "head_to_dependent"]).values.tolist() == [
        TEXTS, 10 * TEXTS,
    ]  # fmt: skip
    assert row["relation_left_out"].sel(direction="dependent_to_head") == 10 * TEXTS
    assert str(row["reported_direction"].item()) == "head_to_dependent"
    assert float(row["heldout_accuracy"]) == pytest.approx(0.8)
    # What it finds, a fixed offset finds too.
    assert float(row["heldout_offset_accuracy"]) == pytest.approx(0.8)
    assert str(row["reported_verdict"].item()) == "does not stand out"


@pytest.fixture(scope="module")
def repetitions(texts: list[Document]) -> list[Document]:
    """Random tokens, a few of which stand twice: links from the later to the earlier, in half of the texts ahead."""
    documents = []
    for number, document in enumerate(texts):
        random, half = Random(number), document.truncate(len(document.words) // 2)
        tokens, places = [*half.random_tokens], random.sample(range(len(half.words)), 8)
        links = []
        for earlier, later in (sorted(pair) for pair in zip(places[::2], places[1::2], strict=True)):
            tokens[later] = tokens[earlier]
            links.append(Link(later, earlier, "x") if number % 2 else Link(earlier, later, "x"))
        documents.append(replace(half, random_tokens=tuple(tokens), links=tuple(links)))
    return documents


def test_heads_that_know_nothing_do_not_stand_out(repetitions: list[Document]) -> None:
    row = judge(IGNORANT, repetitions)
    assert str(row["reported_verdict"].item()) == "does not stand out"


def test_a_head_that_finds_the_earlier_end_stands_out_and_beats_rivals_on_the_links_that_count(
    repetitions: list[Document],
) -> None:
    row = judge([*IGNORANT, look_at_equal], repetitions)
    assert row["reported_head"] == len(IGNORANT) + 1
    assert float(row["heldout_accuracy"]) > 0.9  # a few random words are the same token
    assert str(row["reported_verdict"].item()) == "stands out"
    # The links that point ahead do not count, for the head and for its rivals.
    counts = row["relation_count"].sum("direction")
    assert counts == sum(len(document.links) for document in repetitions)
    assert (row["fold_link"].sum(["direction", "fold"]) == counts).all()
    of_offsets = row["fold_offset"].sum("fold").transpose("direction", "offset")
    assert (of_offsets.sel(direction="head_to_dependent").where(of_offsets["offset"] < 0, 0) == 0).all()


def test_the_best_fixed_offset_is_that_which_finds_most_links(mostly_ahead: list[Document]) -> None:
    table = build(Relations.for_corpus(summarize(mostly_ahead)), make("gpt2"), [*IGNORANT, look_back(1)], mostly_ahead)
    assert best_offset(table, ACCURACY, {"relation": "all"}) == (1, pytest.approx(0.8))
    assert float(table["offset_accuracy"].sel(relation="all", offset=1)) == pytest.approx(8 / 11)
