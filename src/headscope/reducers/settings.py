"""The settings of a reducer as plain values that a file can keep, and a reducer with them.

Nothing but plain values and a few records of headscope is read, so that no file can have anything imported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from headscope.reducers.reducer import Reducer
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


def apply_settings(reducer: Reducer, settings: Mapping[str, Any]) -> Reducer:
    """The same reducer with settings that `write_settings` wrote; those that were not written stay as they are."""
    given: Any = reducer
    changed: Reducer = replace(given, **{name: _read(value) for name, value in settings.items()}) if settings else given
    return changed


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
