"""Coreference brackets: which opens and which closes a mention, and what is no bracket at all."""

from pathlib import Path

import pytest

from headscope.corpora import Skipped, Span
from headscope.corpora.brackets import Row, parse_mentions
from headscope.errors import CorpusError

PATH = Path("book.conll")


def rows(cells: str) -> list[Row]:
    """Words on lines 11, 12 and so on, with these cells."""
    return [Row(line, "w", cell) for line, cell in enumerate(cells.split(), start=11)]


def spans(*found: tuple[int, int, str]) -> tuple[Span, ...]:
    return tuple(Span(start, end, chain, kind="mention") for start, end, chain in found)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ("(3) _ (12 - 12)", [(0, 1, "3"), (2, 5, "12")]),
        # Nested in another chain, with and without a stroke between the brackets.
        ("(1|(2) 1)", [(0, 1, "2"), (0, 2, "1")]),
        ("(1(2) 1)", [(0, 1, "2"), (0, 2, "1")]),
        ("(1 (2)|1)", [(0, 2, "1"), (1, 2, "2")]),
        ("(1 (2)1)", [(0, 2, "1"), (1, 2, "2")]),
        # Two chains that cross, and two on one word.
        ("(1 (2 1) 2)", [(0, 3, "1"), (1, 4, "2")]),
        ("(1|(2 1)2)", [(0, 2, "1"), (0, 2, "2")]),
        ("(9 (7|9) 7)", [(0, 2, "9"), (1, 3, "7")]),
        # Nested in its own chain: the mention opened last is closed first.
        ("(5 (5 5) 5)", [(0, 4, "5"), (1, 3, "5")]),
        ("(5 (5) 5)", [(0, 3, "5"), (1, 2, "5")]),
        ("(5|(5 5)|5)", [(0, 2, "5"), (0, 2, "5")]),
        # One mention after another on one word.
        ("(1 1)|(1 1)", [(0, 2, "1"), (1, 3, "1")]),
        ("(1 1)(2)(1 1)", [(0, 2, "1"), (1, 2, "2"), (1, 3, "1")]),
        ("_ - _", []),
    ],
)
def test_a_bracket_closes_the_mention_of_its_chain_that_was_opened_last(cells, expected):
    assert parse_mentions(PATH, rows(cells)) == spans(*expected)


def test_an_empty_cell_is_no_mention():
    assert parse_mentions(PATH, [Row(1, "w", ""), Row(2, "w", "(0)")]) == spans((1, 2, "0"))


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        ("_ 3) _", 12),
        ("(3) _ 3)", 13),
        ("_ (3 _", 12),
        ("(3 (3 3)", 11),
        ("_ (3 4)", 13),
        ("_ (3 (4", 12),
        ("_ 4) (3", 12),
        ("_ 3)|(3", 12),
    ],
)
def test_a_bracket_that_has_no_other_leaves_the_document_out_at_its_line(cells, line):
    assert parse_mentions(PATH, rows(cells)) == Skipped(
        f"book.conll:{line}", "documents with an unbalanced coreference bracket"
    )


@pytest.mark.parametrize(
    "cell", ["3", "(", ")", "()", "(a)", "NN", "(3||(4", "|(3)", "(3)|", "(3))", "(-3)", "(٣)", "*"]
)
def test_a_cell_that_is_no_bracket_is_refused_also_after_one_that_has_no_other(cell):
    with pytest.raises(CorpusError) as caught:
        parse_mentions(PATH, rows(f"_ 7) {cell}"))
    assert str(caught.value) == (
        f"book.conll:13 has {cell!r} in its coreference column; expected brackets with the number of a chain, as in "
        f"'(3', '3)' or '(3)|4)', or '_' for none: correct the last column."
    )
