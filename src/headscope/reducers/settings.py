"""The settings of a reducer as plain values that a file can keep, and the reducer again.

Only headscope's own reducers are made again, by their names, so that no file can have anything imported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from headscope.corpora.summary import CorpusSummary
from headscope.reducers.reducer import Reducer
from headscope.reducers.registry import REDUCERS
from headscope.reducers.support.folds import FoldAssignment
from headscope.reducers.support.permutations import Permutations
from headscope.reducers.support.word_class import WordClass

PARTS = {part.__name__: part for part in (FoldAssignment, Permutations, WordClass)}
"""What a setting may consist of, beside plain values."""


class _NoPlainValueError(Exception):
    pass


def write_settings(reducer: Reducer) -> dict[str, Any]:
    """The settings of a reducer by name, without those that are no plain values, such as functions."""
    settings = {}
    for name in _list_settings(reducer):
        try:
            settings[name] = _write(getattr(reducer, name))
        except _NoPlainValueError:
            continue
    return settings


def read_settings(name: str, settings: Mapping[str, Any], summary: CorpusSummary) -> Reducer | None:
    """The reducer of headscope that is made for a corpus, with these settings; None if it has none of this name.

    Settings that were not written are those for the corpus.
    """
    if name not in REDUCERS:
        return None
    for_corpus: Any = REDUCERS[name].for_corpus(summary)
    reducer: Reducer = replace(for_corpus, **{setting: _read(value) for setting, value in settings.items()})
    return reducer


def _list_settings(reducer: Any) -> list[str]:
    return [field.name for field in fields(reducer) if field.init] if is_dataclass(reducer) else []


def _write(value: Any) -> Any:
    if type(value).__name__ in PARTS and type(value) is PARTS[type(value).__name__]:
        return {"part": type(value).__name__, **{name: _write(getattr(value, name)) for name in _list_settings(value)}}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_write(item) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise _NoPlainValueError


def _read(value: Any) -> Any:
    if isinstance(value, Mapping):
        return PARTS[value["part"]](**{name: _read(item) for name, item in value.items() if name != "part"})
    return tuple(map(_read, value)) if isinstance(value, list) else value
