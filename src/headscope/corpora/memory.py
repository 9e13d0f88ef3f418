"""Texts in memory as documents: strings, lists of words or messages, datasets, parses of spaCy.

`datasets`, `pandas` and `spacy` are not imported: their objects are recognised by their attributes.
"""

import hashlib
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from itertools import chain
from typing import Any

from headscope.corpora.conversations import list_roles, read_messages, split_messages
from headscope.corpora.document import Document, Link, Span
from headscope.corpora.jsontext import is_text
from headscope.corpora.written_text import WrittenText, split_text, split_words
from headscope.errors import CorpusError

COLUMNS = ("text", "sentence", "words", "tokens", "messages")
"""The default columns of a dataset, in the order in which they are searched."""

EXPECTED = (
    "a list whose items are strings, lists of words, lists of messages, spaCy Docs or Documents; a dataset with a "
    "column of strings, words or messages; or the path of a corpus"
)


class StreamedDataset:
    """The documents of a streamed dataset: its rows are read anew each time, and none is kept.

    Eight bytes are kept for each document, to raise an error for a dataset that yields other texts the next time.

    Args:
        rows: an iterable that yields all rows each time.
        column: the column of the texts.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]], column: str) -> None:
        self.rows, self.column = rows, column
        self._sha256: str | None = None
        # For each document, the beginning of the SHA-256 of all documents up to it.
        self._beginnings = array("Q")

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the class and its arguments for pickling: another process has to read the rows itself."""
        return StreamedDataset, (self.rows, self.column)

    def __iter__(self) -> Iterator[Document]:
        """Yield the documents.

        Raises:
            CorpusError: a row has no text, or the dataset was read before and gave other texts.
        """
        digest, place = hashlib.sha256(), 0
        for document in chain.from_iterable(self._convert_row(place, row) for place, row in enumerate(self.rows)):
            digest.update(repr(document).encode())
            beginning = int.from_bytes(digest.digest()[:8])
            if place == len(self._beginnings) and self._sha256 is None:
                self._beginnings.append(beginning)
            elif self._beginnings[place : place + 1] != array("Q", [beginning]):
                raise _refuse_other_texts(place)
            place += 1
            yield document
        if place < len(self._beginnings):
            raise _refuse_other_texts(place)
        self._sha256 = digest.hexdigest()

    @property
    def sha256(self) -> str:
        """The SHA-256 of the documents' reprs; it reads all documents unless all were read before."""
        if self._sha256 is None:
            deque(self, maxlen=0)
        return str(self._sha256)

    def _convert_row(self, place: int, row: Mapping[str, Any]) -> Iterator[Document]:
        if self.column not in row:
            raise CorpusError(
                f"item {place} of the corpus, counted from 0, has no column {self.column!r}; its columns are "
                f"{', '.join(map(str, row)) or 'none'}: leave it out, or name the column that all items have."
            )
        return _convert(place, row[self.column])


def _refuse_other_texts(place: int) -> CorpusError:
    return CorpusError(
        f"document {place} of the dataset, counted from 0, is another than when the dataset was read before; it is "
        "streamed, so it is read several times and has to give the same texts in the same order: give its shuffling a "
        "seed and leave its epoch alone, or write it to a file."
    )


def read_memory(corpus: Iterable[Any], *, column: str | None = None) -> Iterable[Document]:
    """Return the documents of a corpus in memory; they can be read again and again.

    ===================  ==========================================================================================
    an item              becomes
    ===================  ==========================================================================================
    a string             a document; white space separates its words
    a list of words      a document without a written text
    a list of messages   a document whose text is the output of a chat template (`headscope.corpora.conversations`)
    a `spacy` Doc        a document for each of its sentences, all of one text: its tokens are the words, written as in
                         the Doc, its dependencies are links (labels as in the pipeline), its parts of speech spans
    a `Document`         the same `Document`
    ===================  ==========================================================================================

    The rows of a streamed dataset are read anew each time and become documents then. The items of an iterator are kept,
    since it can be read only once.

    Args:
        corpus: the items; or a dataset (of `datasets`, streamed or not, or a data frame) with a column of items.
        column: the name of that column. Default: the first of `COLUMNS` that the dataset has.

    Raises:
        CorpusError: the column is missing, there are no items, or an item is of another kind or empty. For a streamed
            dataset, errors in a row are raised when the row is read.
    """
    if hasattr(corpus, "column_names") and not isinstance(corpus, Sized):
        return _open_stream(corpus, column)
    items = _select_column(corpus, column)
    if isinstance(items, Iterator):
        items = list(items)
    first = next(iter(items), None)
    if first is None:
        raise _refuse_empty(corpus)
    if isinstance(first, Document):
        _refuse_others(items)
        return items
    return tuple(chain.from_iterable(_convert(place, item) for place, item in enumerate(items)))


def read_text(text: str, place: int = 0) -> Document:
    """Return a document from a text that a user types; punctuation next to a word is a word of its own.

    Args:
        text: the text as written.
        place: its index among several texts, counted from 0.

    Raises:
        CorpusError: the text has no words.
    """
    words, written = split_words(text)
    return Document(str(place), _check_words(place, "an empty string", words), written=written)


def _open_stream(dataset: Any, column: str | None) -> StreamedDataset:
    first = next(iter(dataset), None)
    if first is None:
        raise _refuse_empty(dataset)
    # Some datasets do not know their columns before they are read.
    return StreamedDataset(dataset, choose_column(dataset.column_names or first, column))


def _refuse_empty(corpus: Any) -> CorpusError:
    return CorpusError(f"the corpus is an empty {type(corpus).__name__}; give {EXPECTED}.")


def _select_column(corpus: Any, column: str | None) -> Iterable[Any]:
    """Return the items of a corpus in memory; of a dataset, the values in the column of texts."""
    names = getattr(corpus, "column_names", getattr(corpus, "columns", None))
    kind = type(corpus).__name__
    if isinstance(names, Mapping):
        raise CorpusError(
            f"the dataset has the splits {', '.join(map(str, names))}; give one of them, such as "
            f"dataset[{next(iter(names), 'train')!r}]."
        )
    if names is None:
        if column is not None:
            raise CorpusError(
                f"`column` is for a dataset, and the corpus is of type {type(corpus).__name__}; leave it out."
            )
        if isinstance(corpus, str | bytes | Mapping) or not isinstance(corpus, Iterable):
            raise CorpusError(f"the corpus is of type {kind}; give {EXPECTED}.")
        return corpus
    chosen = choose_column(names, column)
    return [row[chosen] for row in corpus] if hasattr(corpus, "column_names") else list(corpus[chosen])


def choose_column(names: Iterable[Any], column: str | None) -> str:
    """Return the column of a dataset that has the texts: `column`, or the first of `COLUMNS` that is in `names`.

    Raises:
        CorpusError: `names` has no such column.
    """
    known = [str(name) for name in names]
    chosen = next((name for name in COLUMNS if name in known), None) if column is None else column
    if chosen not in known:
        wanted = f"has no column {column!r}" if column else f"has no column {', '.join(COLUMNS[:-1])} or {COLUMNS[-1]}"
        raise CorpusError(
            f"the dataset {wanted}; its columns are {', '.join(known) or 'none'}: name the one with the texts, as in "
            "headscope.read(dataset, column='review') or hf:NAME#review."
        )
    return chosen


def _refuse_others(items: Iterable[Any]) -> None:
    if isinstance(items, Sequence):
        for place, item in enumerate(items):
            if not isinstance(item, Document):
                raise CorpusError(
                    f"item {place} of the corpus, counted from 0, is of type {type(item).__name__}, and those before "
                    "it are Documents; give items of one kind."
                )


def _convert(place: int, item: Any) -> Iterator[Document]:
    """Yield the documents of an item of a corpus in memory; `place` is the index of the item, counted from 0."""
    if isinstance(item, Document):
        yield item
    elif isinstance(item, str):
        words, written = split_text(item)
        yield Document(str(place), _check_words(place, "an empty string", words), written=written)
    elif hasattr(item, "has_annotation") and hasattr(item, "sents"):
        yield from _convert_doc(place, item)
    elif isinstance(item, Iterable) and not isinstance(item, bytes | Mapping):
        values = list(item)
        if values and isinstance(values[0], Mapping):
            messages = read_messages(f"item {place} of the corpus, counted from 0,", values)
            words, written = split_messages(messages)
            yield Document(str(place), words, spans=list_roles(messages), written=written, messages=messages)
        else:
            yield Document(str(place), _check_words(place, "an empty list", values))
    else:
        raise CorpusError(
            f"item {place} of the corpus, counted from 0, is of type {type(item).__name__}; give {EXPECTED}."
        )


def _check_words(place: int, empty: str, words: Sequence[Any]) -> tuple[str, ...]:
    if not words:
        raise CorpusError(f"item {place} of the corpus, counted from 0, is {empty}; a text needs words: leave it out.")
    for position, word in enumerate(words):
        if not is_text(word):
            raise CorpusError(
                f"item {place} of the corpus, counted from 0, has {word!r:.60} as word {position}; a word is a string "
                "with at least one visible character: correct it."
            )
    return tuple(words)


def _convert_doc(place: int, doc: Any) -> Iterator[Document]:
    """Yield the sentences of a Doc of spaCy, or the whole Doc if it has no sentences."""
    sentences = list(doc.sents) if doc.has_annotation("SENT_START") else [doc]
    parsed = doc.has_annotation("DEP")
    empty = True
    for number, sentence in enumerate(sentences, start=1):
        tokens = [token for token in sentence if not token.is_space]
        if not tokens:
            continue
        empty = False
        word = {token.i: position for position, token in enumerate(tokens)}
        links = [
            Link(word[token.i], word[token.head.i], token.dep_)
            for token in tokens
            if parsed and token.head.i != token.i and token.head.i in word and token.dep_
        ]
        spans = [Span(word[token.i], word[token.i] + 1, token.pos_, "upos") for token in tokens if token.pos_]
        words = tuple(token.text for token in tokens)
        first, before = tokens[0].idx, tokens[0].idx - sentence[0].idx
        offsets = tuple((token.idx - first, token.idx - first + len(token)) for token in tokens)
        written = WrittenText(sentence.text[before : before + offsets[-1][1]], offsets)
        yield Document(f"{place}:{number}", words, tuple(links), tuple(spans), group=str(place), written=written)
    if empty:
        raise CorpusError(f"item {place} of the corpus, counted from 0, is a Doc without words; leave it out.")
