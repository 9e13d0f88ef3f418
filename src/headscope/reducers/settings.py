"""Read and write the settings of a reducer, as text that users type or as plain values in a file.

Only plain values and a few classes of headscope are read, so that a file cannot cause an import.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, get_args, get_origin, get_type_hints

from headscope.errors import HeadscopeError
from headscope.reducers.reducer import Reducer
from headscope.reducers.support.folds import FoldAssignment
from headscope.reducers.support.permutations import Permutations
from headscope.reducers.support.word_class import WordClass

PARTS = {part.__name__: part for part in (FoldAssignment, Permutations, WordClass)}
"""The classes whose objects a setting may contain, in addition to plain values."""

WORDS = "words."
"""The prefix of the name of a setting that is a class of words, as in ``words.negations``."""

SEPARATOR = "|"
"""The character between two values of a setting."""

KINDS: Mapping[type, tuple[str, str, str]] = {
    int: ("a whole number", "whole numbers", "-2|3"),
    float: ("a number", "numbers", "0.1|0.05"),
    str: ("a word", "words", "not|never"),
    WordClass: ("words", "words", "not|never"),
}
"""The types of values that can be written as text: a phrase for one value, for several, and an example of two."""


class _NoPlainValueError(Exception):
    pass


@dataclass(frozen=True)
class _Setting:
    """A setting that can be written as text.

    Attributes:
        field: The field of the reducer.
        kind: The type of its value, or of each of its values.
        several: Whether it may have several values.
    """

    field: str
    kind: type
    several: bool

    @property
    def name(self) -> str:
        """The name of the setting, as users type it."""
        return f"{WORDS}NAME" if self.kind is WordClass else self.field

    @property
    def example(self) -> str:
        """An example of the value, as users type it."""
        two = KINDS[self.kind][2]
        return two if self.several else two.split(SEPARATOR)[-1]

    def parse(self, text: str) -> list[Any]:
        """Convert a text into the values of this setting.

        Raises:
            ValueError: The text does not hold values of this type.
        """
        parts = text.split(SEPARATOR) if self.several else [text]
        if not all(parts):
            raise ValueError
        return parts if self.kind is WordClass else [self.kind(part) for part in parts]


def parse_settings(reducer: Reducer, text: str) -> Reducer:
    """Return a reducer with the settings of a text such as ``offsets=-2|3,words.no=not|never``.

    Settings are the fields of a reducer that are a number, or several numbers or words with ``|`` between them. A class
    of words is written as ``words.NAME``; it may be repeated.

    Raises:
        HeadscopeError: The reducer lacks a setting, or a setting is given twice or has a wrong value.
    """
    settings = {setting.name: setting for setting in _list_written(reducer)}
    values: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        of_words = name.startswith(WORDS) and name != WORDS
        setting = settings.get(f"{WORDS}NAME" if of_words else name)
        if setting is None or not equals:
            raise _refuse(reducer, part, list(settings.values()))
        if setting.field in values and not of_words:
            raise HeadscopeError(
                f"the reducer `{reducer.name}` has {name} twice in {text!r}; give it once, as in "
                f"'{reducer.name}:{name}={setting.example}'."
            )
        try:
            parsed = setting.parse(value)
        except ValueError as error:
            single, several, _ = KINDS[setting.kind]
            wanted = f"{several} with {SEPARATOR} between them" if setting.several else single
            raise HeadscopeError(
                f"the reducer `{reducer.name}` cannot have {value!r} for {name}; give {wanted}, as in "
                f"'{reducer.name}:{name}={setting.example}'."
            ) from error
        if of_words:
            values[setting.field] = (*values.get(setting.field, ()), WordClass(name.removeprefix(WORDS), parsed))
        else:
            values[setting.field] = tuple(parsed) if setting.several else parsed[0]
    return _change(reducer, values)


def _refuse(reducer: Reducer, part: str, settings: Sequence[_Setting]) -> HeadscopeError:
    """Return the error for a text that is not a setting of a reducer."""
    if not settings:
        return HeadscopeError(f"the reducer `{reducer.name}` has no settings; leave out ':{part}'.")
    return HeadscopeError(
        f"the reducer `{reducer.name}` has no setting {part!r}; it has {', '.join(each.name for each in settings)}: "
        f"for example '{reducer.name}:{settings[0].name}={settings[0].example}'."
    )


def _list_written(reducer: Reducer) -> list[_Setting]:
    """Return the settings of a reducer that can be written as text, by the types of its fields."""
    hints = get_type_hints(type(reducer))
    settings = []
    for field in _list_settings(reducer):
        kind = next((kind for kind in (hints[field], *get_args(hints[field])) if kind in KINDS), None)
        if kind is not None:
            settings.append(_Setting(field, kind, get_origin(hints[field]) in (tuple, Sequence)))
    return settings


def write_settings(reducer: Reducer) -> dict[str, Any]:
    """Return the settings of a reducer by name; leave out values that cannot be written, such as functions."""
    settings = {}
    for name in _list_settings(reducer):
        try:
            settings[name] = _write(getattr(reducer, name))
        except _NoPlainValueError:
            continue
    return settings


def apply_settings(reducer: Reducer, settings: Mapping[str, Any]) -> Reducer:
    """Return a copy of the reducer with the settings from `write_settings`; all other settings stay the same."""
    return _change(reducer, {name: _read(value) for name, value in settings.items()})


def _change(reducer: Reducer, values: Mapping[str, Any]) -> Reducer:
    """Return a copy of the reducer with new values of the fields in `values`."""
    given: Any = reducer
    changed: Reducer = replace(given, **values) if values else given
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
