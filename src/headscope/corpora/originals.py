"""Texts that occur several times in a corpus, and the names under which they count.

Of equal documents one is the original, and the others are its copies.

Licences and boilerplate recur in a corpus, and so do short sentences. A copy is no further evidence about a head, so it
counts under the names of the original (`Document.origin`): in its fold, and in its permutations. The original is the
text with the smallest group and id, whatever the order of the documents. Groups that share a text stay separate, since
short texts would unite most of a corpus; groups that are nearly the same count as one (`headscope.corpora.near_texts`).
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
    """The names under which documents count in a corpus with repeated texts.

    Attributes:
        copies: the names of the original of each repeated text, by the SHA-256 of the text.
        near: the names of texts that are nearly the same as another, each with the name of the first of them.
    """

    copies: Mapping[bytes, Origin] = field(default_factory=dict)
    near: Mapping[str, str] = field(default_factory=dict)

    def find(self, document: Document) -> Origin:
        """Return the names under which a document counts."""
        origin = self.copies.get(_digest_text(document), document.origin) if self.copies else document.origin
        if (first := self.near.get(origin.cluster)) is None:
            return origin
        # A document that is its own text counts under the other's name in any assignment to folds.
        return Origin(first, first if origin.group in ("", origin.id) else origin.id)


def hash_text(document: Document) -> int:
    """Return a number of 8 bytes that is equal for equal texts; different texts rarely share it."""
    return hash(_list_read(document))


def find_copies(documents: Iterable[Document | Skipped], hashes: "array[int]") -> dict[bytes, Origin]:
    """Return the names of the original of each repeated text, by the SHA-256 of the text.

    `hashes` are the hashes of all documents of a corpus (`hash_text`). The documents are read again only if a hash
    occurs twice.
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
    """Return the clusters of texts in memory, from their names; a copy is in the cluster of its original.

    A text that is nearly the same as another is in the other's cluster (`headscope.corpora.near_texts.find_near`).
    """
    originals: dict[Hashable, Origin] = {}
    for origin, text in zip(origins, texts, strict=True):
        originals[text] = min(origin, originals.get(text, origin))
    clusters = [originals[text].cluster for text in texts]
    return tuple(near.get(cluster, cluster) for cluster in clusters)


def _list_read(document: Document) -> tuple[Hashable, ...]:
    """Return everything that a model reads of a document, whatever the spaces between its words."""
    return document.words, document.boundary, document.translation, document.messages


def _digest_text(document: Document) -> bytes:
    return hashlib.sha256(repr(_list_read(document)).encode()).digest()
