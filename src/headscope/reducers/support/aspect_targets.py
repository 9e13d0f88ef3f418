"""The targets of the words that name an aspect in a question: words of the review, and separators."""

from collections.abc import Iterable, Mapping

from headscope.corpora.document import Document, Span
from headscope.corpora.reviews import ABSENT

TARGETS: Mapping[str, str] = {
    "same_aspect": "the terms of the aspect that is asked about (observation 1)",
    "related": "of these, words that do not begin with the name of the aspect",
    "sentiment": "evaluative words in the phrases of these terms (observation 2)",
    "phrase": "the whole phrases of these terms (observation 3)",
    "other_aspect": "the terms of other aspects, in pairs that have both (observation 4)",
    "same_beside_other": "the terms of the aspect that is asked about, in the same pairs",
    "sep_when_present": "separators, where the review speaks of the aspect",
    "sep_when_absent": "separators, where the review does not speak of the aspect (observation 5)",
}
"""The targets, each with a description and the pairs in which it is measured.

If a term repeats the name of its aspect, a head that looks for equal words finds it; ``related`` leaves such words out.
In the pairs of ``same_beside_other`` most terms do (297 of 360 in the training file of SemEval-2014), since the terms
of one of two aspects mostly repeat its name (`headscope.corpora.semeval`).
"""

SEPARATORS = 2
"""The number of targets at the end of `TARGETS` that are separators and not words."""

EVALUATIVE: tuple[str, ...] = tuple(
    """
    amazing attentive authentic awesome beautiful best better charming cheap clean comfortable courteous cozy decent
    delicious delightful enjoy enjoyable enjoyed excellent exceptional exquisite fabulous fair fantastic fast favorite
    favourite flavorful fresh friendly fun generous good gorgeous great happy helpful impressed impressive incredible
    inexpensive interesting love loved lovely nice outstanding perfect phenomenal pleasant pleased polite professional
    prompt quick quickly reasonable recommend recommended romantic satisfied solid superb tasty terrific unique warm
    wonderful worth yummy
    annoying arrogant average avoid awful bad bland boring burnt cold cramped crowded dirty disappointed disappointing
    disgusting dislike disliked dry dull expensive frozen greasy gross hate hated horrible inattentive inedible lacking
    loud lousy mediocre nasty noisy ok okay overcooked overpriced overrated pathetic poor pricey ridiculous rude salty
    slow slowly small soggy stale tasteless terrible tiny tough unacceptable uncomfortable undercooked unfriendly watery
    worse worst
    """.split()
)
"""Words that evaluate a restaurant: our own list, made without looking at any attention.

In the training file of SemEval-2014, the phrases contain one of them in 57 % of the positive or negative pairs, and in
24 % of the neutral pairs.
"""

BORDERS = frozenset(
    """
    . , ; : ! ? ( ) - – — …
    and or nor but yet so although though while whereas because since if when unless
    """.split()
)
"""The words at which a phrase ends: punctuation marks and conjunctions."""


def targets_of(document: Document, separators: Iterable[int], sentiment: frozenset[str]) -> dict[str, set[int]]:
    """Return the indices of the words of each of `TARGETS` in a document.

    The indices of the separators, which count as words here, are given by `separators`. Units are read as the words
    that they unite.
    """
    units, document = document.unit_numbers, document.original
    named = covered(document, "asked")
    same = covered(document, "same_aspect") - named
    other = covered(document, "other_aspect") - named - same
    terms = covered(document, "aspect", "same_aspect", "other_aspect")
    names = tuple(document.words[word].casefold() for word in named)
    spans = [span for span in document.spans if span.kind == "same_aspect"]
    phrase = {word for span in spans for word in _phrase(document, span, named | other)} - named
    absent = document.label == ABSENT
    words = {
        "same_aspect": same,
        "related": {word for word in same if not document.words[word].casefold().startswith(names)},
        "sentiment": {word for word in phrase - terms if document.words[word].casefold() in sentiment},
        "phrase": phrase,
        "other_aspect": other if same else set(),
        "same_beside_other": same if other else set(),
    }
    return {target: {units[word] for word in chosen} for target, chosen in words.items()} | {
        "sep_when_present": set() if absent or document.label is None else set(separators),
        "sep_when_absent": set(separators) if absent else set(),
    }


def covered(document: Document, *kinds: str) -> set[int]:
    """Return the indices of the words that the spans of these kinds cover."""
    return {word for span in document.spans if span.kind in kinds for word in range(span.start, span.end)}


def _phrase(document: Document, term: Span, ends: set[int]) -> range:
    """Return the words around a term, up to a word of `BORDERS`, a word in `ends`, or the end of the segment."""
    boundary = document.boundary or 0
    first, last = (boundary, len(document.words)) if term.start >= boundary else (0, boundary)
    over = [word in ends or document.words[word].casefold() in BORDERS for word in range(len(document.words))]
    start, end = term.start, term.end
    while start > first and not over[start - 1]:
        start -= 1
    while end < last and not over[end]:
        end += 1
    return range(start, end)
