"""One option of a command: its help text, its type, and its possible values."""

import dataclasses
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from headscope.errors import HeadscopeError, suggest

GROUPS = ARGUMENTS, CORPUS, MODEL, MEASURED, TRAINING, LABELLING, OUTPUT, SPEED = (
    "Arguments",
    "Corpus",
    "Model",
    "What is measured",
    "Training",
    "Labelling by eye",
    "Output",
    "Speed and memory",
)
"""The groups of options in the help, in this order."""

_KEY = "option"
_PLAIN: Mapping[type, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    int: ((Integral,), "a whole number"),
    float: ((Real,), "a number"),
    str: ((str,), "a text"),
    Path: ((str, PathLike), "a path"),
}
"""For each type that is checked: the types of accepted values, and the name of the type in messages."""


_LONGEST_SHOWN = 120
"""The maximum number of characters of a value in a message; for a longer value, the message names the type."""


@dataclass(frozen=True)
class Option:
    """The description of a field of a request.

    Attributes:
        group: The group of the option in the help, one of `GROUPS`.
        text: The help text, of one or more sentences. Names of other fields are in backticks; the terminal shows them
            as options.
        names: The names on the terminal. Default: made from the name of the field.
        metavar: The placeholder of the value on the terminal.
        typed: The type on the terminal, if the function takes more types. Default: the type of the field.
        several: Whether the option may be repeated. True if the field is a sequence; its value is then a tuple.
        form: The form of one value of a field that is a mapping, such as ``TABLE=PATH``; the option is repeated.
        checked: Whether the type of the value is checked; False if the annotation has types that are not plain.
        optional: Whether the function also takes None.
        python: A sentence of the docstring about further values that the function takes.
        unset: The default in words. Default: the default value itself.
        choices: The possible values. Default: the values of the `Literal` in the annotation.
        at_least: The smallest possible value.
        why: The words with which a message explains that a value is not possible, such as ``which is no share of
            heads``.
        typed_default: The default on the terminal, if it differs from the default in Python.
        on_terminal: False for a parameter that only the function has.
        in_python: False for an option that only the terminal has.
        recorded: False for an option that does not change the result.
        envvar: An environment variable that sets the default on the terminal.
        basic: Whether ``--help`` shows the option; ``--help-all`` shows all options.
    """

    group: str
    text: str
    names: tuple[str, ...] = ()
    metavar: str | None = None
    typed: type | None = None
    several: bool = False
    form: str = ""
    checked: bool = False
    optional: bool = False
    python: str = ""
    unset: str | None = None
    choices: tuple[str, ...] = ()
    at_least: float | None = None
    why: str = ""
    typed_default: str | None = None
    on_terminal: bool = True
    in_python: bool = True
    recorded: bool = True
    envvar: str | None = None
    basic: bool = False

    def check(self, name: str, value: Any) -> Any:
        """Check a value and convert it to the form of the field: a Python number, or a tuple of several values.

        Raises:
            HeadscopeError: The value has another type, is too small, or is not one of the choices.
        """
        if value is None and (self.optional or not self.checked):
            return None
        if self.several:
            values = (value,) if isinstance(value, str | bytes) or not isinstance(value, Iterable) else value
            return tuple(self._check(name, each) for each in values)
        return self._check(name, value)

    def _check(self, name: str, value: Any) -> Any:
        if self.checked and self.typed is not None:
            kinds, _ = _PLAIN[self.typed]
            if not isinstance(value, kinds) or (isinstance(value, bool) and self.typed is not bool):
                raise self._refuse_type(name, value)
            value = value if self.typed is Path else self.typed(value)
        why = f", {self.why}" if self.why else ""
        if self.choices and value not in self.choices:
            choices = " or ".join(filter(None, (", ".join(self.choices[:-1]), self.choices[-1])))
            close = suggest(str(value), self.choices)
            raise HeadscopeError(f"`{name}` is {value!r}{close}{why}; give {choices}.")
        if self.at_least is not None and value < self.at_least:
            raise HeadscopeError(f"`{name}` is {value!r}{why}; give {self.at_least:g} or more.")
        return value

    def _refuse_type(self, name: str, value: Any) -> HeadscopeError:
        shown = repr(value)
        came = shown if len(shown) <= _LONGEST_SHOWN and "\n" not in shown else f"of type {type(value).__name__}"
        return HeadscopeError(f"`{name}` is {came}; give {_PLAIN[self.typed or str][1]}.")

    def parse(self, name: str, text: Any) -> Any:
        """Convert typed input (a text, several texts, or True for a flag) to a value of the field.

        Raises:
            HeadscopeError: The input has another type.
        """
        if self.form:
            return self._parse_mapping(name, text)
        if self.several:
            return tuple(self._parse(name, each) for each in text)
        return self._parse(name, text)

    def _parse_mapping(self, name: str, texts: Iterable[str]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for text in texts:
            key, _, value = text.partition("=")
            if not (key and value):
                raise HeadscopeError(f"`{name}` is {text!r}; give {self.form}.")
            if key in values:
                raise HeadscopeError(f"`{name}` gives {key} twice, as {values[key]} and as {value}; give it once.")
            values[key] = self._parse(name, value)
        return values

    def _parse(self, name: str, text: Any) -> Any:
        if not isinstance(text, str) or self.typed not in (int, float, Path):
            return text
        try:
            return self.typed(text)
        except ValueError:
            raise self._refuse_type(name, text) from None


def option(
    group: str, text: str, *names: str, default: Any = dataclasses.MISSING, kw_only: bool = True, **settings: Any
) -> Any:
    """Return a dataclass field that is an option on the terminal; the settings are attributes of `Option`."""
    return field(default=default, kw_only=kw_only, metadata={_KEY: Option(group, text, names, **settings)})


def argument(metavar: str, text: str, *, kw_only: bool, default: Any = dataclasses.MISSING, **settings: Any) -> Any:
    """Return a dataclass field that is a positional argument on the terminal; the settings are those of `Option`."""
    return option(ARGUMENTS, text, default=default, kw_only=kw_only, metavar=metavar, **settings)


def reducer_option(text: str, *, default: Any = dataclasses.MISSING, kw_only: bool = True, **settings: Any) -> Any:
    """Return a dataclass field for reducers, by name or as objects; the settings are attributes of `Option`."""
    settings = {"metavar": "NAME", "typed": str, "several": True, "basic": True, "python": "Or the objects."} | settings
    return option(MEASURED, text, "--reducer", "-r", default=default, kw_only=kw_only, **settings)


def table_option(group: str, text: str, *names: str, default: None, kw_only: bool = True, **settings: Any) -> Any:
    """Return a dataclass field for a head table: its file or folder or, in Python, the table itself."""
    settings = {"metavar": "FILE", "typed": Path, "python": "Or the table.", **settings}
    return option(group, text, *names, default=default, kw_only=kw_only, **settings)


def output_folder(
    example: str,
    typed_default: str | None = None,
    *,
    kw_only: bool,
    default: Any = dataclasses.MISSING,
    holds: str = "",
    **settings: Any,
) -> Any:
    """Return a dataclass field for an output folder.

    The function writes the folder only if it is named; the terminal has the default `typed_default`.
    """
    folder = f"Folder for {holds}" if holds else "Folder to write"
    text, settings = f"{folder}, such as {example}.", {"typed_default": typed_default or None, **settings}
    settings |= {"metavar": "FOLDER", "recorded": False, "basic": True}
    return option(OUTPUT, text, "--out", "-o", default=default, kw_only=kw_only, **settings)


def output_file(example: str, *, default: Any = dataclasses.MISSING, **settings: Any) -> Any:
    """Return a dataclass field for an output file; the settings are attributes of `Option`."""
    text, settings = (
        f"File to write, such as {example}.",
        {"metavar": "FILE", "recorded": False, "basic": True, **settings},
    )
    return option(OUTPUT, text, "--out", "-o", default=default, **settings)


def describe_default(described: Option, default: Any) -> str:
    """Return a sentence about the default of a field; empty for a required field."""
    if default is dataclasses.MISSING:
        return ""
    if described.unset is None and default in (None, (), ""):
        return "Default: none."
    shown = ("no", "yes")[default] if isinstance(default, bool) else default
    return f"Default: {described.unset or shown}."


def spell_name(name: str, described: Option) -> str:
    """Return the name of an option as it is typed, or the placeholder of an argument."""
    if described.group == ARGUMENTS:
        return described.metavar or name
    return next(iter(described.names), f"--{name.replace('_', '-')}")


def read_option(each: "dataclasses.Field[Any]") -> Option:
    """Return the option of a field, with the type, the choices and the checks that its annotation implies."""
    described: Option = each.metadata[_KEY]
    if described.typed not in (None, Path) or isinstance(each.type, str):
        return described
    kinds = get_args(each.type) if get_origin(each.type) in (Union, types.UnionType) else (each.type,)
    repeated = [get_args(kind)[0] for kind in kinds if get_origin(kind) is Sequence]
    kinds = tuple(repeated or (kind for kind in kinds if kind is not types.NoneType))
    named = [value for kind in kinds if get_origin(kind) is Literal for value in get_args(kind)]
    choices = () if str in kinds else tuple(named)  # if any text is allowed, names only help to complete
    kinds = tuple(dict.fromkeys(str if get_origin(kind) is Literal else kind for kind in kinds))
    typed = Path if Path in kinds else kinds[0]
    metavar = "N" if typed is int and described.metavar is None else described.metavar
    checked = all(kind in _PLAIN for kind in kinds)
    optional = types.NoneType in get_args(each.type)
    return dataclasses.replace(
        described,
        typed=typed,
        metavar=metavar,
        several=bool(repeated),
        checked=checked,
        optional=optional,
        choices=choices,
    )
