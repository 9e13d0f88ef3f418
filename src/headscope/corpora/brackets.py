"""Coreference in brackets, as in CoNLL files: a bracket opens each mention, and another closes it.

``(3`` opens a mention of chain 3, ``3)`` closes it, and ``(3)`` is a mention of one word. Several brackets at one word
follow each other, with ``|`` between (``(3|4)``) or without (``(3(4)``).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from headscope.corpora.document import Skipped, Span
from headscope.errors import CorpusError, quote

_BRACKET = re.compile(r"\([0-9]+\)?|[0-9]+\)")
_NONE = ("", "-", "_")


@dataclass(frozen=True, slots=True)
class Row:
    """One word of a document, its line, and its cell of the coreference column."""

    line: int
    word: str
    cell: str


@dataclass(frozen=True, slots=True)
class Bracket:
    """A bracket that opens a mention, closes one, or does both.

    Attributes:
        line: the line of the bracket.
        chain: the chain of the mention.
        start: the index of the first word of the mention that it opens; None if it opens none.
        end: the index of the word after the mention that it closes; None if it closes none.
    """

    line: int
    chain: str
    start: int | None
    end: int | None


def parse_mentions(path: Path, rows: Iterable[Row]) -> tuple[Span, ...] | Skipped:
    """Return the mentions of a document, or a `Skipped` if a bracket has no partner.

    The mentions are in the order of start, end and chain.

    Raises:
        CorpusError: a cell holds anything but brackets.
    """
    mentions = pair_brackets(path, _find_brackets(path, rows))
    return mentions if isinstance(mentions, Skipped) else tuple(span for _, span in mentions)


def pair_brackets(path: Path, brackets: Iterable[Bracket]) -> list[tuple[int, Span]] | Skipped:
    """Return each mention of a document with the line on which it opens, or a `Skipped` if a bracket has no partner.

    The mentions are in the order of start, end and chain.

    A bracket closes the mention of its chain that was opened last. If a bracket has no partner, the mentions are
    unknown, so the whole document is skipped. The `Skipped` has the line of the first bracket that closes no mention
    or, if there is no such bracket, of the first mention that is not closed.
    """
    open_mentions: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    mentions: list[tuple[int, Span]] = []
    unopened: list[int] = []
    for bracket in brackets:
        waiting = open_mentions[bracket.chain]
        if bracket.start is not None:
            waiting.append((bracket.line, bracket.start))
        if bracket.end is not None and waiting:
            line, start = waiting.pop()
            mentions.append((line, Span(start, bracket.end, bracket.chain, kind="mention")))
        elif bracket.end is not None:
            unopened.append(bracket.line)
    unbalanced = unopened or [line for waiting in open_mentions.values() for line, _ in waiting]
    if unbalanced:
        return Skipped(f"{path}:{min(unbalanced)}", "documents with an unbalanced coreference bracket")
    return sorted(mentions, key=lambda mention: (mention[1].start, mention[1].end, mention[1].label))


def _find_brackets(path: Path, rows: Iterable[Row]) -> Iterator[Bracket]:
    for i, row in enumerate(rows):
        for text in _split_brackets(path, row):
            start = i if text.startswith("(") else None
            yield Bracket(row.line, text.strip("()"), start, i + 1 if text.endswith(")") else None)


def _split_brackets(path: Path, row: Row) -> list[str]:
    """Return the brackets of a cell, one after the other: "(12)" is one bracket, not "(1" and "2)"."""
    if row.cell in _NONE:
        return []
    brackets: list[str] = []
    place = 0
    while place < len(row.cell):
        bracket = _BRACKET.match(row.cell, place + bool(brackets and row.cell[place] == "|"))
        if bracket is None:
            raise CorpusError(
                f"{path}:{row.line} has {quote(row.cell)} in its coreference column; expected brackets with the number "
                "of a chain, as in '(3', '3)' or '(3)|4)', or '_' for none: correct the last column."
            )
        brackets.append(bracket[0])
        place = bracket.end()
    return brackets
