"""The score of a list of heads: the row that headscope measures, and the corpus for it."""

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
"""The row that is measured for a list of another tool, and the generated corpus that has it, if there is one."""


@dataclass(frozen=True)
class ListedRow:
    """A row of a list, and the row that is measured for it.

    Attributes:
        entries: of the list.
        key: of the row that is measured, as `HeadEntry.key`.
    """

    entries: tuple[HeadEntry, ...]
    key: str

    @property
    def variable(self) -> str:
        """The score that is measured."""
        return self.key.partition(":")[0]

    @property
    def is_turned(self) -> bool:
        """Return whether the score is high where the values of the list are low: DuoAttention's are."""
        return self.entries[0].score == duo_attention.SCORE

    @property
    def title(self) -> str:
        """The row that is measured, as it is shown."""
        return f"1 − {self.key}" if self.is_turned else self.key


def open_list(source: str | Path | HeadList) -> HeadList:
    """Return the list in a file, or a list in memory as it is.

    Raises:
        TableError: there is no such file, it is no list of heads, or it has none.
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
    """Return the path of a list, or that it is one in memory."""
    return str(source) if isinstance(source, str | Path) else "the list of heads"


def list_rows(heads: HeadList) -> list[ListedRow]:
    """Return the rows of a list, by attention type and direction, each with the row that is measured for it."""
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
    """Return the corpus on which the heads are ranked: the given one, or one that is generated for the list.

    Raises:
        CorpusError: none is given, and none is generated for this list; or it cannot be read.
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
    """Raise an error for a list with a head that a model does not have, or of a model of another size.

    Args:
        heads: the list.
        sizes: the numbers of layers and heads of each attention type of the model.
        name: of the list.

    Raises:
        TableError: it is one.
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
