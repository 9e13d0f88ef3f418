"""The coreference column of CoNLL files: a bracket where a mention opens, and one where it closes.

``(3`` opens a mention of chain 3, ``3)`` closes one and ``(3)`` is one of a single word. What falls
on one word stands side by side, with ``|`` between (``(3|4)``) or without (``(3(4)``).
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from headscope.corpora.document import Skipped, Span
from headscope.errors import CorpusError, quote

_BRACKET = re.compile(r"\([0-9]+\)?|[0-9]+\)")
_NONE = ("", "-", "_")


@dataclass(frozen=True, slots=True)
class Row:
    """One word of a document, the line on which it stands, and its cell of the coreference column."""

    line: int
    word: str
    cell: str


def parse_mentions(path: Path, rows: Iterable[Row]) -> tuple[Span, ...] | Skipped:
    """The mentions of one document, in order of their start, end and chain.

    A bracket closes the mention of its chain that was opened last. Where a bracket has no other, what
    the mentions are is not known, so the whole document is to be skipped: because of the first that
    closes nothing or, if there is none, of the first that is not closed.

    Raises:
        CorpusError: a cell holds anything but brackets.
    """
    open_mentions: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    spans: list[Span] = []
    unopened: list[int] = []
    for i, row in enumerate(rows):
        for bracket in _split_brackets(path, row):
            chain = bracket.strip("()")
            if bracket.startswith("("):
                open_mentions[chain].append((i, row.line))
            if bracket.endswith(")") and open_mentions[chain]:
                spans.append(Span(open_mentions[chain].pop()[0], i + 1, chain, kind="mention"))
            elif bracket.endswith(")"):
                unopened.append(row.line)
    unbalanced = unopened or [line for unclosed in open_mentions.values() for _, line in unclosed]
    if unbalanced:
        return Skipped(f"{path}:{min(unbalanced)}", "documents with an unbalanced coreference bracket")
    return tuple(sorted(spans, key=lambda span: (span.start, span.end, span.label)))


def _split_brackets(path: Path, row: Row) -> list[str]:
    """The brackets of a cell, one after the other: "(12)" is one, and never "(1" and "2)"."""
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
