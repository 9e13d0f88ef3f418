"""The settings with which a head table was measured, read from its attributes: corpus, part, and form of the texts."""

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from headscope.commands.recorded_request import REQUEST, read_request
from headscope.errors import TableError
from headscope.reducers.reducer_names import split_settings
from headscope.text_forms import GIVEN, find_form

_PART = re.compile(r"(?P<name>.*) \((?:first (?P<limit>\d[\d,]{,20})|(?P<sample>\d[\d,]{,20})) documents?"
                   r"(?: at random, seed (?P<seed>\d{1,20}))?\)", re.DOTALL)  # fmt: skip
"""The name of a corpus, followed by the measured part in brackets (`headscope.corpora.corpus.Corpus.title`)."""

_LEFT_OUT = re.compile(r"documents (?:longer than|cut to) (\d[\d,]{,20}) tokens")
"""A reason for which documents were skipped or cut, with the limit of tokens."""

_KINDS = {
    "max_tokens": int, "cut": bool, "pair_tokens": int, "batch_tokens": int, "view": str, "format": str, "patterns": str
}  # fmt: skip
"""The arguments that are read from a call, or from the plan in it, with their types."""


@dataclass(frozen=True)
class RecordedCall:
    """The settings with which a head table was measured; settings that the table does not record have their defaults.

    Attributes:
        corpus: The name or path of the corpus, as the user gave it.
        limit, sample, seed: The measured part of the corpus.
        format, patterns, hops: How the corpus was read.
        max_tokens, cut, pair_tokens, batch_tokens: How the model read the texts (`headscope.runner.Plan`).
        view: The view through which the model was measured; None for attention weights.
        text: The form in which the model read texts; None if its tokens were given.
        reducers: The names of the reducers, with their settings if they have any.
    """

    corpus: str
    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    format: str | None = None
    patterns: str | None = None
    hops: int = 1
    max_tokens: int | None = None
    cut: bool | None = None
    pair_tokens: int | None = None
    batch_tokens: int | None = None
    view: str | None = None
    text: str | None = None
    reducers: tuple[str, ...] = ()


def read_call(table: xr.Dataset) -> RecordedCall:
    """Read the settings of a table from its attributes; arguments of a call that cannot be parsed are left out."""
    about = table.attrs
    part = _PART.fullmatch(str(about["corpus"]))
    selection: dict[str, Any] = {}
    if part is not None:
        selection = {name: _parse(part[name]) for name in ("limit", "sample", "seed") if part[name]}
    named = _read_arguments(str(about["call"]))
    plan, reducers = named.get("plan"), named.get("reducers")
    values = {**named, **(plan if isinstance(plan, dict) else {})}
    known = {name: values[name] for name, kind in _KINDS.items() if isinstance(values.get(name), kind)}
    # The call does not record the limit of the model, or of a reducer that is not checked.
    longest = [_parse(match[1]) for match in map(_LEFT_OUT.fullmatch, json.loads(about["skipped"])) if match]
    if longest:
        known["max_tokens"] = min(longest)
    if isinstance(hops := about.get("hops"), int | np.integer):
        known["hops"] = int(hops)
    if "view" in about:
        known["view"] = str(about["view"])
    if (form := find_form(about)) != GIVEN:
        known["text"] = form
    return RecordedCall(
        str(about["corpus"]) if part is None else part["name"], **selection, **known,
        reducers=(*(map(str, reducers) if isinstance(reducers, list) else ()), *_read_settings(about)),
    )  # fmt: skip


def _read_settings(about: Mapping[str, Any]) -> list[str]:
    """Return the names of the reducers that have settings in the recorded request of a table."""
    try:
        reducers = read_request(str(about.get(REQUEST, ""))).get("reducers")
    except TableError:
        return []
    named = reducers if isinstance(reducers, list) else [reducers]
    return [each for each in named if isinstance(each, str) and split_settings(each)[1] is not None]


def _read_arguments(call: str) -> Mapping[str, Any]:
    """Parse a call, and return its plain arguments by name; a `Plan` becomes a mapping of its own arguments."""
    try:
        tree = ast.parse(call, mode="eval").body
        return _read_keywords(tree) if isinstance(tree, ast.Call) else {}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _read_keywords(call: ast.Call) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            continue
        if isinstance(keyword.value, ast.Call):
            values[keyword.arg] = _read_keywords(keyword.value)
            continue
        try:
            values[keyword.arg] = ast.literal_eval(keyword.value)
        except ValueError:
            continue
    return values


def _parse(number: str) -> int:
    return int(number.replace(",", ""))
