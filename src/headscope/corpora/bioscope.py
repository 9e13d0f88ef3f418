"""Negation in BioScope, in XML (Vincze et al. 2008): a sentence is a Document.

In a sentence, ``<xcope>`` marks a scope and ``<cue>`` a cue. The ``ref`` of a cue is the ``id`` of its scope. Scopes
may be nested, and a cue is inside its scope. Cues with the same ``ref`` are one cue (*neither ... nor*).
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headscope.corpora.cues import NEGATION, read_types
from headscope.corpora.document import Document, Skipped, Span, merge_into_spans
from headscope.corpora.markup import Element, Markup, add_sentence, find_tags
from headscope.corpora.written_text import WrittenText, find_covered, find_words
from headscope.errors import CorpusError

_MARKED = ("xcope", "cue")
_MARKUP = Markup(
    "BioScope",
    {
        "": ("Annotation",), "Annotation": ("DocumentSet",), "DocumentSet": ("Document",),
        "Document": ("DocID", "DocumentPart", "sentence"), "DocumentPart": ("sentence",), "sentence": _MARKED,
        "xcope": _MARKED, "cue": _MARKED,
    },
    with_text=("DocID", "xcope", "cue", "sentence"),
    mixed=True,
)  # fmt: skip
_WITHOUT_WORDS = "sentences without a word"
_SCOPE_OF_NONE = "scopes that no cue of their sentence names"
_SCOPE_ELSEWHERE = "negations whose scope is not in their sentence"


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence: its element, its id, its document, its stretches of text, its cues and scopes.

    ``characters`` has the index of the first character of each cue and scope, and the index after its last character.
    """

    element: Element
    id: str
    document: str
    pieces: list[str] = field(default_factory=list)
    cues: list[Element] = field(default_factory=list)
    scopes: list[Element] = field(default_factory=list)
    characters: dict[Element, tuple[int, int]] = field(default_factory=dict)


def read(path: Path, *, name: str | None = None) -> Iterator[Document | Skipped]:
    """Yield the sentences of one file, with the cue and the scope of each negation.

    `find_words` splits the text into words. In the text, a space replaces each line break. Negations are numbered from
    1 in the order of their cues. The scope has all words that overlap it, except the words of the cue. A cue that is a
    proper part of its word is an ``affixal_cue``, and the word is in the scope. Cues and scopes of speculation are
    ignored. The group of a sentence is its document.

    A scope without a cue, a negation whose scope is not in its sentence, and a sentence without a word are skipped.

    Raises:
        CorpusError: the file is not well-formed XML in UTF-8, declares entities, has elements or text where the
            corpus has none, or has no sentence; two sentences of a document or two scopes of a sentence have the same
            id, an attribute is missing, a cue has no word, or is neither a negation nor a speculation, or both.
    """
    prefix = name or path.name
    lines: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for sentence in _read_sentences(path):
        add_sentence(path, lines[sentence.document], sentence.element, sentence.id)
        where, raw = f"{path}:{sentence.element.line}", "".join(sentence.pieces)
        text = find_words(raw)
        types, scopes = _read_types(path, sentence, text), _read_scopes(path, sentence)
        if not text.edges:
            yield Skipped(where, _WITHOUT_WORDS)
            continue
        for scope_id, scope in scopes.items():
            if scope_id not in types:
                yield Skipped(f"{path}:{scope.line}", _SCOPE_OF_NONE)
        negations = [cue_id for cue_id, type in types.items() if type == NEGATION]
        for cue_id in negations:
            if cue_id not in scopes:
                yield Skipped(where, _SCOPE_ELSEWHERE)
        known = {cue_id: scopes[cue_id] for cue_id in negations if cue_id in scopes}
        written = find_words(re.sub(r"\s*\n\s*", " ", raw.strip()))
        group = f"{prefix}:{sentence.document}"
        spans = tuple(_build_spans(sentence, text, known))
        yield Document(f"{group}:{sentence.id}", written.words, spans=spans, group=group, written=written)
    if not lines:
        raise CorpusError(f"{path} has no sentence; BioScope needs <sentence> in <DocumentPart>: check the file.")


def recognise(beginning: Sequence[str]) -> bool:
    """Return whether the first tags in these lines of a file are ``Annotation``, ``DocumentSet`` and ``Document``."""
    tags = find_tags(beginning)
    return [next(tags, None) for _ in range(3)] == ["Annotation", "DocumentSet", "Document"]


def _build_spans(sentence: _Sentence, text: WrittenText, scopes: Mapping[str, Element]) -> Iterator[Span]:
    """Yield the spans of the cues and scopes of negations; `scopes` has the scope of each negation by its id."""
    cues: defaultdict[str, list[Element]] = defaultdict(list)
    for cue in sentence.cues:
        cues[cue.attributes["ref"]].append(cue)
    for label, (cue_id, scope) in enumerate(scopes.items(), start=1):
        whole, parts = set[int](), set[int]()
        for start, end in (sentence.characters[cue] for cue in cues[cue_id]):
            for word in range(*find_covered(text, start, end)):
                first, last = text.edges[2 * word : 2 * word + 2]
                (whole if start <= first and last <= end else parts).add(word)
        yield from merge_into_spans(whole, str(label), "cue")
        yield from merge_into_spans(parts - whole, str(label), "affixal_cue")
        covered = range(*find_covered(text, *sentence.characters[scope]))
        yield from merge_into_spans({*covered} - whole, str(label), "scope")


def _read_types(path: Path, sentence: _Sentence, text: WrittenText) -> dict[str, str]:
    """Return the type of each cue of a sentence, ``negation`` or ``speculation``, by the id of its scope."""
    types = read_types(_MARKUP, path, sentence.cues, "ref", repr(sentence.id))
    for cue in sentence.cues:
        first, end = find_covered(text, *sentence.characters[cue])
        if first == end:
            raise CorpusError(
                f"{path}:{cue.line} has a cue without words in sentence {sentence.id!r}; "
                f"a cue needs at least one: remove it or correct it."
            )
    return types


def _read_scopes(path: Path, sentence: _Sentence) -> dict[str, Element]:
    scopes: dict[str, Element] = {}
    for scope in sentence.scopes:
        scope_id = _MARKUP.get_attribute(path, scope, "id")
        if scope_id in scopes:
            raise CorpusError(
                f"{path}:{scope.line} has a second scope with the id {scope_id!r} in sentence {sentence.id!r}; a cue "
                f"names its scope by its id: renumber one of them."
            )
        scopes[scope_id] = scope
    return scopes


def _read_sentences(path: Path) -> Iterator[_Sentence]:
    document, number, length = "", 0, 0
    sentence: _Sentence | None = None
    for event, element in _MARKUP.parse(path):
        if event == "start" and element.name == "Document":
            number += 1
            document = str(number)
        elif event == "end" and element.name == "DocID":
            document = "".join(element.pieces).strip() or document
        elif event == "start" and element.name == "sentence":
            sentence, length = _Sentence(element, _MARKUP.get_attribute(path, element, "id"), document), 0
        elif sentence is None:
            continue
        elif event == "text":
            sentence.pieces.extend(element.pieces)
            length += len(element.pieces[0])
        elif event == "start":
            (sentence.cues if element.name == "cue" else sentence.scopes).append(element)
            sentence.characters[element] = length, length
        elif element.name == "sentence":
            yield sentence
            sentence = None
        else:
            sentence.characters[element] = sentence.characters[element][0], length
