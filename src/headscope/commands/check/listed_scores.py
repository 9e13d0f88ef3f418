"""The scores of a list of heads: the corresponding rows of a head table, and a corpus to measure them on."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.corpora import Corpus, read
from headscope.corpora.corpus import GENERATED
from headscope.errors import CorpusError, TableError, quote
from headscope.files import expand_home
from headscope.headlists import HeadEntry, HeadList, ListedModel, alignment_heads, duo_attention, retrieval_heads
from headscope.headlists.head_list import check_head
from headscope.headlists.list_formats import read_heads

_NEEDLES = "needles:100"
_GENERATED = re.compile(r"([a-z]+)(?::[0-9]{1,9}){0,2}")

_MEASURED: Mapping[str, tuple[str, str | None]] = {
    retrieval_heads.SCORE: ("retrieval_accuracy:first token", _NEEDLES),
    duo_attention.SCORE: (duo_attention.STREAMING, _NEEDLES),
    alignment_heads.FIELD: ("alignment_accuracy:predicting", None),
}
"""For each score of another tool, the row that headscope measures, and a generated corpus for it (None: none)."""


@dataclass(frozen=True)
class ListedRow:
    """A row of a list of heads, and the row of a head table that is measured for it.

    Attributes:
        entries: The heads of the row, with their listed values.
        key: The name of the measured row, in the form of `HeadEntry.key`.
    """

    entries: tuple[HeadEntry, ...]
    key: str

    @property
    def variable(self) -> str:
        """The name of the score that is measured."""
        return self.key.partition(":")[0]

    @property
    def is_turned(self) -> bool:
        """Whether the measured score is high where the listed values are low, as for the values of DuoAttention."""
        return self.entries[0].score == duo_attention.SCORE

    @property
    def title(self) -> str:
        """The name of the measured row in tables; it begins with ``1 −`` if the score is turned."""
        return f"1 − {self.key}" if self.is_turned else self.key


def open_list(source: str | Path | HeadList) -> HeadList:
    """Read a list of heads from a file; return a list in memory unchanged.

    Raises:
        TableError: The file is missing or is not a list of heads, the list is empty, or a head has no score.
    """
    if not isinstance(source, str | Path | HeadList):
        raise TableError(f"`heads` is of type {type(source).__name__}; give a list of heads, or its file.")
    heads = source if isinstance(source, HeadList) else read_heads(expand_home(source))
    if not heads.entries:
        raise TableError(f"{name_list(source)} has no heads to check; give a list that has.")
    if not all(entry.score for entry in heads.entries):
        raise TableError(f"{name_list(source)} does not say which score its heads have; export it from an atlas.")
    return heads


def name_list(source: object) -> str:
    """Return the path of a list of heads, or the words "the list of heads" for a list in memory."""
    return str(source) if isinstance(source, str | Path) else "the list of heads"


def list_rows(heads: HeadList) -> list[ListedRow]:
    """Group the heads of a list by score, attention type and direction, and add the row to measure for each group."""
    rows: dict[tuple[str, str, str], list[HeadEntry]] = {}
    for entry in heads.entries:
        rows.setdefault((entry.key, entry.attention_type, entry.direction), []).append(entry)
    return [ListedRow(tuple(entries), _MEASURED.get(key, (key, None))[0]) for (key, *_), entries in rows.items()]


def read_corpus(
    heads: HeadList,
    corpus: str | Path | Iterable[Any] | None,
    format: str | None,
    patterns: str | Path | None,
    name: str,
) -> Corpus:
    """Read the corpus on which the heads of a list are ranked.

    By default, this is the corpus that is generated for the score of the list.

    Raises:
        CorpusError: The corpus cannot be read; or no corpus is given, and none can be generated for the list.
    """
    if isinstance(corpus, Corpus):
        return corpus
    if corpus is None:
        corpus = _find_generated(heads)
    if corpus is None:
        raise CorpusError(
            f"no corpus is generated for {list_rows(heads)[0].key}, which is measured for {name}; name one that has "
            "it as `corpus`."
        )
    return read(corpus, format=format, patterns=patterns)


def _find_generated(heads: HeadList) -> str | None:
    foreign = _MEASURED.get(heads.keys[0])
    if foreign is not None:
        return foreign[1]
    match = _GENERATED.fullmatch(heads.corpus)
    return heads.corpus if match is not None and match[1] in GENERATED else None


def check_exists(heads: HeadList, sizes: Mapping[str, ListedModel], name: str) -> None:
    """Raise an error if a head of a list is not in a model, or if the list is of a model of another size.

    Args:
        heads: The list.
        sizes: The numbers of layers and heads of the model, for each attention type.
        name: The name of the list in error messages.

    Raises:
        TableError: The model lacks a head, or has another size.
    """
    for number, entry in enumerate(heads.entries, 1):
        where = f"entry {number} of {name}"
        if entry.attention_type and entry.attention_type not in sizes:
            raise TableError(
                f"{where} names a head of the attention type {quote(entry.attention_type)}, and the model has "
                f"{', '.join(filter(None, sizes)) or 'a single type'}; give the list of this model."
            )
        of_type = sizes.get(entry.attention_type) or max(sizes.values(), key=lambda each: each.layers or 0)
        check_head(entry, of_type, heads.unit, where)
    for field, parts in (("layers", "layers"), ("heads", "heads"), ("key_value_heads", "key/value heads")):
        ours, theirs = getattr(heads.model, field), max(getattr(size, field) or 0 for size in sizes.values())
        if ours is not None and theirs and ours != theirs:
            raise TableError(
                f"{name} is of a model of {ours} {parts}, and this model has {theirs}; give the list of this model."
            )
