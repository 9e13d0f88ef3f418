"""Documents in units: what is annotated on words is annotated on units, and what cannot be is counted."""

from collections import Counter
from collections.abc import Sequence

import pytest

from headscope.corpora import Document, Link, Span
from headscope.corpora.units import unite_words
from headscope.corpora.written_text import WrittenText, join_words

# German "im Haus": the words "in" and "dem" have the characters of "im".
TEXT = WrittenText("Er ist im Haus.", ((0, 2), (3, 6), (7, 9), (7, 9), (10, 14), (14, 15)))
WORDS = ("Er", "ist", "in", "dem", "Haus", ".")
UNITS = [0, 1, 2, 2, 3, 4]


def make(*links: Link, **fields: object) -> Document:
    return Document("d", WORDS, links, written=TEXT, **fields)


def unite(document: Document, units: Sequence[int]) -> tuple[Document, Counter]:
    return unite_words(document, units, [document.text])


def test_a_unit_has_the_characters_of_its_words() -> None:
    united, losses = unite(make(spans=(Span(3, 5, "1", "mention"),), boundary=4), UNITS)
    assert united.words == ("Er", "ist", "im", "Haus", ".")
    assert united.text == WrittenText(TEXT.content, ((0, 2), (3, 6), (7, 9), (10, 14), (14, 15)))
    assert (united.spans, united.boundary) == ((Span(2, 4, "1", "mention"),), 3)
    assert (united.original.words, [*united.unit_numbers]) == (WORDS, UNITS)
    assert not losses


def test_words_that_are_no_units_are_left_as_they_are() -> None:
    document = make()
    assert unite(document, range(6)) == (document, {})
    assert document.original is document
    assert [*document.unit_numbers] == [*range(6)]


def test_a_link_inside_a_unit_is_left_out_and_counted() -> None:
    united, losses = unite(make(Link(3, 2, "det"), Link(2, 4, "case"), Link(3, 4, "det")), UNITS)
    assert united.links == (Link(2, 3, "case"), Link(2, 3, "det"))
    assert losses == {"links inside a unit of words that share a token": 1}


def test_links_that_are_one_between_units_count_once() -> None:
    united, losses = unite(make(Link(2, 4, "case"), Link(3, 4, "case")), UNITS)
    assert united.links == (Link(2, 3, "case"),)
    assert losses == {"links between the same two units as another link": 1}


@pytest.mark.parametrize(
    ("rivals", "kept"),
    [((1, 4), (1, 3)), ((2,), ()), ((2, 1), ()), ((4, 5), (3, 4))],
    ids=["apart", "one", "two", "all"],
)
def test_a_choice_whose_candidates_share_a_unit_is_scored_without_them(rivals: tuple, kept: tuple) -> None:
    united, losses = unite(make(Link(0, 3, "points", rivals=rivals)), UNITS)
    assert united.links == (Link(0, 2, "points", rivals=kept),)
    assert losses == ({} if kept else {"links whose candidates share a unit (scored without their candidates)": 1})


def test_two_rivals_of_one_unit_leave_no_easier_choice() -> None:
    united, losses = unite(make(Link(0, 4, "points", rivals=(2, 3))), UNITS)
    assert united.links == (Link(0, 3, "points"),)
    assert sum(losses.values()) == 1


def test_a_part_of_a_document_in_units_has_the_words_of_its_units() -> None:
    united, _ = unite(make(), UNITS)
    part = united.truncate(3)
    assert (part.words, part.original.words, [*part.unit_numbers]) == (("Er", "ist", "im"), WORDS[:4], UNITS[:4])


def test_a_document_without_a_text_is_united_by_its_words() -> None:
    united, _ = unite(Document("d", ("a", "b", "c")), [0, 0, 1])
    assert united.words == ("a b", "c")
    assert united.written == WrittenText("a b c", ((0, 3), (4, 5)))
    assert join_words(united.words) == WrittenText("a b c", ((0, 3), (4, 5)))


def test_of_a_sure_and_a_possible_link_between_units_the_sure_one_counts() -> None:
    links = (Link(3, 0, "possible", "alignment"), Link(2, 0, "sure", "alignment"), Link(3, 1, "possible", "alignment"))
    united, _ = unite(make(translation=("in", "the"), alignment=links), UNITS)
    assert {*united.alignment} == {Link(2, 0, "sure", "alignment"), Link(2, 1, "possible", "alignment")}
