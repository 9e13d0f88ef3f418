"""The content of a corpus in numbers; its documents are checked while they are counted."""

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import UInt64

from headscope.corpora import alignments
from headscope.corpora.corpus import Corpus
from headscope.corpora.document import SURE, Document, Skipped, hash_name
from headscope.corpora.link_evidence import LinkEvidence
from headscope.corpora.near_texts import Phrases, name_near
from headscope.corpora.originals import Originals, find_copies, hash_text
from headscope.corpora.treebanks import describe_several
from headscope.errors import CorpusError, quote
from headscope.files import MAX_NAME_BYTES, find_name_fault, has_surrogate

LISTED = 128
"""The greatest number of texts or documents whose names a summary lists, so that their folds are filled evenly."""

TREE_FAULTS = "tree_faults"
"""The attribute of a table with the number of sentences of a treebank that are not trees, by fault, as JSON."""

NOTES = "corpus_notes"
"""The attribute of a table with sentences on the oddities of its whole corpus."""


@dataclass(frozen=True)
class CorpusSummary:
    """The content of a corpus in numbers.

    Attributes:
        documents: the number of documents.
        words: the number of words in all documents.
        texts: the number of texts that the documents were cut from, without copies; 0 if no document names its text.
            Texts that are nearly the same count as one.
        pairs: the number of documents that are pairs of segments.
        links: for each kind, the number of links of each label, the most frequent first.
        spans: for each kind, the number of spans.
        skipped: the number of skipped parts of the files, by reason.
        rivals: the number of links that have rivals.
        aligned: the number of sure links between a word and a word of a translation.
        written: the number of documents with a text as written.
        tree_faults: the number of sentences of a treebank that are not trees, by fault (`headscope.corpora.trees`).
        notes: sentences on the oddities of the whole corpus: it has several treebanks, or its links seem to be in
            another form than the one in which they were read (`headscope.corpora.link_evidence`).
        originals: the groups and ids under which copies and nearly equal texts count.
        text_names: the hashes of the names of the texts (`hash_name`), without copies, from the smallest on; empty if
            there are more than `LISTED`.
        document_names: the same for the ids of the documents.
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
    tree_faults: dict[str, int] = field(default_factory=dict)
    notes: str = ""
    originals: Originals = field(default_factory=Originals, repr=False, compare=False)
    text_names: Sequence[int] = field(default=(), repr=False, compare=False)
    document_names: Sequence[int] = field(default=(), repr=False, compare=False)

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes that state the oddities of the corpus in a table; empty if the corpus has none."""
        faults = json.dumps(self.tree_faults, sort_keys=True) if self.tree_faults else ""
        return {name: text for name, text in ((TREE_FAULTS, faults), (NOTES, self.notes)) if text}


def summarize(documents: Iterable[Document]) -> CorpusSummary:
    """Return the content of a corpus in numbers, after checking all its documents.

    Raises:
        CorpusError: there are no documents, two have the same id, one has no words or an empty word, a text cannot be
            written in UTF-8, a label or kind cannot name a row of a table or a file (a control character, or more
            than 200 bytes), or reading them fails.
    """
    documents = list(documents) if isinstance(documents, Iterator) else documents
    words = pairs = rivals = aligned = written = 0
    # Eight bytes each: in a large corpus the names themselves would fill the memory.
    ids, texts, hashes = array("Q"), array("Q"), array("q")
    phrases, named = Phrases(), False
    # Links by kind and label, spans by kind.
    links: Counter[tuple[str, str]] = Counter()
    spans: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    tree_faults: Counter[str] = Counter()
    form = alignments.FORMS.get(documents.format) if isinstance(documents, Corpus) else None
    evidence = None if form is None else LinkEvidence(form)
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
        ids.append(hash_name(document.id))
        texts.append(hash_name(document.origin.cluster))
        hashes.append(hash_text(document))
        phrases.add(document)
        named |= document.group not in ("", document.id)
        words += len(document.words)
        pairs += document.boundary is not None
        aligned += sum(link.label == SURE for link in document.alignment)
        written += document.written is not None
        tree_faults.update(document.tree_faults)
        if evidence is not None:
            evidence.add(document)
    if not ids:
        raise CorpusError("the corpus has no documents; at least one is needed: check the path and the format.")
    _refuse_repeated(documents, ids)
    treebanks = describe_several(documents.files) if isinstance(documents, Corpus) else ""
    notes = ("" if evidence is None else evidence.describe(), treebanks)
    frequencies: dict[str, dict[str, int]] = {kind: {} for kind, _ in links}
    for (kind, label), count in links.most_common():
        frequencies[kind][label] = count
    copies, near = find_copies(documents, hashes), name_near(documents, phrases.group_texts())
    of_texts = _leave_out_copies(texts, hashes, (origin.cluster for origin in copies.values()), near)
    of_documents = _leave_out_copies(ids, hashes, (origin.id for origin in copies.values()), {} if named else near)
    return CorpusSummary(
        len(ids), words, len(of_texts) if named else 0, pairs, frequencies, dict(spans),
        dict(skipped), rivals, aligned, written, dict(tree_faults),
        " ".join(filter(None, notes)), Originals(copies, near),
        *(tuple(names.tolist()) if len(names) <= LISTED else () for names in (of_texts, of_documents)),
    )  # fmt: skip


def _leave_out_copies(
    names: "array[int]", hashes: "array[int]", originals: Iterable[str], near: Mapping[str, str]
) -> UInt64[np.ndarray, " name"]:
    """Return the hashes of the names under which the documents count, sorted; the name of several copies comes once."""
    _, place, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    of_originals = np.array([hash_name(name) for name in originals], dtype=np.uint64)
    alone = np.union1d(np.array(names, dtype=np.uint64)[counts[place] == 1], of_originals)
    clusters = {hash_name(name): hash_name(cluster) for name, cluster in near.items()}
    return np.unique(np.array([clusters.get(name, name) for name in alone.tolist()], dtype=np.uint64))


def _refuse_repeated(documents: Iterable[Document | Skipped], hashes: "array[int]") -> None:
    """Raise an error for two documents with the same id; read the documents again only if two hashes are equal."""
    values, counts = np.unique(hashes, return_counts=True)
    doubtful, ids = {*values[counts > 1].tolist()}, set[str]()
    for document in documents if doubtful else ():
        if isinstance(document, Skipped):
            continue
        if document.id in ids:
            raise CorpusError(f"two documents have the id {document.id!r}; each needs its own: rename one of them.")
        if hash_name(document.id) in doubtful:
            ids.add(document.id)


def _check_text(document: Document) -> None:
    """Raise an error for text that is not Unicode, which neither a tokenizer nor a hash accepts."""
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
    """Raise an error for a label or kind that cannot name a row of the table and a file."""
    names = {span.kind: "kind" for span in document.spans} | {link.kind: "kind" for link in document.links}
    names |= {link.label: "label" for link in document.links}
    for name, noun in names.items():
        if fault := find_name_fault(name):
            raise CorpusError(
                f"document {quote(document.id)} has the {noun} {quote(name)}, which {fault}; it names a row of "
                f"the table and files: write visible characters, of at most {MAX_NAME_BYTES} bytes in UTF-8."
            )
