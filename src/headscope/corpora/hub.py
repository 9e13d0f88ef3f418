"""Datasets of the Hugging Face hub by their names, such as ``hf:stanfordnlp/imdb`` (extra ``datasets``).

`datasets` downloads, checks and caches them. It does not run their code: from version 4 on it cannot. A row is read
from columns with these names:

=====================  ===============================================================================
column                 is
=====================  ===============================================================================
``tokens``, ``words``  the words
``text``               the text as written, if it has exactly these words
``head``, ``deprel``   for each word, the number of its syntactic head, from 1 on (0 for the root), and the relation
``upos``               for each word, its universal part of speech
``links``, ``spans``   the same as in headscope's JSON Lines (`headscope.corpora.records`)
``group``              the text that this one was cut from
=====================  ===============================================================================

A dataset without words, or without ``head``, ``upos``, ``links`` and ``spans``, is read from one column of texts,
like a dataset in memory (`headscope.corpora.memory`).
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from headscope.corpora import records
from headscope.corpora.document import Document
from headscope.corpora.jsontext import is_text
from headscope.corpora.memory import StreamedDataset, choose_column
from headscope.corpora.written_text import locate_words
from headscope.errors import CorpusError, first_line, quote, say_missing
from headscope.files import expand_home

PREFIX = "hf:"
SPLITS = ("validation", "valid", "dev", "test", "train")
"""The splits in the order in which one is chosen if none is named."""

WORDS = ("tokens", "words")
_ANNOTATION = ("head", "upos", "links", "spans")
_COPIED = ("spans", "group")

_REVISION = re.compile(r"@([0-9a-f]{40})/")


@dataclass(frozen=True)
class _Rows:
    """The rows of a split of a dataset, which each process loads from its cache of `datasets`.

    Attributes:
        name: the corpus as the user named it.
        path, configuration, split: the dataset, its configuration and its split; None for the default.
        texts: the column of texts that is read; None for the default.
    """

    name: str
    path: str
    configuration: str | None
    split: str | None
    texts: str | None

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the class and its fields for pickling, without the rows: another machine has its own cache."""
        return _Rows, tuple(getattr(self, each.name) for each in fields(self))

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Yield the rows; if the words are annotated, a row has one value: a document under the column of words."""
        words = self.words
        names = {column: _get_class_names(feature) for column, feature in self.dataset.features.items()}
        for place, values in enumerate(self.dataset):
            row = {column: _name_classes(value, names[column]) for column, value in values.items()}
            yield {words: _build_document(place, row, row[words] or [])} if words else row

    @property
    def words(self) -> str:
        """The column of words if a column annotates the words; empty if none does, or if `texts` names a column."""
        columns = self.dataset.column_names
        if self.texts is not None or not any(each in columns for each in _ANNOTATION):
            return ""
        return next((each for each in WORDS if each in columns), "")

    @cached_property
    def dataset(self) -> Any:
        """The dataset of the split.

        Raises:
            CorpusError: the dataset cannot be loaded, or has no split of the name.
        """
        splits = load_splits(self.name, self.path, self.configuration)
        split = self.split or next((each for each in SPLITS if each in splits), next(iter(splits)))
        if split not in splits:
            raise CorpusError(f"{self.name} has no split {quote(split)}; its splits are {', '.join(splits)}: name one.")
        return splits[split]

    @property
    def source(self) -> str:
        """The origin of the rows, in words; empty for a folder."""
        if expand_home(self.path).exists():
            return ""
        revision = _REVISION.search(" ".join(self.dataset.info.download_checksums or ()))
        at = f" at revision {revision[1]}" if revision else ""
        address = f"https://huggingface.co/datasets/{self.path}"
        return f"{self.dataset.split} of {self.path}{at}, whose licence and citation are at {address}"


def open_dataset(name: str) -> tuple[StreamedDataset, str]:
    """Return the documents of a dataset, and a text that states its origin (empty for a folder).

    The rows are read anew for each iteration.

    Args:
        name: ``hf:DATASET``, ``hf:DATASET:CONFIG`` or ``hf:DATASET:CONFIG:SPLIT``, perhaps with ``#COLUMN`` for the
            column of the texts. A dataset is a name on the hub, or a folder of parquet, JSON Lines or CSV files.
            Default: its default configuration, and the first of `SPLITS` that it has.

    Raises:
        CorpusError: `datasets` is not installed or cannot load the dataset, or the split or the column is missing.
    """
    place, _, column = name.partition("#")
    _, path, configuration, split, *rest = (*place.split(":"), "", "", "")
    if not path or any(rest):
        raise CorpusError(
            f"the corpus {quote(name)} is not understood; a dataset is named hf:DATASET, hf:DATASET:CONFIG or "
            "hf:DATASET:CONFIG:SPLIT, such as hf:universal-dependencies/universal_dependencies:en_ewt:test."
        )
    rows = _Rows(name, path, configuration or None, split or None, column or None)
    return StreamedDataset(rows, rows.words or choose_column(rows.dataset.column_names, rows.texts)), rows.source


def load_splits(name: str, path: str, configuration: str | None) -> dict[str, Any]:
    """Return the splits of a dataset by their names.

    Args:
        name: the name of the dataset in error messages.
        path: its name on the hub, or a folder.
        configuration: the name of its configuration; None for the default.

    Raises:
        CorpusError: `datasets` is not installed, or cannot load it.
    """
    try:
        import datasets
    except ImportError:
        raise CorpusError(say_missing(f"{name} is loaded by `datasets`", "datasets")) from None
    try:
        with _without_bars(datasets):
            loaded = datasets.load_dataset(str(expand_home(path)), configuration)
    except Exception as error:  # the loaders of `datasets` each raise errors of their own
        raise CorpusError(
            f"{name} could not be loaded by `datasets` ({first_line(error)}); check the name, the configuration and "
            "the network, or name a folder of parquet, JSON Lines or CSV files."
        ) from error
    return {str(split): rows for split, rows in loaded.items()}


@contextmanager
def _without_bars(datasets: Any) -> Iterator[None]:
    """Hide the progress bars of `datasets` in the block."""
    are_shown = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if are_shown:
            datasets.enable_progress_bars()


def _build_document(place: int, row: Mapping[str, Any], words: list[Any]) -> Document:
    """Return the document of a row, checked in the same way as a line of JSON Lines."""
    where = f"row {place} of the dataset, counted from 0,"
    if not all(isinstance(link, Mapping) for link in row.get("links") or ()):
        raise CorpusError(f"{where} has links that are no records; each needs source, target and label.")
    record = {"words": words} | {key: row[key] for key in _COPIED if row.get(key) is not None}
    for column in ("head", "deprel", "upos"):
        if not isinstance(row.get(column) or [], list):
            raise CorpusError(
                f"{where} has no list in {column!r}; it needs a value for each word: correct the dataset."
            )
        if len(row.get(column) or words) != len(words):
            raise CorpusError(
                f"{where} has {len(words)} words and {len(row[column])} values in {column!r}; it needs one for each "
                "word: correct the dataset."
            )
    heads, relations, tags = row.get("head") or (), row.get("deprel") or (), row.get("upos") or ()
    if bool(heads) != bool(relations):
        raise CorpusError(f"{where} has one of 'head' and 'deprel' alone; give both, or neither.")
    # Heads count only words. A row for several words, such as 3-4, has no head and is not a word.
    own = [at for at, head in enumerate(heads) if str(head).isdigit()] if heads else [*range(len(words))]
    words, heads, relations, tags = ([column[at] for at in own if column] for column in (words, heads, relations, tags))
    record["words"] = words
    links = [{key: value for key, value in link.items() if value is not None} for link in row.get("links") or ()]
    for word, (head, relation) in enumerate(zip(heads, relations, strict=True)):
        if int(head):
            links.append({"source": word, "target": int(head) - 1, "label": relation, "kind": "dependency"})
    tags = [[word, word + 1, tag, "upos"] for word, tag in enumerate(tags) if tag not in (None, "_")]
    text = row.get("text")
    if isinstance(text, str) and all(map(is_text, words)) and locate_words(text, words, {}):
        record["text"] = text
    record |= {"links": links, "spans": [*record.get("spans", ()), *tags]}
    return records.build_document(where, "row", str(place), record)


def _get_class_names(feature: Any) -> list[str] | None:
    """Return the class names of a column that has class numbers, or lists of class numbers; None for other columns."""
    names: list[str] | None = getattr(getattr(feature, "feature", feature), "names", None)
    return names


def _name_classes(value: Any, names: list[str] | None) -> Any:
    if names is None or value is None:
        return value
    if isinstance(value, list):
        return [_name_classes(each, names) for each in value]
    return names[value] if value >= 0 else None
