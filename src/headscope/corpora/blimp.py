"""Minimal pairs in the format of BLiMP (Warstadt et al. 2020, TACL 8), as JSON Lines: a line is a pair of sentences.

The two sentences differ in the part that makes the second ungrammatical::

    {"sentence_good": "She left.", "sentence_bad": "She leave.", "UID": "agreement", "pairID": "0"}

In BLiMP a file is a paradigm of 1,000 pairs, a phenomenon has several paradigms, and a field several phenomena.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.corpora.document import Document
from headscope.corpora.jsontext import get_text, is_text, parse_object, show
from headscope.corpora.text import read_lines
from headscope.corpora.written_text import split_text
from headscope.errors import CorpusError

_SIDES = ("sentence_good", "sentence_bad")
_PAIR = re.compile(rf'\s*\{{.*"({"|".join(_SIDES)})"\s*:', re.DOTALL)

# Two paradigms name another phenomenon than the paper, and one spells its field in its own way.
_NAMES_IN_PAPER = {"s-selection": "argument_structure", "syntax/semantics": "syntax_semantics"}


@dataclass(frozen=True, slots=True)
class MinimalPair:
    """Two sentences that differ as little as possible; only the first is grammatical.

    Attributes:
        id: the paradigm, and the number of the pair in the paradigm: ``adjunct_island:0``.
        good: the grammatical sentence.
        bad: the ungrammatical sentence.
        paradigm: the name of the difference between the sentences, ``adjunct_island``.
        phenomenon: the phenomenon of the paradigm, ``island_effects``; empty if it is unknown.
        field: the field of the phenomenon, ``syntax``; empty if it is unknown.
    """

    id: str
    good: str
    bad: str
    paradigm: str
    phenomenon: str = ""
    field: str = ""

    @property
    def is_equal(self) -> bool:
        """Whether both sentences are the same, as in 7 pairs of BLiMP; a model cannot prefer one of them."""
        return self.good == self.bad


def read(path: Path, *, name: str | None = None) -> Iterator[Document]:
    """Yield both sentences of each pair of a file, the one with the label ``good``, the other with ``bad``.

    The two sentences of a pair are one group. White space separates the words of a sentence, as in plain text.

    Raises:
        CorpusError: as in `read_pairs`.
    """
    prefix = name or path.name
    for pair in read_pairs(path):
        group = f"{prefix}:{pair.id}"
        for label, sentence in (("good", pair.good), ("bad", pair.bad)):
            words, written = split_text(sentence)
            yield Document(f"{group}:{label}", words, label=label, group=group, written=written)


def read_pairs(path: Path) -> Iterator[MinimalPair]:
    """Yield the minimal pairs of one file, each a JSON object on a line of its own.

    =====================  ==================================================================
    key                    value
    =====================  ==================================================================
    ``sentence_good``      the grammatical sentence
    ``sentence_bad``       the ungrammatical sentence
    ``UID``                the paradigm; by default the name of the file without its suffix
    ``pairID``             the number of the pair in its paradigm; by default the number of the line
    ``linguistics_term``   the phenomenon, if it is known
    ``field``              the field, if it is known
    =====================  ==================================================================

    All values are strings. Other keys and lines without a visible character are ignored. Phenomena and fields have the
    names of the paper: its argument structure includes the ``s-selection`` of two files, and ``syntax/semantics`` is
    ``syntax_semantics``.

    Raises:
        CorpusError: a line is not a JSON object, lacks a sentence, has a value that is not a string with a visible
            character, or has the paradigm and number of another line; or the file holds no line or is not UTF-8.
    """
    lines: dict[str, int] = {}
    for number, line in read_lines(path):
        if not line.strip():
            continue
        pair = _parse_pair(f"{path}:{number}", line, path.stem, number)
        if (before := lines.setdefault(pair.id, number)) != number:
            raise CorpusError(
                f'{path}:{number} has the pair {show(pair.id)} as line {before} has; a pair needs a "pairID" '
                f"of its own: change one of them, or leave all out."
            )
        yield pair
    if not lines:
        raise CorpusError(
            f'{path} has no minimal pair; expected a JSON object with "sentence_good" and "sentence_bad" on each line: '
            f"check that the file is whole."
        )


def recognise(beginning: Sequence[str]) -> bool:
    """Return whether the first nonempty line begins a JSON object with ``sentence_good`` or ``sentence_bad``."""
    # The line may be cut off, so it cannot be parsed.
    return _PAIR.match(next((line for line in beginning if line.strip()), "")) is not None


def _parse_pair(where: str, line: str, stem: str, number: int) -> MinimalPair:
    record = parse_object(where, line, '{"sentence_good": "She left.", "sentence_bad": "She leave."}')
    good, bad = (_get_sentence(where, record, side) for side in _SIDES)
    keys = ("UID", "pairID", "linguistics_term", "field")
    paradigm, pair_id, phenomenon, field = (get_text(where, record, key) or "" for key in keys)
    paradigm = paradigm or stem
    phenomenon, field = (_NAMES_IN_PAPER.get(term, term) for term in (phenomenon, field))
    return MinimalPair(f"{paradigm}:{pair_id or number}", good, bad, paradigm, phenomenon, field)


def _get_sentence(where: str, record: Mapping[str, Any], side: str) -> str:
    sentence = record.get(side)
    if not is_text(sentence):
        problem = f'the "{side}" {show(sentence)}' if side in record else f'no "{side}"'
        raise CorpusError(
            f'{where} has {problem}; a minimal pair needs "sentence_good" and "sentence_bad", each a string with at '
            f"least one visible character: correct the line, or leave it out."
        )
    return str(sentence)
