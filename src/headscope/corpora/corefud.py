"""Coreference as in CorefUD, in the column MISC of a treebank: the sentences of a text are a Document.

``Entity=(e1-person-1`` opens a mention of chain ``e1``, ``e1)`` closes it, and ``(e1-person-1)`` is a mention of one
word. Several brackets at one word follow each other. ``# global.Entity = eid-etype-head-other`` names the attributes in
their order. The chain is ``eid`` or, as in GUM, ``GRP``; the other attributes are not read.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from headscope.corpora.brackets import Bracket, pair_brackets
from headscope.corpora.columns import ID, MISC
from headscope.corpora.conllu import Sentence, read_sentences
from headscope.corpora.document import Document, Skipped, Span, join_sentences
from headscope.errors import CorpusError, quote

_ENTITY = "Entity="
_CHAIN = ("eid", "GRP")
_BRACKET = re.compile(r"\([^()]+\)?|[^()]+\)")
_PART = re.compile(r"\[([0-9]+)/[0-9]+\]$")

_NO_WORD = "mentions without a word"
_PARTS = "mentions whose words are not next to each other"


def read(path: Path, *, name: str | None = None) -> Iterator[Document | Skipped]:
    """Yield the texts of one file, each from a ``newdoc`` to the next, with a ``mention`` span for each mention.

    The label of a mention is its chain; a chain of one mention is kept. The links and spans of the treebank come before
    the mentions. The id and the group of a text are its name or the line of its ``newdoc``. A file without ``newdoc``
    is one text, with the id of its first sentence. If several texts have one name, the ids of all but the first end in
    the line of their ``newdoc``.

    Empty nodes are not words. A mention of empty nodes only is skipped. A mention in parts (``e1[1/2]``) is skipped
    too: as separate mentions, its parts would be antecedents of each other.

    Raises:
        CorpusError: a line is malformed, ``Entity`` holds anything but brackets or is at a token of several words,
            no comment says which attribute is the chain, or the file holds no sentence or is not UTF-8.
    """
    sentences: list[Sentence] = []
    skipped: list[Skipped] = []
    groups: set[str] = set()
    for part in read_sentences(path, name=name):
        if isinstance(part, Skipped):
            skipped.append(part)
            continue
        if sentences and part.text != sentences[0].text:
            yield from _join(path, sentences, groups)
            yield from skipped
            sentences, skipped = [], []
        sentences.append(part)
    yield from _join(path, sentences, groups)
    yield from skipped


def recognise(beginning: Sequence[str]) -> bool:
    """Return False: a file in this format is read as a plain treebank unless the user names the format."""
    return False


def _join(path: Path, sentences: Sequence[Sentence], groups: set[str]) -> Iterator[Document | Skipped]:
    """Yield the document of the sentences of a text, and then its skipped mentions; add the text to `groups`.

    If a coreference bracket has no partner, the whole text is skipped.
    """
    mentions = pair_brackets(path, _find_brackets(path, sentences))
    if isinstance(mentions, Skipped):
        yield mentions
        return
    group = sentences[0].document.group
    identity = f"{group}@{sentences[0].text}" if group in groups else group
    groups.add(group)
    document = join_sentences(identity, group, [sentence.document for sentence in sentences])
    spans: list[Span] = []
    skipped: list[Skipped] = []
    for line, span in mentions:
        part = _PART.search(span.label)
        if part is None and span.start < span.end:
            spans.append(span)
        elif part is None or part[1] == "1":
            skipped.append(Skipped(f"{path}:{line}", _NO_WORD if part is None else _PARTS))
    yield replace(document, spans=(*document.spans, *spans))
    yield from skipped


def _find_brackets(path: Path, sentences: Sequence[Sentence]) -> Iterator[Bracket]:
    """Yield the coreference brackets of a text.

    A bracket at an empty node opens before the next word, or closes after the previous word.
    """
    end = 0
    for sentence in sentences:
        for line, columns in sentence.rows:
            start = end
            end += columns[ID].isdigit()
            for cell in columns[MISC].split("|"):
                if not cell.startswith(_ENTITY):
                    continue
                if "-" in columns[ID]:
                    raise CorpusError(
                        f"{path}:{line} has {quote(cell)} at {quote(columns[ID])}, a token of several words; CorefUD "
                        f"has mentions at words: write what opens at the first of these, and what closes at the last."
                    )
                for text, chain in _split_brackets(path, line, cell, sentence.attributes):
                    opens, closes = text.startswith("("), text.endswith(")")
                    yield Bracket(line, chain, start if opens else None, end if closes else None)


def _split_brackets(path: Path, line: int, cell: str, attributes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each coreference bracket in a cell of a word, with its chain."""
    position = next((i for i, name in enumerate(attributes) if name in _CHAIN), None)
    if position is None:
        raise CorpusError(
            f"{path}:{line} has {quote(cell)}, and no '# global.Entity' above it says which attribute is the chain, "
            f"eid or GRP; add the comment, such as '# global.Entity = eid-etype-head-other'."
        )
    rest = cell.removeprefix(_ENTITY)
    brackets = _BRACKET.findall(rest)
    chains = [_find_chain(text, position) for text in brackets]
    if not (rest and all(chains) and "".join(brackets) == rest):
        raise CorpusError(
            f"{path}:{line} has {quote(cell)}; expected brackets, as in '(e1-person-1', 'e1)' or '(e1-person-1)(e2', "
            f"with the chain as attribute {position + 1} of those that open: correct column MISC."
        )
    yield from zip(brackets, chains, strict=True)


def _find_chain(text: str, position: int) -> str:
    """Return the chain that a coreference bracket names; empty if it names none.

    A bracket that opens a mention has the chain as the attribute at `position`; one that only closes has only a chain.
    """
    values = text.strip("()").split("-")
    if text.startswith("("):
        return "".join(values[position : position + 1])
    return values[0] if len(values) == 1 else ""
