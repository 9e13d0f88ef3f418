"""Texts that a corpus has several times, and under which names they count.

Of equal documents one is the original, and the others are its copies.

Licences and boilerplate recur in a corpus, and so do short sentences. A copy says no more about a head than its
original does, so it counts under the names of the original (`Document.origin`): in its fold, and in its permutations.
The original is the text with the smallest group and id, whatever the order of the documents. Groups that share a text
stay apart, since short texts would unite most of a corpus; groups that are nearly the same are one
(`headscope.corpora.near_texts`).
"""

import hashlib
from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from headscope.corpora.document import Document, Origin, Skipped


@dataclass(frozen=True)
class Originals:
    """Under which names the documents of a corpus count that has texts several times.

    Attributes:
        copies: the names of the original of each document that is there twice, by the SHA-256 of what is read of it.
        near: the names of texts that are nearly the same as another, each with the name of the first of them.
    """

    copies: Mapping[bytes, Origin] = field(default_factory=dict)
    near: Mapping[str, str] = field(default_factory=dict)

    def find(self, document: Document) -> Origin:
        """Return the names under which a document counts."""
        origin = self.copies.get(_digest_text(document), document.origin) if self.copies else document.origin
        if (first := self.near.get(origin.cluster)) is None:
            return origin
        # A document that is a text of its own counts under the other's name in any assignment to folds.
        return Origin(first, first if origin.group in ("", origin.id) else origin.id)


def hash_text(document: Document) -> int:
    """Return 8 bytes that are equal for equal texts; different texts rarely share them."""
    return hash(_list_read(document))


def find_copies(documents: Iterable[Document | Skipped], hashes: "array[int]") -> dict[bytes, Origin]:
    """Return the names of the original of each text whose hash is there twice, by the SHA-256 of the text.

    The hashes are those of all documents of a corpus, by `hash_text`. The documents are read again only if there is
    such a hash.
    """
    values, counts = np.unique(hashes, return_counts=True)
    doubtful, originals = {*values[counts > 1].tolist()}, dict[bytes, Origin]()
    for document in documents if doubtful else ():
        if isinstance(document, Document) and hash_text(document) in doubtful:
            text = _digest_text(document)
            originals[text] = min(document.origin, originals.get(text, document.origin))
    return originals


def mark_repeats(documents: Iterable[Document], originals: Originals) -> Iterator[Document]:
    """Yield the documents of a corpus or of a part of it, each with the names under which it counts in the corpus."""
    for document in documents:
        origin = originals.find(document)
        yield document if origin == document.origin else replace(document, repeats=origin)


def name_clusters(
    origins: Sequence[Origin], texts: Sequence[Hashable], near: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, ...]:
    """Return the clusters of texts in memory, whose names are given; a copy is in that of its original.

    What is `near` the same as another text is in that one's (`headscope.corpora.near_texts.find_near`).
    """
    originals: dict[Hashable, Origin] = {}
    for origin, text in zip(origins, texts, strict=True):
        originals[text] = min(origin, originals.get(text, origin))
    clusters = [originals[text].cluster for text in texts]
    return tuple(near.get(cluster, cluster) for cluster in clusters)


def _list_read(document: Document) -> tuple[Hashable, ...]:
    """Return all of a document that a model reads, however its words are spaced."""
    return document.words, document.boundary, document.translation, document.messages


def _digest_text(document: Document) -> bytes:
    return hashlib.sha256(repr(_list_read(document)).encode()).digest()
