"""Word-aligned pairs of sentences: a sentence, its translation and the links between their words, one pair a line.

The parts of a line are separated by ``|||``, and the links are in the format of Pharaoh::

    das ist ein Haus ||| this is a house ||| 0-0 1-1 2p2 3-3

A link is the index of a source word, ``-`` if the link is sure or ``p`` if it is possible (Och and Ney 2003), and the
index of a target word; both are counted from 0. Some aligners and corpora count from 1, or write the index of the
target word first. A file does not say so; each such form has its own format name (`FORMS`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from headscope.corpora.document import POSSIBLE, SURE, Document, Link, Skipped
from headscope.corpora.text import format_count, read_lines
from headscope.errors import CorpusError, quote

SEPARATOR = "|||"
KIND = "alignment"
"""The kind of alignment links."""

LABELS = {"-": SURE, "p": POSSIBLE}
_LINKS = re.compile(r"\d{1,4}[-p]\d{1,4}")
EXAMPLE = "'das Haus ||| the house ||| 0-0 1-1'"


@dataclass(frozen=True)
class Form:
    """A form of links in a file: the number of the first word, and the order of the two words.

    Attributes:
        first: the number of the first word, 0 or 1.
        swapped: true if the index of the target word comes first.
    """

    first: int = 0
    swapped: bool = False


FORMS = {
    "alignments": Form(),
    "alignments-from-1": Form(first=1),
    "alignments-swapped": Form(swapped=True),
    "alignments-from-1-swapped": Form(first=1, swapped=True),
}
"""The form of links for each name of a format."""


def read(path: Path, *, name: str | None = None, form: Form = FORMS["alignments"]) -> Iterator[Document | Skipped]:
    """Yield a document for each pair of sentences in a file, and a `Skipped` for each blank line.

    The links of the file are written in `form`. White space separates the words.

    Raises:
        CorpusError: a line does not have three parts, a side has no words, a link is malformed, points outside its
            sentence or occurs twice; or the file holds no pair or is not UTF-8.
    """
    prefix, empty = name or path.name, True
    for number, line in read_lines(path):
        where = f"{path}:{number}"
        if not line.strip():
            yield Skipped(where, "blank lines")
            continue
        empty = False
        yield _parse_pair(where, f"{prefix}:{number}", line, form)
    if empty:
        raise CorpusError(f"{path} has no pair; expected one a line, such as {EXAMPLE}: check that the file is whole.")


def recognise(beginning: Sequence[str]) -> bool:
    """Return whether the first nonempty line has ``|||`` or, after its last tab, two or more links and nothing else.

    A file with links but no separators is recognised too. So `read` raises an error, and the file is not read as plain
    text.
    """
    first = next((line for line in beginning if line.strip()), "")
    links = first.rpartition("\t")[2].split()
    return SEPARATOR in first or (len(links) > 1 and all(map(_LINKS.fullmatch, links)))


def _parse_pair(where: str, identity: str, line: str, form: Form) -> Document:
    parts = line.split(SEPARATOR)
    if len(parts) != 3:
        raise CorpusError(
            f"{where} has {SEPARATOR} {format_count(len(parts) - 1, 'time')}; a pair has it twice, as in {EXAMPLE}: "
            "correct the line."
        )
    source, target, links = (tuple(part.split()) for part in parts)
    for side, words in (("source", source), ("target", target)):
        if not words:
            raise CorpusError(
                f"{where} has no {side} words; a pair has words on both sides, as in {EXAMPLE}: leave it out."
            )
    alignment = _parse_links(where, links, (len(source), len(target)), form)
    return Document(identity, source, translation=target, alignment=alignment)


def _parse_links(where: str, written: Sequence[str], words: tuple[int, int], form: Form) -> tuple[Link, ...]:
    """Return the links between the words of a pair of sentences.

    `written` are the links as text, and `words` the number of source words and of target words.
    """
    links: dict[tuple[int, int], Link] = {}
    for text in written:
        match = re.fullmatch("([0-9]{1,9})([-p])([0-9]{1,9})", text)
        if match is None:
            raise CorpusError(
                f"{where} has the link {quote(text)}; a link is two places, counted from {form.first}, with - between "
                "them if it is sure and p if it is possible, such as 1-2 or 1p1: correct it."
            )
        places = int(match[1]), int(match[3])
        pair = places[::-1] if form.swapped else places
        for side, number, length in zip(("source", "target"), pair, words, strict=True):
            if not form.first <= number < length + form.first:
                raise CorpusError(
                    f"{where} has the link {quote(text)}, and its {side} side has {format_count(length, 'word')}, "
                    f"counted from {form.first}; correct the link or, if all links are in another form, name the "
                    f"format: {', '.join(name for name, other in FORMS.items() if other != form)}."
                )
        if pair in links:
            raise CorpusError(
                f"{where} has two links between source word {pair[0]} and target word {pair[1]}; a pair of words is "
                "linked once: leave one out."
            )
        source, target = (number - form.first for number in pair)
        links[pair] = Link(source, target, LABELS[match[2]], kind=KIND)
    return tuple(links.values())
