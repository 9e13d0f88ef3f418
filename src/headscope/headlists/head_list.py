"""The list of heads: a few heads with scores and intervals, their model and corpus, and its file ``heads.json``."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from headscope.errors import TableError, list_some, quote
from headscope.files import has_surrogate, write_text
from headscope.headlists.json_file import load_json
from headscope.own_files import HEAD_LIST_FORMAT
from headscope.results import Facts, Result

VERSION = 1
"""The version of the format. `read_head_list` rejects a file of another version."""

HEAD, GROUP = "head", "key_value_group"
"""The units of a list: heads, or key/value heads, each with all query heads that share it."""


@dataclass(frozen=True)
class HeadEntry:
    """A head and its score in a row of a head table.

    Attributes:
        layer, head: the numbers of layer and head, counted from 1. In a list of key/value groups, `head` is the number
            of the group.
        value: its score; None if the source only names the head.
        lower, upper: the ends of the 95 % interval of the score; None if there is none.
        count: the number of items on which it was scored.
        heldout: true for the reported head, which was chosen on one half of the texts; `value` is its score on the
            other half. The other heads of a row have their scores on all texts.
        verdict: the verdict on the reported head, such as ``stands out``; empty for other heads.
        score: the variable of the head table, such as ``relation_accuracy``.
        row: the row of the score, such as ``obj``; empty if the score has no rows.
        title: the row in words.
        direction: the direction in which it was scored; empty if there is none.
        attention_type: ``encoder``, ``decoder`` or ``cross``, if the model has several.
        rival, rival_value: the strongest rival of the reported head in words, and its score on the same items.
        values: the numbers whose mean is `value`, if the source has several.
    """

    layer: int
    head: int
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    count: int | None = None
    heldout: bool = False
    verdict: str = ""
    score: str = ""
    row: str = ""
    title: str = ""
    direction: str = ""
    attention_type: str = ""
    rival: str = ""
    rival_value: float | None = None
    values: tuple[float, ...] = ()

    @property
    def key(self) -> str:
        """The name of the score and the row of the entry, such as ``relation_accuracy:obj``."""
        return f"{self.score}:{self.row}".strip(":")

    @property
    def place(self) -> str:
        """The name of the head, such as ``8-10``; with its attention type, if it has one, ``cross 8-10``."""
        return f"{self.attention_type} {self.layer}-{self.head}".strip()


@dataclass(frozen=True)
class ListedModel:
    """The model whose heads are listed. Unknown values are empty or None.

    Attributes:
        name, weights_sha256: the same as in the head table.
        layers, heads: the number of layers, and of heads per layer.
        key_value_heads: the number of key/value heads per layer.
    """

    name: str = ""
    weights_sha256: str = ""
    layers: int | None = None
    heads: int | None = None
    key_value_heads: int | None = None


@dataclass(frozen=True, repr=False)
class HeadList(Result):
    """Heads of a model with their scores, and the origin of the scores.

    Attributes:
        entries: the heads, row by row; in each row the reported head comes first.
        model: the model of the heads.
        unit: `HEAD` or `GROUP`.
        corpus, corpus_sha256: the corpus on which they were scored; empty if the source does not state it.
        headscope: the version of headscope that scored them, or empty.
        created: the time of scoring, or empty.
        method: how the numbers were computed, in sentences.
    """

    entries: tuple[HeadEntry, ...]
    model: ListedModel = field(default_factory=ListedModel)
    unit: str = HEAD
    corpus: str = ""
    corpus_sha256: str = ""
    headscope: str = ""
    created: str = ""
    method: str = ""

    @property
    def facts(self) -> Facts:
        """The model and corpus of the heads, their number, the first head of each row, and the method."""
        first = {entry.key: f"{entry.row} {entry.place}".strip() for entry in reversed(self.entries)}
        about = {"model": self.model.name, "corpus": self.corpus, "unit": self.unit, "heads": len(self.entries)}
        return {**about, "rows": [first[key] for key in self.keys], "method": self.method}

    @property
    def keys(self) -> list[str]:
        """The keys of the rows in the list (`HeadEntry.key`), in the order of the list."""
        return list(dict.fromkeys(entry.key for entry in self.entries))

    def select(self, row: str | None) -> "HeadList":
        """Return the list with one row alone: `row` is its key, its key without the score, or None for the only row.

        Raises:
            TableError: the row is missing, or several rows match.
        """
        named = {key: {key, key.partition(":")[2]} for key in self.keys}
        chosen = [key for key, names in named.items() if row is None or row in names]
        if len(chosen) != 1:
            fault = "of no row" if not named else f"of {len(chosen)} rows" if row is None else f"not of one row {row!r}"
            known = list_some(self.keys) or "there is none"
            raise TableError(f"the heads are {fault}, and one is needed; name one with --row: {known}.")
        return replace(self, entries=tuple(entry for entry in self.entries if entry.key == chosen[0]))


def write_head_list(heads: HeadList, path: str | Path) -> Path:
    """Write a list as JSON, whole or not at all (`headscope.files.write_text`), and return the path.

    Raises:
        TableError: a row has a head twice, or an interval ends below its beginning; `read_head_list` would reject both.
    """
    path = Path(path)
    _check_entries(heads.entries, path)
    about = {
        "format": HEAD_LIST_FORMAT, "version": VERSION, "headscope": heads.headscope, "created": heads.created,
        "unit": heads.unit, "model": asdict(heads.model),
        "corpus": {"name": heads.corpus, "sha256": heads.corpus_sha256}, "method": heads.method,
    }  # fmt: skip
    lines = ",\n".join(f"  {_dump(_shorten(entry))}" for entry in heads.entries)
    beginning = ",\n".join(f" {_dump(key)}: {_dump(value)}" for key, value in about.items())
    write_text(f'{{\n{beginning},\n "heads": [\n{lines}\n ]\n}}\n', path)
    return path


def read_head_list(path: str | Path) -> HeadList:
    """Return the list of heads in a file of `write_head_list`.

    Raises:
        TableError: the file is missing, is not a list of heads, has another version, lacks a field, has an invalid
            value, such as a head that the model does not have, or has a head twice in a row.
    """
    path = Path(path)
    return parse_head_list(load_json(path), path)


def parse_head_list(stored: Any, path: Path) -> HeadList:
    """Return the list in the value of a JSON file; raise the errors of `read_head_list`."""
    if not isinstance(stored, dict) or stored.get("format") != HEAD_LIST_FORMAT:
        raise TableError(
            f"{path} is no list of heads, for its field format is not {HEAD_LIST_FORMAT!r}; write one with `headscope "
            "export`."
        )
    if stored.get("version") != VERSION:
        raise TableError(
            f"{path} is a list of heads of version {quote(str(stored.get('version')))}, and this headscope reads "
            f"version {VERSION}; export it again, or use the version that wrote it."
        )
    about = _take(stored, {"unit": _UNIT, "model": _OBJECT, "corpus": _OBJECT, "heads": _ARRAY}, str(path))
    texts = _take(stored, dict.fromkeys(("headscope", "created", "method"), _TEXT), str(path), optional=True)
    model = ListedModel(**_take(about["model"], _MODEL, f"the model of {path}", optional=True))
    corpus = _take(about["corpus"], dict.fromkeys(("name", "sha256"), _TEXT), f"the corpus of {path}", optional=True)
    entries = []
    for number, item in enumerate(about["heads"], 1):
        where = f"entry {number} of {path}"
        if not isinstance(item, dict):
            raise TableError(f"{where} is {quote(json.dumps(item))}, and an entry is a JSON object; correct it.")
        needed = _take(item, {name: _ENTRY[name] for name in _NEEDED}, where)
        others = {name: kind for name, kind in _ENTRY.items() if name not in _NEEDED}
        entry = HeadEntry(**needed, **_take(item, others, where, optional=True))
        check_head(entry, model, about["unit"], where)
        entries.append(entry)
    _check_entries(entries, path)
    return HeadList(
        tuple(entries), model, about["unit"], corpus.get("name", ""), corpus.get("sha256", ""), **texts
    )  # fmt: skip


def check_head(entry: HeadEntry, model: ListedModel, unit: str, where: str) -> None:
    """Raise an error if the layer or the head of an entry exceeds the known number of layers or heads of the model."""
    heads, what = (model.heads, "heads") if unit == HEAD else (model.key_value_heads, "key/value heads")
    for name, number, most, kind in (("layer", entry.layer, model.layers, "layers"), ("head", entry.head, heads, what)):
        if most is not None and number > most:
            raise TableError(
                f"{where} names the {name} {number}, and the model has {most} {kind}; give the list of this model."
            )


def _check_entries(entries: Sequence[HeadEntry], path: Path) -> None:
    """Raise an error for an interval that ends below its beginning, or for a head that is in a row twice."""
    for number, entry in enumerate(entries, 1):
        if entry.lower is not None and entry.upper is not None and entry.lower > entry.upper:
            raise TableError(
                f"entry {number} of {path} has {entry.lower} as 'lower', which is above its 'upper', {entry.upper}; "
                "correct them."
            )
    named = [f"{entry.place} of the row {entry.key!r}" if entry.key else entry.place for entry in entries]
    refuse_repeated(named, path)


def refuse_repeated(heads: Sequence[str], path: Path) -> None:
    """Raise an error for a list that has a head twice; each item names a head, with its row if there are several.

    Raises:
        TableError: a head occurs twice.
    """
    entries: dict[str, int] = {}
    for number, head in enumerate(heads, 1):
        if (first := entries.setdefault(head, number)) != number:
            raise TableError(
                f"entry {number} of {path} is the head {head} again, after entry {first}; keep one of the two."
            )


@dataclass(frozen=True)
class _Kind:
    """The valid values of a field: a test, and a description in words."""

    test: Callable[[Any], bool]
    wanted: str


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number that a float can hold; True does not count."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def is_whole(value: Any, least: int) -> bool:
    """Return whether a value is a whole number of at least `least`; True does not count."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


_NUMBER = _Kind(lambda value: value is None or is_number(value), "a finite number or null")
_SIZE = _Kind(lambda value: value is None or is_whole(value, 1), "a whole number from 1 on, or null")
_PLACE = _Kind(lambda value: is_whole(value, 1), "a whole number from 1 on")
_COUNT = _Kind(lambda value: value is None or is_whole(value, 0), "a whole number from 0 on, or null")
_TEXT = _Kind(lambda value: isinstance(value, str) and not has_surrogate(value), "a text that UTF-8 can hold")
_FLAG = _Kind(lambda value: isinstance(value, bool), "true or false")
_NUMBERS = _Kind(lambda value: isinstance(value, list) and all(map(is_number, value)), "a list of finite numbers")
_OBJECT = _Kind(lambda value: isinstance(value, dict), "a JSON object")
_ARRAY = _Kind(lambda value: isinstance(value, list), "a JSON array")
_UNIT = _Kind(lambda value: value in (HEAD, GROUP), f"{HEAD!r} or {GROUP!r}")
_MODEL = {"name": _TEXT, "weights_sha256": _TEXT, "layers": _SIZE, "heads": _SIZE, "key_value_heads": _SIZE}
_NEEDED = ("layer", "head", "value")
_ENTRY = {
    **dict.fromkeys(("layer", "head"), _PLACE), **dict.fromkeys(("value", "lower", "upper", "rival_value"), _NUMBER),
    "count": _COUNT, "heldout": _FLAG, "values": _NUMBERS,
    **dict.fromkeys(("verdict", "score", "row", "title", "direction", "attention_type", "rival"), _TEXT),
}  # fmt: skip


def _take(
    stored: Mapping[str, Any], kinds: Mapping[str, _Kind], where: str, *, optional: bool = False
) -> dict[str, Any]:
    """Return the fields of an object that are in `kinds`, after checking their values; ignore other fields."""
    if missing := [name for name in kinds if name not in stored and not optional]:
        raise TableError(f"{where} lacks the field {missing[0]!r}; add it, or export the list again.")
    for name, kind in kinds.items():
        if name in stored and not kind.test(stored[name]):
            raise TableError(
                f"{where} has {quote(json.dumps(stored[name]))} as {name!r}, which must be {kind.wanted}; correct it."
            )
    values = {name: stored[name] for name in kinds if name in stored}
    return {name: tuple(value) if kinds[name] is _NUMBERS else value for name, value in values.items()}


def _shorten(entry: HeadEntry) -> dict[str, Any]:
    """Return the required fields of an entry, and the other fields whose values are not their defaults."""
    values = {part.name: (part.default, getattr(entry, part.name)) for part in fields(entry)}
    return {name: value for name, (default, value) in values.items() if name in _NEEDED or value != default}


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
