"""What a corpus holds, in numbers; its documents are checked as they are counted."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from headscope.corpora.corpus import Corpus
from headscope.corpora.document import SURE, Document, Origin, Skipped
from headscope.corpora.originals import find_originals, hash_text
from headscope.errors import CorpusError, quote
from headscope.files import MAX_NAME_BYTES, find_name_fault, has_surrogate


@dataclass(frozen=True)
class CorpusSummary:
    """The content of a corpus in numbers.

    Attributes:
        documents: how many there are.
        words: how many words they have together.
        texts: how many texts they were cut from, copies aside; 0 where no document says which.
        pairs: how many of them are pairs of segments.
        links: for each kind, how many links of each label, the most frequent first.
        spans: for each kind, how many spans.
        skipped: what was left out of the files, by reason.
        rivals: how many links have rivals.
        aligned: how many words are surely aligned to a word of a translation, a link each.
        written: how many documents have a text as written.
        originals: of the texts that are there several times, by their hashes (`headscope.corpora.originals`).
    """

    documents: int
    words: int
    texts: int
    pairs: int
    links: dict[str, dict[str, int]]
    spans: dict[str, int]
    skipped: dict[str, int]
    rivals: int = 0
    aligned: int = 0
    written: int = 0
    originals: Mapping[bytes, Origin] = field(default_factory=dict, repr=False, compare=False)


def summarize(documents: Iterable[Document]) -> CorpusSummary:
    """Read all documents once and count what they hold, before any model runs.

    Raises:
        CorpusError: there are no documents, two have the same id, one has no words or an empty one, a text cannot be
            written in UTF-8, a label or kind cannot name a row of a table or a file (a control character, or more
            than 200 bytes), or reading them fails.
    """
    documents = list(documents) if isinstance(documents, Iterator) else documents
    words = pairs = rivals = aligned = written = 0
    # Eight bytes each: the names themselves would fill the memory with those of a large corpus.
    ids, texts, hashes = array("q"), array("q"), array("q")
    named = False
    # By kind and label; by kind.
    links: Counter[tuple[str, str]] = Counter()
    spans: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for document in documents.read_parts() if isinstance(documents, Corpus) else documents:
        if isinstance(document, Skipped):
            skipped[document.reason] += 1
            continue
        if not all(map(str.strip, document.words)) or not document.words:
            raise CorpusError(
                f"document {document.id!r} has {'an empty word' if document.words else 'no words'}; "
                f"a document needs words, each with at least one visible character: leave it out or correct it."
            )
        if not all(map(str.strip, document.translation)):
            raise CorpusError(
                f"document {document.id!r} has an empty word in its translation; a word has at least one visible "
                "character: correct it."
            )
        _check_text(document)
        known = len(links), len(spans)
        for link in document.links:
            links[link.kind, link.label] += 1
            rivals += bool(link.rivals)
        for span in document.spans:
            spans[span.kind] += 1
        if known != (len(links), len(spans)):
            _check_names(document)
        ids.append(hash(document.id))
        texts.append(hash(document.origin.cluster))
        hashes.append(hash_text(document))
        named |= document.group not in ("", document.id)
        words += len(document.words)
        pairs += document.boundary is not None
        aligned += sum(link.label == SURE for link in document.alignment)
        written += document.written is not None
    if not ids:
        raise CorpusError("the corpus has no documents; at least one is needed: check the path and the format.")
    _refuse_repeated(documents, ids)
    frequencies: dict[str, dict[str, int]] = {kind: {} for kind, _ in links}
    for (kind, label), count in links.most_common():
        frequencies[kind][label] = count
    originals = find_originals(documents, hashes)
    return CorpusSummary(
        len(ids), words, _count_texts(texts, hashes, originals) if named else 0, pairs, frequencies, dict(spans),
        dict(skipped), rivals, aligned, written, originals,
    )  # fmt: skip


def _count_texts(texts: "array[int]", hashes: "array[int]", originals: Mapping[bytes, Origin]) -> int:
    """Count the texts, by their hashes, that documents were cut from which are no copies."""
    _, place, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    alone = np.array(texts)[counts[place] == 1].tolist()
    return len({*alone, *(hash(origin.cluster) for origin in originals.values())})


def _refuse_repeated(documents: Iterable[Document | Skipped], hashes: "array[int]") -> None:
    """Refuse two documents with the same id; only where two hashes are the same the documents are read again."""
    values, counts = np.unique(hashes, return_counts=True)
    doubtful, ids = {*values[counts > 1].tolist()}, set[str]()
    for document in documents if doubtful else ():
        if isinstance(document, Skipped):
            continue
        if document.id in ids:
            raise CorpusError(f"two documents have the id {document.id!r}; each needs its own: rename one of them.")
        if hash(document.id) in doubtful:
            ids.add(document.id)


def _check_text(document: Document) -> None:
    """Refuse text that is not Unicode, which neither a tokenizer nor a hash takes."""
    content = document.written.content if document.written else ""
    contents = (text for message in document.messages for text in (message.role, *message.texts))
    parts = (document.id, document.group, *document.words, *document.translation, content, *contents)
    if has_surrogate("".join(parts)):
        text = next(part for part in parts if has_surrogate(part))
        raise CorpusError(
            f"document {quote(document.id)} has the text {quote(text)}, with half of a character that needs two (a "
            "lone surrogate); headscope reads Unicode: correct the text or, if it is the name of a file, rename that."
        )


def _check_names(document: Document) -> None:
    """Refuse a label or kind that cannot name a row of the table and a file."""
    names = {span.kind: "kind" for span in document.spans} | {link.kind: "kind" for link in document.links}
    names |= {link.label: "label" for link in document.links}
    for name, noun in names.items():
        if fault := find_name_fault(name):
            raise CorpusError(
                f"document {quote(document.id)} has the {noun} {quote(name)}, which {fault}; it names a row of "
                f"the table and files: write visible characters, of at most {MAX_NAME_BYTES} bytes in UTF-8."
            )
