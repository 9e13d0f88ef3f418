"""Equal texts under several names: one of them is the original, and the others are its copies.

Licences and boilerplate recur in a corpus, and so do short sentences. A copy says no more about a head than its
original does, so it counts under the names of the original (`Document.origin`): in its fold, and in its permutations.
The original is the text with the smallest group and id, whatever the order of the documents. Groups that share a text
stay apart, since short texts would unite most of a corpus.
"""

import hashlib
from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from headscope.corpora.document import Document, Origin, Skipped


def hash_text(document: Document) -> int:
    """Return 8 bytes that are equal for equal texts; different texts rarely share them."""
    return hash(_list_read(document))


def find_originals(documents: Iterable[Document | Skipped], hashes: "array[int]") -> dict[bytes, Origin]:
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


def mark_copies(documents: Iterable[Document], originals: Mapping[bytes, Origin]) -> Iterator[Document]:
    """Yield the documents of a corpus or of a part of it; a copy refers to its original in the whole corpus."""
    for document in documents:
        origin = originals.get(_digest_text(document)) if originals else None
        yield document if origin in (None, document.origin) else replace(document, copy_of=origin)


def name_clusters(origins: Sequence[Origin], texts: Sequence[Hashable]) -> tuple[str, ...]:
    """Return the clusters of texts in memory, whose names are given; a copy is in that of its original."""
    originals: dict[Hashable, Origin] = {}
    for origin, text in zip(origins, texts, strict=True):
        originals[text] = min(origin, originals.get(text, origin))
    return tuple(originals[text].cluster for text in texts)


def _list_read(document: Document) -> tuple[Hashable, ...]:
    """Return all of a document that a model reads, however its words are spaced."""
    return document.words, document.boundary, document.translation, document.messages


def _digest_text(document: Document) -> bytes:
    return hashlib.sha256(repr(_list_read(document)).encode()).digest()
