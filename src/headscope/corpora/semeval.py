"""Reviews asked about their aspects: SemEval-2014 task 4, restaurants, in XML.

A sentence and one of the five aspect categories are a pair of segments, as in the QA-M form of Sun et
al. (2019): a question that names the category, then the review. The label of the pair is the polarity
that the review has towards the category, or ``none`` where it does not speak of it.

The aspect terms are marked in the review with their own polarities, the same in all five pairs of a
sentence. Which of the categories a term belongs to is not annotated in this corpus, but it is often
clear: a term belongs to the category of its sentence that one of its words names (*service staff*), or
else to the only one that has the term's polarity. Terms whose category stays unclear are counted as skipped.

The fifth category, ``anecdotes/miscellaneous``, is what belongs to none of the others (annotation
guidelines of the task). It is no aspect, so nothing is marked as asked in its questions.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headscope.corpora.document import Document, Skipped, Span
from headscope.corpora.markup import Element, Markup, find_tags
from headscope.corpora.written_text import WrittenText, join_texts, join_words
from headscope.errors import CorpusError, quote

NO_ASPECT = "anecdotes/miscellaneous"
CATEGORIES = ("food", "service", "price", "ambience", NO_ASPECT)
POLARITIES = ("positive", "negative", "neutral", "conflict")
ABSENT = "none"
"""The label of a pair whose review does not speak of the category."""

_MARKUP = Markup(
    "SemEval-2014",
    {
        "": ("sentences",), "sentences": ("sentence",), "sentence": ("text", "aspectTerms", "aspectCategories"),
        "aspectTerms": ("aspectTerm",), "aspectCategories": ("aspectCategory",),
    },
)  # fmt: skip
_WITHOUT_CATEGORIES = "sentences without aspect categories"
_UNKNOWN_CATEGORY = "aspect terms whose category is unclear (the pairs are used)"

# The possessive is a word of its own, as in treebanks: terms end before it.
_WORD = re.compile(r"['’][sS]\b|\w+(?:-\w+|['’](?![sS]\b)\w+)*|[^\w\s]")


@dataclass(frozen=True, slots=True)
class _Review:
    """The text of a sentence with the borders of its words, in characters: where they start, and where they end."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def cut(self, first: int = 0, end: int | None = None) -> list[str]:
        """The words from `first` to before `end`."""
        borders = zip(self.starts[first:end], self.ends[first:end], strict=True)
        return [self.text[start:stop] for start, stop in borders]


def read(path: Path, *, name: str | None = None) -> Iterator[Document | Skipped]:
    """Five pairs for each sentence of one file: the question after a category, and the review.

    The words of the review are runs of letters and digits, with the hyphens and apostrophes inside
    them, and single marks of punctuation; a possessive *'s* is a word of its own. The span of an aspect
    term covers every word that the term has a part in. The words that name the aspect in the question
    are a span of the kind ``asked``, with the category as label; then the terms whose category is clear
    are spans of the kind ``same_aspect`` or ``other_aspect`` as well. A category that is listed twice
    with the same polarity counts once. The group of a pair is its sentence. A sentence that lists no
    category is skipped: that it speaks of none of them is not known.

    Raises:
        CorpusError: the file is not well-formed XML in UTF-8, declares a document type, has other elements
            than those of the task, or has no sentence; an attribute is missing or has a value outside
            the task, or the offsets of a term do not cut it out of the text.
    """
    prefix = name or path.name
    lines: dict[str, int] = {}
    for elements in _read_sentences(path):
        sentence = elements[0]
        sentence_id = _MARKUP.get_attribute(path, sentence, "id")
        if (before := lines.setdefault(sentence_id, sentence.line)) != sentence.line:
            raise CorpusError(
                f"{path}:{sentence.line} has a sentence with the id {sentence_id!r}, as line {before} has; "
                f"a sentence needs an id of its own: rename one of them."
            )
        review = _parse_review(path, elements)
        term_elements = [element for element in elements if element.name == "aspectTerm"]
        spans = [_parse_term(path, element, review) for element in term_elements]
        polarities = _read_polarities(path, elements)
        if not polarities:
            yield Skipped(f"{path}:{sentence.line}", _WITHOUT_CATEGORIES)
            continue
        terms = [(term, _find_category(term, review, polarities)) for term in spans]
        for element, (_, category) in zip(term_elements, terms, strict=True):
            if category is None:
                yield Skipped(f"{path}:{element.line}", _UNKNOWN_CATEGORY)
        for category in CATEGORIES:
            yield _build_pair(f"{prefix}:{sentence_id}", category, polarities.get(category, ABSENT), review, terms)
    if not lines:
        raise CorpusError(f"{path} has no sentence; SemEval-2014 needs <sentence> in <sentences>: check the file.")


def recognise(beginning: Sequence[str]) -> bool:
    """True if a file that begins with these lines has sentences with a text, in XML."""
    tags = find_tags(beginning)
    return [next(tags, None) for _ in range(3)] == ["sentences", "sentence", "text"]


def _build_pair(
    sentence: str, category: str, polarity: str, review: _Review, terms: Sequence[tuple[Span, str | None]]
) -> Document:
    before, named, after = "what do you think of the".split(), _WORD.findall(category), "of it ?".split()
    question = (*before, *named, *after)
    offset = len(question)
    text = WrittenText(review.text, tuple(zip(review.starts, review.ends, strict=True)))
    shifted = [(replace(term, start=offset + term.start, end=offset + term.end), owner) for term, owner in terms]
    spans = [term for term, _ in shifted]
    if category != NO_ASPECT:
        spans.insert(0, Span(len(before), len(before) + len(named), category, kind="asked"))
        for kind, same in (("same_aspect", True), ("other_aspect", False)):
            spans += [replace(term, kind=kind) for term, owner in shifted if owner and (owner == category) is same]
    return Document(
        f"{sentence}:{category}",
        words=(*question, *review.cut()),
        spans=tuple(spans),
        label=polarity,
        group=sentence,
        boundary=offset,
        written=join_texts((join_words(question), text)),
    )


def _find_category(term: Span, review: _Review, polarities: Mapping[str, str]) -> str | None:
    """The category that a term belongs to; None if that is unclear.

    It errs where a word of another aspect stands in a sentence that lists one (*they won't toast your
    bagel*, of the service): 14 of 153 terms, in 100 sentences of the training file read one by one.
    """
    words = [word.casefold() for word in review.cut(term.start, term.end)]
    named = [category for category in polarities if any(word.startswith(category) for word in words)]
    matching = [category for category, polarity in polarities.items() if polarity == term.label]
    (category, *others) = named or matching or [NO_ASPECT]
    return None if others or category == NO_ASPECT else category


def _parse_review(path: Path, elements: Sequence[Element]) -> _Review:
    texts = ["".join(element.pieces) for element in elements if element.name == "text"]
    words = list(_WORD.finditer(texts[0])) if texts else []
    if len(texts) != 1 or not words:
        raise CorpusError(
            f"{path}:{elements[0].line} has a sentence with {len(texts) or 'no'} text{'s' * (len(texts) > 1)}"
            f"{' that is empty' * (len(texts) == 1)}; SemEval-2014 needs one <text> with words in it: correct it."
        )
    return _Review(texts[0], tuple(word.start() for word in words), tuple(word.end() for word in words))


def _parse_term(path: Path, element: Element, review: _Review) -> Span:
    """The words of the review that an aspect term covers; they count from the first of the review."""
    term, polarity = _MARKUP.get_attribute(path, element, "term"), _read_polarity(path, element)
    offsets = [_MARKUP.get_attribute(path, element, key) for key in ("from", "to")]
    if not all(re.fullmatch("[0-9]{1,9}", offset) for offset in offsets):
        raise CorpusError(
            f"{path}:{element.line} has the offsets {quote(offsets[0])} and {quote(offsets[1])}; SemEval-2014 counts "
            "the characters of the text from 0: write two whole numbers."
        )
    start, end = map(int, offsets)
    if review.text[start:end] != term:
        raise CorpusError(
            f"{path}:{element.line} has the term {term!r}, but the characters {start} to {end} of its text are "
            f"{review.text[start:end]!r}; the offsets of a term cut it out of the text: correct them."
        )
    return Span(bisect_right(review.ends, start), bisect_left(review.starts, end), polarity, kind="aspect")


def _read_polarities(path: Path, elements: Sequence[Element]) -> dict[str, str]:
    polarities: dict[str, str] = {}
    for element in elements:
        if element.name != "aspectCategory":
            continue
        category, polarity = _MARKUP.get_attribute(path, element, "category"), _read_polarity(path, element)
        if category not in CATEGORIES:
            raise CorpusError(
                f"{path}:{element.line} has the category {category!r}; the restaurants of SemEval-2014 have "
                f"{', '.join(CATEGORIES)}: correct it."
            )
        if polarities.setdefault(category, polarity) != polarity:
            raise CorpusError(
                f"{path}:{element.line} has the category {category!r} as {polarity}, but its sentence has it as "
                f"{polarities[category]} before; a category needs one polarity: leave one out, or write 'conflict'."
            )
    return polarities


def _read_polarity(path: Path, element: Element) -> str:
    polarity = _MARKUP.get_attribute(path, element, "polarity")
    if polarity not in POLARITIES:
        raise CorpusError(
            f"{path}:{element.line} has the polarity {polarity!r}; SemEval-2014 has {', '.join(POLARITIES)}: "
            f"correct it."
        )
    return polarity


def _read_sentences(path: Path) -> Iterator[list[Element]]:
    """The elements of each sentence in order, itself first."""
    elements: list[Element] = []
    for event, element in _MARKUP.parse(path):
        if event == "start" and element.name == "sentence":
            elements = [element]
        elif event == "start":
            elements.append(element)
        elif element.name == "sentence":
            yield elements
