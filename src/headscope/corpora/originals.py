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
    """The groups and ids under which documents count in a corpus with repeated texts.

    Attributes:
        copies: the group and the id of the original of each repeated text, by the SHA-256 of the text.
        near: for the name of a text that nearly equals another (`Origin.cluster`), the smallest name of these texts.
    """

    copies: Mapping[bytes, Origin] = field(default_factory=dict)
    near: Mapping[str, str] = field(default_factory=dict)

    def find(self, document: Document) -> Origin:
        """Return the group and the id under which a document counts: its own, or those of its original."""
        origin = self.copies.get(_digest_text(document), document.origin) if self.copies else document.origin
        if (first := self.near.get(origin.cluster)) is None:
            return origin
        # A document that is its own text counts under the other's name in any assignment to folds.
        return Origin(first, first if origin.group in ("", origin.id) else origin.id)


def hash_text(document: Document) -> int:
    """Return a number of 8 bytes that is equal for equal texts and rarely equal for different texts."""
    return hash(_list_read(document))


def find_copies(documents: Iterable[Document | Skipped], hashes: "array[int]") -> dict[bytes, Origin]:
    """Return the group and the id of the original of each repeated text, by the SHA-256 of the text.

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
    """Yield the documents of a corpus, or of a part of it; a copy gets the group and the id under which it counts."""
    for document in documents:
        origin = originals.find(document)
        yield document if origin == document.origin else replace(document, repeats=origin)


def name_clusters(
    origins: Sequence[Origin], texts: Sequence[Hashable], near: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, ...]:
    """Return the name of the cluster of each text in memory; a copy is in the cluster of its original.

    A text that is nearly the same as another is in the other's cluster (`headscope.corpora.near_texts.find_near`).
    """
    originals: dict[Hashable, Origin] = {}
    for origin, text in zip(origins, texts, strict=True):
        originals[text] = min(origin, originals.get(text, origin))
    clusters = [originals[text].cluster for text in texts]
    return tuple(near.get(cluster, cluster) for cluster in clusters)


def _list_read(document: Document) -> tuple[Hashable, ...]:
    """Return the parts of a document that a model reads, without the spaces between words."""
    return document.words, document.boundary, document.translation, document.messages


def _digest_text(document: Document) -> bytes:
    return hashlib.sha256(repr(_list_read(document)).encode()).digest()
