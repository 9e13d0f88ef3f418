"""Texts that are nearly the same, such as two editions of one text, or a text and half of it.

Two texts are nearly the same if at least half of the phrases of five words of the shorter one are also in the other
(containment; Broder 1997, "On the resemblance and containment of documents"). A text with fewer than ten different
phrases is not compared: short sentences share half of their phrases by chance.
"""

import zlib
from array import array
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Int, UInt64

from headscope.corpora.document import Document, Skipped, hash_name

WORDS = 5
"""The number of words in a phrase."""

SHARE = 0.5
"""The share of the shorter text's phrases that the longer text must have."""

FEWEST = 10
"""The number of different phrases that a text must have to be compared."""

SAMPLED = 1 << 22
"""The greatest number of phrases of a corpus that are kept. Of more phrases, only a sample by their hashes is kept."""

_CHUNK = 1 << 18
"""The number of words that are collected before their phrases are hashed."""


class Phrases:
    """The hashes of the phrases in the texts of a corpus, for finding texts that are nearly the same.

    Of many phrases, only a sample is kept, which does not depend on the order of the texts.
    """

    def __init__(self) -> None:
        self._words, self._lengths, self._names = array("I"), array("Q"), array("Q")
        self._kept = np.empty((2, 0), dtype=np.uint64)  # phrases, and the names of their texts
        self._halvings = 0

    def add(self, document: Document) -> None:
        """Add the phrases of a document, in lower case.

        Questions that are the same for all texts are left out, since they would make short texts nearly the same.
        """
        words = document.words[document.boundary :] if document.has_question else document.words
        self._words.extend([zlib.crc32(word.casefold().encode()) for word in words])
        self._lengths.append(len(words))
        self._names.append(hash_name(document.origin.cluster))
        if len(self._words) >= _CHUNK:
            self._reduce()

    def group_texts(self) -> list[set[int]]:
        """Return sets of texts that are nearly the same; a text is given by the hash of its name.

        Sets with a common text are joined: a text and its two halves are one set.
        """
        self._reduce()
        names, text = np.unique(self._kept[1], return_inverse=True)
        size = np.bincount(text, minlength=len(names))
        left, right, shared = _count_shared(self._kept[0], text)
        fewest = np.minimum(size[left], size[right])
        near = (fewest >= FEWEST) & (shared >= SHARE * fewest)
        if not near.any():
            return []
        # Few corpora have such texts, and this import takes longer than reading some corpora.
        import networkx as nx

        graph = nx.Graph(zip(names[left[near]].tolist(), names[right[near]].tolist(), strict=True))
        return [*nx.connected_components(graph)]

    def _reduce(self) -> None:
        """Hash the phrases of the words in memory, and keep each phrase of a text once."""
        words = np.array(self._words, dtype=np.uint64)
        document = np.repeat(np.arange(len(self._lengths)), np.array(self._lengths, dtype=np.int64))
        phrases = len(words) - WORDS + 1
        if phrases > 0:
            hashes = np.zeros(phrases, dtype=np.uint64)
            for word in range(WORDS):
                hashes = _mix(hashes + words[word : word + phrases])
            whole = document[:phrases] == document[WORDS - 1 :]
            names = np.array(self._names, dtype=np.uint64)[document[:phrases][whole]]
            self._keep(np.stack([hashes[whole], names]))
        del self._words[:], self._lengths[:], self._names[:]

    def _keep(self, pairs: UInt64[np.ndarray, "2 phrase"]) -> None:
        pairs = np.concatenate([self._kept, self._sample(pairs)], axis=1)
        pairs = pairs[:, np.lexsort(pairs[::-1])]  # by phrase, and for each phrase by text
        self._kept = pairs[:, np.append(True, (pairs[:, 1:] != pairs[:, :-1]).any(0))[: pairs.shape[1]]]
        while self._kept.shape[1] > SAMPLED:
            self._halvings += 1
            self._kept = self._sample(self._kept)

    def _sample(self, pairs: UInt64[np.ndarray, "2 phrase"]) -> UInt64[np.ndarray, "2 phrase"]:
        """Return the phrases whose hash ends in at least `_halvings` zero bits."""
        return pairs[:, pairs[0] & np.uint64((1 << self._halvings) - 1) == 0]


def find_near(documents: Sequence[Document]) -> dict[str, str]:
    """Return the representative of each text in memory that nearly equals another one, by name.

    The representative is the smallest name in a set of nearly equal texts. It is missing among the keys, and so are
    texts that no other text nearly equals.
    """
    phrases = Phrases()
    for document in documents:
        phrases.add(document)
    return name_near(documents, phrases.group_texts())


def name_near(documents: Iterable[Document | Skipped], near: Iterable[set[int]]) -> dict[str, str]:
    """Return the representative of each text that nearly equals another one, by name.

    The representative is the smallest name in a set of nearly equal texts. It is missing among the keys, and so are
    texts that no other text nearly equals.

    Args:
        documents: all documents of a corpus; they are read only if `near` has a set.
        near: the sets of nearly equal texts, from `Phrases.group_texts`.
    """
    members = {name: number for number, names in enumerate(near) for name in names}
    clusters: dict[int, set[str]] = {}
    for document in documents if members else ():
        if isinstance(document, Document) and (name := hash_name(cluster := document.origin.cluster)) in members:
            clusters.setdefault(members[name], set()).add(cluster)
    firsts = {min(names): names for names in clusters.values()}
    return {name: first for first, names in firsts.items() for name in names if name != first}


def _mix(hashes: UInt64[np.ndarray, " phrase"]) -> UInt64[np.ndarray, " phrase"]:
    """Return hashes in which each bit depends on all bits of the input (SplitMix64; Steele et al. 2014)."""
    hashes = hashes + np.uint64(0x9E3779B97F4A7C15)
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = hashes ^ (hashes >> np.uint64(31))
    return mixed


def _count_shared(
    phrases: UInt64[np.ndarray, " phrase"], text: Int[np.ndarray, " phrase"]
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """Return pairs of texts as three arrays: the first text, the second, and the number of phrases they share.

    `phrases` are sorted, and the texts of each phrase are sorted.

    Each text of a phrase is compared only with the first and the next text of the phrase, so a phrase of many texts is
    not slower than others. Among many editions of one text, each still shares most phrases with its neighbour.
    """
    is_first = np.append(True, phrases[1:] != phrases[:-1])[: len(phrases)]
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(phrases)), 0))
    later = np.flatnonzero(~is_first)
    third = later[first[later] < later - 1]
    left, right = text[np.concatenate([later - 1, first[third]])], text[np.concatenate([later, third])]
    texts = int(text.max(initial=0)) + 1
    pairs, shared = np.unique(left * texts + right, return_counts=True)
    return pairs // texts, pairs % texts, shared
