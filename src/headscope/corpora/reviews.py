"""Questions about the aspects of reviews, for several formats.

A question that names an aspect and a sentence of a review are a pair of segments, as in the QA-M form of Sun et al.
(2019). The label of the pair is the polarity of the sentence towards the aspect.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headscope.corpora.document import Document, Span
from headscope.corpora.markup import Element, Markup, add_sentence
from headscope.corpora.terms import locate_term, parse_offsets
from headscope.corpora.written_text import WrittenText, find_words, join_texts, join_words
from headscope.errors import CorpusError

CONFLICT = "conflict"
POLARITIES = ("positive", "negative", "neutral", CONFLICT)
ABSENT = "none"
"""The label of a pair whose review does not mention the aspect."""

_BEFORE, _BEHIND = "what do you think of the".split(), "of it ?".split()


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a review.

    Attributes:
        id: the beginning of the ids of its pairs.
        group: the group of its pairs.
        text: its text, with its words.
        terms: the aspect terms, with their polarities; words are counted from 0 at the beginning of the sentence.
    """

    id: str
    group: str
    text: WrittenText
    terms: Sequence[Span]

    def ask(
        self, aspect: str, label: str, *,
        name: str = "", same: Iterable[Span] = (), other: Iterable[Span] = (), marked: bool = True,
    ) -> Document:  # fmt: skip
        """Return a document of two segments: a question that names an aspect, and the sentence.

        The words that name the aspect in the question are a span of the kind ``asked``, with the aspect as label. All
        terms are spans of the kind ``aspect``.

        Args:
            aspect: the aspect as annotated.
            label: the label of the pair.
            name: the name of the aspect in the question; empty if it is as annotated.
            same: the terms of this aspect, with their polarities towards it: spans of the kind ``same_aspect``.
            other: the terms of other aspects: spans of the kind ``other_aspect``.
            marked: false for a category that is not an aspect; then the only spans are those of the kind ``aspect``.
        """
        named = find_words(name or aspect).words
        question = (*_BEFORE, *named, *_BEHIND)
        spans = [*self.terms]
        if marked:
            spans += [replace(term, kind="same_aspect") for term in same]
            spans += [replace(term, kind="other_aspect") for term in other]
        boundary = len(question)
        naming = [Span(len(_BEFORE), len(_BEFORE) + len(named), aspect, kind="asked")] if marked else []
        return Document(
            f"{self.id}:{aspect}",
            words=(*question, *self.text.words),
            spans=(*naming, *(replace(term, start=boundary + term.start, end=boundary + term.end) for term in spans)),
            label=label,
            group=self.group,
            boundary=boundary,
            written=join_texts((join_words(question), self.text)),
            has_question=True,
        )


def read_sentences(markup: Markup, path: Path) -> Iterator[tuple[str, list[Element]]]:
    """Yield the id of each sentence, and its elements in order; the first is the sentence itself.

    Raises:
        CorpusError: two sentences have the same id, a sentence has no id, or the file has no sentence; or as
            `Markup.parse`.
    """
    lines: dict[str, int] = {}
    elements: list[Element] = []
    for event, element in markup.parse(path):
        if event == "start" and element.name == "sentence":
            elements = [element]
        elif event == "start":
            elements.append(element)
        elif element.name == "sentence":
            sentence_id = markup.get_attribute(path, element, "id")
            add_sentence(path, lines, element, sentence_id)
            yield sentence_id, elements
    if not lines:
        raise CorpusError(f"{path} has no sentence; {markup.title} needs <sentence> in <sentences>: check the file.")


def parse_text(markup: Markup, path: Path, elements: Sequence[Element]) -> WrittenText:
    """Return the text of a sentence, with its words (`find_words`).

    Raises:
        CorpusError: the sentence has no text, several texts, or an empty text.
    """
    texts = [find_words("".join(element.pieces)) for element in elements if element.name == "text"]
    if len(texts) != 1 or not texts[0].edges:
        raise CorpusError(
            f"{path}:{elements[0].line} has a sentence with {len(texts) or 'no'} text{'s' * (len(texts) > 1)}"
            f"{' that is empty' * (len(texts) == 1)}; {markup.title} needs one <text> with words in it: correct it."
        )
    return texts[0]


def parse_term(markup: Markup, path: Path, element: Element, text: WrittenText, name: str = "term") -> Span:
    """Return the span of the words of an aspect term in its text, with the polarity of the term as label.

    Raises:
        CorpusError: an attribute is missing, the polarity is unknown, or the characters at the offsets differ from
            the attribute `name`.
    """
    term, polarity = markup.get_attribute(path, element, name), get_polarity(markup, path, element)
    where = f"{path}:{element.line}"
    offsets = [markup.get_attribute(path, element, key) for key in ("from", "to")]
    start, end = parse_offsets(where, markup.title, offsets)
    return Span(*locate_term(where, term, text, start, end, name=name), polarity, kind="aspect")


def get_polarity(markup: Markup, path: Path, element: Element) -> str:
    """Return the polarity of an element.

    Raises:
        CorpusError: the polarity is missing, or is not in `POLARITIES`.
    """
    polarity = markup.get_attribute(path, element, "polarity")
    if polarity not in POLARITIES:
        raise CorpusError(
            f"{path}:{element.line} has the polarity {polarity!r}; {markup.title} has {', '.join(POLARITIES)}: "
            f"correct it."
        )
    return polarity


def join_polarities(polarities: Iterable[str]) -> str:
    """Return the polarity of an aspect from those of its terms: the common one, or `CONFLICT` if they differ."""
    first, *others = dict.fromkeys(polarities)
    return CONFLICT if others else first
