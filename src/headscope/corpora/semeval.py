"""Questions about the aspects of reviews: SemEval-2014 task 4, restaurants, in XML.

A sentence and one of the five aspect categories are a pair of segments, as in the QA-M form of Sun et al. (2019): a
question that names the category, then the review. The label of the pair is the polarity of the review towards the
category, or ``none`` if it does not mention it.

The aspect terms are marked in the review with their own polarities, the same in all five pairs of a sentence. The
category of a term is not annotated in this corpus, but is often clear: a term belongs to the category of its sentence
that one of its words names (*service staff*), or else to the only one that has the term's polarity. Terms whose
category stays unclear are skipped.

The fifth category, ``anecdotes/miscellaneous``, has everything outside of the other four (annotation guidelines of the
task). It is not an aspect, so no words of its questions are marked as ``asked``.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from headscope.corpora.document import Document, Skipped, Span
from headscope.corpora.markup import Element, Markup, find_tags
from headscope.corpora.reviews import ABSENT, Sentence, get_polarity, parse_term, parse_text, read_sentences
from headscope.errors import CorpusError

NO_ASPECT = "anecdotes/miscellaneous"
CATEGORIES = ("food", "service", "price", "ambience", NO_ASPECT)

MARKUP = Markup(
    "SemEval-2014",
    {
        "": ("sentences",), "sentences": ("sentence",), "sentence": ("text", "aspectTerms", "aspectCategories"),
        "aspectTerms": ("aspectTerm",), "aspectCategories": ("aspectCategory",),
    },
)  # fmt: skip
_WITHOUT_CATEGORIES = "sentences without aspect categories"
_UNKNOWN_CATEGORY = "aspect terms whose category is unclear (the pairs are used)"


def read(path: Path, *, name: str | None = None) -> Iterator[Document | Skipped]:
    """Yield five pairs for each sentence of one file: the question about a category, and the review.

    `find_words` splits the review into words. The span of an aspect term covers every word that overlaps it.
    The words that name the aspect in the question are a span of the kind ``asked``, with the category as label. Terms
    whose category is clear are also spans of the kind ``same_aspect`` or ``other_aspect``. A category that is listed
    twice with the same polarity counts once. The group of a pair is its sentence. A sentence that lists no category is
    skipped, since it may still mention one.

    Raises:
        CorpusError: the file is not well-formed XML in UTF-8, declares entities, has other elements
            than those of the task, or has no sentence; an attribute is missing or has a value outside
            the task, or the characters at the offsets of a term differ from the term.
    """
    prefix = name or path.name
    for sentence_id, elements in read_sentences(MARKUP, path):
        review = parse_text(MARKUP, path, elements)
        terms = [element for element in elements if element.name == "aspectTerm"]
        spans = [parse_term(MARKUP, path, element, review) for element in terms]
        polarities = _read_polarities(path, elements)
        if not polarities:
            yield Skipped(f"{path}:{elements[0].line}", _WITHOUT_CATEGORIES)
            continue
        words = review.words
        owners = [_find_category(span, words[span.start : span.end], polarities) for span in spans]
        for element, owner in zip(terms, owners, strict=True):
            if owner is None:
                yield Skipped(f"{path}:{element.line}", _UNKNOWN_CATEGORY)
        sentence = Sentence(f"{prefix}:{sentence_id}", f"{prefix}:{sentence_id}", review, spans)
        clear = [(span, owner) for span, owner in zip(spans, owners, strict=True) if owner]
        for category in CATEGORIES:
            yield sentence.ask(
                category,
                polarities.get(category, ABSENT),
                same=[span for span, owner in clear if owner == category],
                other=[span for span, owner in clear if owner != category],
                marked=category != NO_ASPECT,
            )


def recognise(beginning: Sequence[str]) -> bool:
    """Return whether the first tags in these lines of a file are ``sentences``, ``sentence`` and ``text``."""
    tags = find_tags(beginning)
    return [next(tags, None) for _ in range(3)] == ["sentences", "sentence", "text"]


def _find_category(term: Span, words: Sequence[str], polarities: Mapping[str, str]) -> str | None:
    """Return the category of an aspect term with these words; None if the category is unclear.

    The rule errs if a term of another aspect is in a sentence that lists one category (*they won't toast your
    bagel*, of the service): 14 of 153 terms, in 100 sentences of the training file read one by one.
    """
    named = [category for category in polarities if any(word.casefold().startswith(category) for word in words)]
    matching = [category for category, polarity in polarities.items() if polarity == term.label]
    (category, *others) = named or matching or [NO_ASPECT]
    return None if others or category == NO_ASPECT else category


def _read_polarities(path: Path, elements: Sequence[Element]) -> dict[str, str]:
    polarities: dict[str, str] = {}
    for element in elements:
        if element.name != "aspectCategory":
            continue
        category, polarity = MARKUP.get_attribute(path, element, "category"), get_polarity(MARKUP, path, element)
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
