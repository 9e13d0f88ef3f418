"""Rules by part of speech: always the nearest word of some parts of speech, on one side or on either.

Clark et al. 2019 compare heads with fixed offsets only. That an object is the nearest noun behind its verb needs no
model either, and is a much stronger rival. Where links go both ways, as those of adverbs do, the nearest word on
either side is a stronger one still, and what a head finds that looks for a part of speech nearby.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from headscope.corpora.document import Document, Link

SIDES = ("left", "right", "either, left first", "either, right first")
"""Where a rule looks for the nearest word; of two that are equally near on either side, one comes first."""
UPOS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM",
    "VERB", "X",
)  # fmt: skip
"""The universal parts of speech (Universal Dependencies, version 2)."""

CLASSES = (
    *UPOS, "NOUN/PROPN", "NOUN/PRON/PROPN", "AUX/VERB", "ADJ/NOUN/VERB", "ADJ/NOUN/PROPN/VERB",
    "open class",
)  # fmt: skip
"""The classes of words of which a rule takes the nearest: a part of speech, or several that take one another's place.

A determiner belongs to a common or a proper noun, a subject to a verb or to another predicate. The last are the open
classes of Universal Dependencies, whose words most links lead to.
"""

OPEN = "ADJ/ADV/INTJ/NOUN/PROPN/VERB"
"""The open classes (Universal Dependencies, version 2)."""

_MEMBERS = np.array([[upos in name.replace("open class", OPEN).split("/") for name in CLASSES] for upos in UPOS])
"""For each part of speech the classes that it is in."""


def find_by_class(document: Document, links: Sequence[Link]) -> Bool[np.ndarray, "link direction side class"]:
    """True where the nearest word of a class on one side of one end of a link, or on either, is its other end.

    The directions are from the source to the target, and from the target to the source. A word without a part of
    speech is in no class.
    """
    words, members = len(document.words), _list_members(document)
    before = np.concatenate([np.zeros((1, len(CLASSES)), dtype=np.int64), members.cumsum(0)])
    source, target = np.array([(link.source, link.target) for link in links], dtype=np.int64).reshape(-1, 2).T
    none_between = before[np.maximum(source, target)] == before[np.minimum(source, target) + 1]
    right = np.zeros((len(links), 2, len(SIDES), len(CLASSES)), dtype=bool)
    for direction, (word, other) in enumerate(((source, target), (target, source))):
        to_right = other > word
        nearest = members[other] & none_between
        right[np.arange(len(links)), direction, to_right.astype(int)] = nearest
        for side, is_first in ((2, ~to_right), (3, to_right)):
            # The words on the other side that are nearer, or as near where they come first.
            far = np.abs(other - word) - is_first
            first = np.where(to_right, word - far, word + 1).clip(0)
            last = np.where(to_right, word, word + far + 1).clip(max=words)
            right[:, direction, side] = nearest & (before[np.maximum(first, last)] == before[first])
    return right


def find_nearest(document: Document, word: int, side: str, word_class: str) -> int:
    """The nearest word of a class on one side of a word, or on either; -1 where there is none."""
    others = np.flatnonzero(_list_members(document)[:, CLASSES.index(word_class)])
    others = others[(others < word) & (side != "right") | (others > word) & (side != "left")]
    is_second = (others > word) != (side == "either, right first")
    return int(others[np.lexsort((is_second, np.abs(others - word)))][0]) if len(others) else -1


def _list_members(document: Document) -> Bool[np.ndarray, "word class"]:
    """The classes that each word is in."""
    members = np.zeros((len(document.words), len(CLASSES)), dtype=bool)
    for span in document.spans:
        if span.kind == "upos" and span.label in UPOS:
            members[span.start] |= _MEMBERS[UPOS.index(span.label)]  # a unit is in the classes of all of its words
    return members
