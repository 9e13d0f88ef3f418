"""Negation in the SFU Review Corpus, in XML (Konstantinova et al. 2012): a sentence is a Document.

A review is a file. Its words, punctuation marks among them, are ``<W>``; ``<cue>`` holds the words of a cue, and
``<xcope>`` the words of a scope. The ``<ref>`` of a scope names its cues by their ``ID``. ``<C>`` marks words that
annotators examined as possible cues; it is ignored here. A contraction is two words in most reviews, ``do`` and
``n't``, which together are the cue, and one word in some (``can't``); words are not changed.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headscope.corpora.cues import NEGATION, read_types
from headscope.corpora.document import Document, Skipped, Span, merge_into_spans
from headscope.corpora.markup import Element, Markup, find_tags
from headscope.errors import CorpusError

_SCOPE_OF_NONE = "scopes that name no cue of their sentence"
_CUE_AS_SCOPE = "cues that name a cue or a scope, as only scopes should name cues"

_MARKED = ("C", "W", "cue", "xcope")
_MARKUP = Markup(
    "the SFU corpus",
    {
        "": ("DOCUMENT",), "DOCUMENT": ("DESC", "TIME", "P"), "P": ("SENTENCE",), "SENTENCE": _MARKED, "C": _MARKED,
        "cue": (*_MARKED, "ref"), "xcope": (*_MARKED, "ref"),
    },
    with_text=("DESC", "TIME", "W"),
)  # fmt: skip
_BEFORE_WORDS = ("DESC", "TIME", "P")

# Some reviews were converted as Latin-1, where Windows-1252 has printable marks.
_CONTROLS = {code: bytes([code]).decode("cp1252", errors="ignore") or chr(code) for code in range(0x80, 0xA0)}


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence: its number in the file, counted from 1, its words, its cues and its scopes.

    ``inside`` has the indices of the words inside an element, ``sources`` the IDs to which a cue or scope refers.
    """

    number: int
    words: list[str] = field(default_factory=list)
    inside: defaultdict[Element, set[int]] = field(default_factory=lambda: defaultdict(set))
    cues: list[Element] = field(default_factory=list)
    scopes: list[Element] = field(default_factory=list)
    sources: defaultdict[Element, list[str]] = field(default_factory=lambda: defaultdict(list))

    def find_words(self, elements: Iterable[Element]) -> set[int]:
        """Return the indices of the words inside any of the elements."""
        return set().union(*(self.inside[element] for element in elements))


def read(path: Path, *, name: str | None = None) -> Iterator[Document | Skipped]:
    """Yield the sentences of one file, with the cue and the scope of each negation.

    Negations are numbered from 1 in the order of their cues. Cues of a sentence with the same ID are one cue; in
    another sentence the same ID is another cue, because the corpus reuses IDs. The scope is all words inside the scopes
    that name the cue, without the words of the cue itself: in this corpus a cue is outside of its scope. A negation may
    have no scope. Cues and scopes of speculation are ignored. The id of a document ends in its number in the file; its
    group is the file.

    C1 control characters in words are replaced by their characters in Windows-1252 (U+0092 by an apostrophe).

    The cue of a scope is unknown if the scope names no cue, or one that its sentence does not have. Such a scope is
    skipped, so a negation of that sentence may have no scope or too small a scope. The same is true if a cue, in place
    of a scope, has a reference.

    Raises:
        CorpusError: the file is not well-formed XML in UTF-8, declares entities, has elements or
            text where the corpus has none, or has no sentence; a sentence, a cue or a ``<W>`` has no
            word, an attribute is missing, or a cue is neither a negation nor a speculation, or both.
    """
    prefix = name or path.name
    empty = True
    for sentence in _read_sentences(path):
        empty = False
        types = _read_types(path, sentence)
        for element in (*sentence.cues, *sentence.scopes):
            sources = sentence.sources[element]
            if element.name == "cue" and sources:
                yield Skipped(f"{path}:{element.line}, sentence {sentence.number}", _CUE_AS_SCOPE)
            elif element.name == "xcope" and not (sources and types.keys() >= set(sources)):
                yield Skipped(f"{path}:{element.line}, sentence {sentence.number}", _SCOPE_OF_NONE)
        spans = _build_spans(sentence, [cue_id for cue_id, type in types.items() if type == NEGATION])
        yield Document(f"{prefix}:{sentence.number}", tuple(sentence.words), spans=tuple(spans), group=prefix)
    if empty:
        raise CorpusError(f"{path} has no sentence; the SFU corpus needs <SENTENCE> in <P> in <DOCUMENT>: check it.")


def recognise(beginning: Sequence[str]) -> bool:
    """Return whether the tags in these first lines of a file are those of SFU: ``DOCUMENT`` and a sentence of words."""
    tags = find_tags(beginning)
    if next(tags, None) != "DOCUMENT":
        return False
    first = next((tag for tag in tags if tag not in _BEFORE_WORDS), None)
    return first == "SENTENCE" and next(tags, None) in _MARKED


def _build_spans(sentence: _Sentence, negations: Sequence[str]) -> Iterator[Span]:
    cues: defaultdict[str, list[Element]] = defaultdict(list)
    scopes: defaultdict[str, list[Element]] = defaultdict(list)
    for element in sentence.cues:
        cues[element.attributes["ID"]].append(element)
    for element in sentence.scopes:
        for source in set(sentence.sources[element]):
            scopes[source].append(element)
    for label, cue_id in enumerate(negations, start=1):
        cue, scope = sentence.find_words(cues[cue_id]), sentence.find_words(scopes[cue_id])
        yield from merge_into_spans(cue, str(label), "cue")
        yield from merge_into_spans(scope - cue, str(label), "scope")


def _read_types(path: Path, sentence: _Sentence) -> dict[str, str]:
    """Return the type of each cue of a sentence, ``negation`` or ``speculation``, by the ID of the cue."""
    types = read_types(_MARKUP, path, sentence.cues, "ID", str(sentence.number))
    for cue in sentence.cues:
        if not sentence.find_words([cue]):
            raise CorpusError(
                f"{path}:{cue.line} has a cue without words in sentence {sentence.number}; "
                f"a cue needs at least one <W>: remove it or correct it."
            )
    return types


def _read_sentences(path: Path) -> Iterator[_Sentence]:
    sentence = _Sentence(0)
    for event, element in _MARKUP.parse(path):
        match event, element.name:
            case "start", "SENTENCE":
                sentence = _Sentence(sentence.number + 1)
            case "start", "cue":
                sentence.cues.append(element)
            case "start", "xcope":
                sentence.scopes.append(element)
            case "start", "ref":
                sentence.sources[element.ancestors[-1]] += _MARKUP.get_attribute(path, element, "SRC").split()
            case "end", "W":
                for around in element.ancestors:
                    sentence.inside[around].add(len(sentence.words))
                sentence.words.append(_read_word(path, element))
            case "end", "SENTENCE":
                if not sentence.words:
                    raise CorpusError(
                        f"{path}:{element.line} has no word in sentence {sentence.number}; a sentence needs at least "
                        f"one <W>: remove it."
                    )
                yield sentence


def _read_word(path: Path, element: Element) -> str:
    word = "".join(element.pieces).translate(_CONTROLS).strip()
    if not word:
        raise CorpusError(f"{path}:{element.line} has <W> without a visible character; remove it, or write its word.")
    return word
