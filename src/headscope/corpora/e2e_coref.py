"""Coreference in the JSON Lines of e2e-coref (Lee et al. 2017), a common form of OntoNotes: a line is a Document.

A line has sentences, each a list of words, and clusters, each a list of mentions ``[first, last]``. Words are counted
from 0 over the whole document, and the last word is in the mention::

    {"doc_key": "nw/x_0001_0", "sentences": [["Ann", "left", "."], ["She", "ran"]], "clusters": [[[0, 0], [3, 3]]]}
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headscope.corpora.document import Document, Span
from headscope.corpora.jsontext import get_text, is_text, parse_object, show
from headscope.corpora.text import format_count, read_lines
from headscope.errors import CorpusError

_EXAMPLE = '{"doc_key": "d", "sentences": [["She", "left"]], "clusters": []}'
_SUBWORDS = ("subtoken_map", "sentence_map")
_SENTENCES = re.compile(r'"sentences"\s*:\s*\[\s*\[')
_OTHERS = re.compile(r'"(doc_key|clusters|speakers)"\s*:')
# A document of OntoNotes and its part: nw/wsj/00/wsj_0001_0.
_PART = re.compile(r"(.+/[^/]+_[0-9]+)_[0-9]+")


def read(path: Path, *, name: str | None = None) -> Iterator[Document]:
    """Yield the documents of one file, with a ``mention`` span for each mention.

    The label of a span is the number of its cluster, counted from 1, which is valid within its document. A cluster of
    one mention is kept. Sentence boundaries and other keys, such as ``speakers``, are ignored. The id of a document
    ends in its ``doc_key`` or, without one, the number of its line. If the key names a part of a document, as in
    OntoNotes, that document is the group; otherwise each document is a group. Lines without a visible character are
    ignored.

    Raises:
        CorpusError: a line is not a JSON object, lacks words or clusters, or has pieces of words; a mention is not
            ``[first, last]``, or points outside the words; two lines have the same key; or the file holds no line or is
            not UTF-8.
    """
    prefix = name or path.name
    lines: dict[str, int] = {}
    for number, line in read_lines(path):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        record = parse_object(where, line, _EXAMPLE)
        key = get_text(where, record, "doc_key") or str(number)
        if (before := lines.setdefault(key, number)) != number:
            raise CorpusError(
                f'{where} has the "doc_key" {show(key)} as line {before} has; a document needs a key of its own: '
                "rename one of them."
            )
        words = _parse_words(where, record)
        part = _PART.fullmatch(key)
        spans = tuple(sorted(_parse_clusters(where, record, len(words)), key=lambda span: (span.start, span.end)))
        yield Document(f"{prefix}:{key}", words, spans=spans, group=f"{prefix}:{part[1] if part else key}")
    if not lines:
        raise CorpusError(
            f'{path} has no document; expected a JSON object with "sentences" and "clusters" on each line: check that '
            "the file is whole."
        )


def recognise(beginning: Sequence[str]) -> bool:
    """Return whether the first nonempty line begins a JSON object with ``sentences`` and another key of the format."""
    # The line may be cut off, so it cannot be parsed.
    first = next((line for line in beginning if line.strip()), "")
    return first.lstrip().startswith("{") and all(pattern.search(first) for pattern in (_SENTENCES, _OTHERS))


def _parse_words(where: str, record: Mapping[str, Any]) -> tuple[str, ...]:
    if key := next((key for key in _SUBWORDS if key in record), None):
        raise CorpusError(
            f'{where} has the key "{key}": its "sentences" are the pieces of words of one tokenizer, with special '
            "tokens among them; headscope reads words: give the file of words that it was made from."
        )
    sentences = _get_lists(where, record, "sentences", 'words, such as [["She", "left"]]')
    words = [word for sentence in sentences for word in sentence]
    if not words:
        raise CorpusError(f"{where} has a document without words; each needs at least one: leave it out.")
    for position, word in enumerate(words):
        if not is_text(word):
            raise CorpusError(
                f"{where} has {show(word)} as word {position}, counted from 0; a word is a string with at least one "
                "visible character: correct it."
            )
    return tuple(words)


def _parse_clusters(where: str, record: Mapping[str, Any], count: int) -> Iterator[Span]:
    mentions = "mentions, such as [[[0, 0], [3, 3]]], or [] if nothing is mentioned twice"
    clusters = _get_lists(where, record, "clusters", mentions)
    for number, cluster in enumerate(clusters, start=1):
        for mention in cluster:
            # True is an int in Python, but not a position.
            if not isinstance(mention, list) or [type(position) for position in mention] != [int, int]:
                raise CorpusError(
                    f"{where} has {show(mention)} in cluster {number}; a mention is its first and its last word, such "
                    "as [3, 3], counted from 0: correct it."
                )
            first, last = mention
            if not 0 <= first <= last < count:
                raise CorpusError(
                    f"{where} has the mention {show(mention)} in cluster {number}, but {format_count(count, 'word')}; "
                    f"a mention goes from its first to its last word, counted from 0 to {count - 1}: correct it."
                )
            yield Span(first, last + 1, str(number), kind="mention")


def _get_lists(where: str, record: Mapping[str, Any], key: str, parts: str) -> list[list[Any]]:
    """Return the list of lists under a key; `parts` names the items of the inner lists in error messages."""
    lists = record.get(key)
    if isinstance(lists, list) and all(isinstance(each, list) for each in lists):
        return lists
    problem = f'the "{key}" {show(lists)}' if key in record else f'no "{key}"'
    raise CorpusError(
        f"{where} has {problem}; a document needs a list of them, each a list of {parts}: write them there."
    )
