"""Rules by part of speech: always the nearest word of some parts of speech, on one side or on either.

Clark et al. 2019 compare heads only with fixed offsets. The rule that an object is the nearest noun after its verb
needs no model either, and is a much stronger rival. If links go both ways, as the links of adverbs do, the nearest word
on either side is an even stronger rival. A head that looks for a part of speech nearby finds just this word.

If there is no such word, a head would attend to some other word. So a rule takes either any other word, and is right as
often as a guess is, or the word next to its own.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float64

from headscope.corpora.document import Document, Link

_LOOKS = ("left", "right", "either, left first", "either, right first")

SIDES = (*_LOOKS, *(f"{side}, else the word {'before' if 'left' in side else 'after'}" for side in _LOOKS))
"""Where a rule looks for the nearest word, and what it takes if there is none: a guess, or the word next to its own.

If two words on either side are equally near, the named side comes first.
"""
UPOS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM",
    "VERB", "X",
)  # fmt: skip
"""The universal parts of speech (Universal Dependencies, version 2)."""

CLASSES = (
    *UPOS, "NOUN/PROPN", "NOUN/PRON/PROPN", "AUX/VERB", "ADJ/NOUN/VERB", "ADJ/NOUN/PROPN/VERB",
    "open class",
)  # fmt: skip
"""The classes of words for the rules: a part of speech, or several parts of speech that can replace one another.

A determiner belongs to a common or a proper noun, a subject to a verb or to another predicate. The last class is the
open classes of Universal Dependencies, to whose words most links lead.
"""

OPEN = "ADJ/ADV/INTJ/NOUN/PROPN/VERB"
"""The open classes (Universal Dependencies, version 2)."""

_MEMBERS = np.array([[upos in name.replace("open class", OPEN).split("/") for name in CLASSES] for upos in UPOS])
"""For each part of speech, whether it is in each class."""


def find_by_class(
    document: Document, links: Sequence[Link], *, is_causal: bool = False
) -> Float64[np.ndarray, "link direction side class"]:
    """Return the probability that each rule leads from one end of a link to its other end: 1, 0, or that of a guess.

    A rule takes the nearest word of a class on a side of the first end. The directions are from the source to the
    target, and from the target to the source. A word without a part of speech is in no class.

    If there is no word of the class, a rule that guesses gets the probability of being right: one over the number of
    other words, or, in a model whose words see only the words before them, one over the number of words before.
    """
    words, members = len(document.words), _list_members(document)
    before = np.concatenate([np.zeros((1, len(CLASSES)), dtype=np.int64), members.cumsum(0)])
    source, target = np.array([(link.source, link.target) for link in links], dtype=np.int64).reshape(-1, 2).T
    none_between = before[np.maximum(source, target)] == before[np.minimum(source, target) + 1]
    right = np.zeros((len(links), 2, len(_LOOKS), len(CLASSES)), dtype=bool)
    share = np.empty((len(links), 2, len(SIDES), len(CLASSES)))
    for direction, (word, other) in enumerate(((source, target), (target, source))):
        to_right = other > word
        nearest = members[other] & none_between
        right[np.arange(len(links)), direction, to_right.astype(int)] = nearest
        for side, is_first in ((2, ~to_right), (3, to_right)):
            # The words on the other side that are nearer, or equally near if that side comes first.
            far = np.abs(other - word) - is_first
            first = np.where(to_right, word - far, word + 1).clip(0)
            last = np.where(to_right, word, word + far + 1).clip(max=words)
            right[:, direction, side] = nearest & (before[np.maximum(first, last)] == before[first])
        on_left, on_right = before[word] > 0, before[-1] > before[word + 1]
        exists = np.stack([on_left, on_right, on_left | on_right, on_left | on_right], axis=1)
        guess = 1 / (word.clip(1) if is_causal else np.full_like(word, words - 1))
        beside = np.stack([np.where(word > 0, word - 1, 1), np.where(word < words - 1, word + 1, words - 2)], axis=1)
        share[:, direction, : len(_LOOKS)] = np.where(exists, right[:, direction], guess[:, None, None])
        is_beside = np.tile(beside == other[:, None], 2)
        share[:, direction, len(_LOOKS) :] = np.where(exists, right[:, direction], is_beside[:, :, None])
    return share


def find_nearest(document: Document, word: int, side: str, word_class: str) -> int:
    """Return the index of the word that a rule takes for `word`; -1 if the rule guesses."""
    look, _, beside = side.partition(", else the word ")
    others = np.flatnonzero(_list_members(document)[:, CLASSES.index(word_class)])
    others = others[(others < word) & (look != "right") | (others > word) & (look != "left")]
    if beside and not len(others):
        step = -1 if beside == "before" else 1
        return word + step if 0 <= word + step < len(document.words) else word - step
    is_second = (others > word) != (look == "either, right first")
    return int(others[np.lexsort((is_second, np.abs(others - word)))][0]) if len(others) else -1


def _list_members(document: Document) -> Bool[np.ndarray, "word class"]:
    """Return whether each word is in each class."""
    members = np.zeros((len(document.words), len(CLASSES)), dtype=bool)
    for span in document.spans:
        if span.kind == "upos" and span.label in UPOS:
            members[span.start] |= _MEMBERS[UPOS.index(span.label)]  # a unit is in the classes of all of its words
    return members
