"""The entries of a comparison: variables of head tables, with fixed labels for dimensions other than heads and runs."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import xarray as xr

from headscope.analyse.comparable import name_table
from headscope.errors import HeadscopeError, TableError
from headscope.files import MAX_NAME_BYTES
from headscope.score import HEAD, Score, over_directions, read_scores

FREQUENT = 12
"""The number of rows of a score that are compared by default, the most frequent rows first."""

BY_HEAD = ("run", "layer", "head")
"""The dimensions that a comparison keeps; along all others it has one label for each entry."""

Place = Mapping[str, str | int]


@dataclass(frozen=True)
class Entry:
    """A variable to compare, and its label along each dimension other than heads and runs."""

    variable: str
    where: Place

    @property
    def name(self) -> str:
        """The name of the entry in file names, such as ``token_class_mass-noun``; a long name ends in a hash."""
        name = re.sub(r"[^\w.-]", "_", "-".join([self.variable, *map(str, self.where.values())]))
        if len(name.encode()) <= MAX_NAME_BYTES:
            return name
        digest = hashlib.sha256(self.label.encode()).hexdigest()[:16]
        beginning = name.encode()[: MAX_NAME_BYTES - len(digest) - 1].decode(errors="ignore")
        return f"{beginning}-{digest}"

    @property
    def label(self) -> str:
        """The name of the entry in texts, such as ``token_class_mass noun``."""
        return " ".join([self.variable, *map(str, self.where.values())])


@dataclass(frozen=True)
class Tables:
    """The head tables of one corpus: before tuning, of the runs on the task, and of the runs on the control."""

    before: xr.Dataset
    after: xr.Dataset
    control: xr.Dataset | None = None

    def have(self, entry: Entry) -> bool:
        """Return True if every table has a value of the entry for some head."""
        tables = (self.before, self.after, self.control)
        return all(_has(table, entry) for table in tables if table is not None)


def choose_entries(tables: Tables, variables: Sequence[str]) -> tuple[list[Entry], list[str]]:
    """Choose the entries to compare: the named variables, or by default the scores that all tables have.

    Returns:
        The entries, and a sentence about each group of rows that is left out.

    Raises:
        TableError: The tables have no score in common, or a named variable or label is missing.
        HeadscopeError: The selection of a row is malformed.
    """
    if variables:
        named = [entry for text in variables for entry in _parse_entries(tables.before, text)]
        return list({(entry.variable, *entry.where.items()): entry for entry in named}.values()), []
    entries, left_out = [], []
    for score in read_scores(tables.before):
        variable = score.variable
        places, rarer = _usual(tables.before, score)
        present = [entry for entry in (Entry(variable, place) for place in places) if _has(tables.before, entry)]
        shared = [entry for entry in present if tables.have(entry)]
        entries += shared
        if rarer:
            example = f"`variables` {variable}:{score.row_dimension(tables.before)}=NAME"
            left_out.append(f"{rarer} rarer {score.rows} were not compared; name one as {example}.")
        if lacking := len(present) - len(shared):
            left_out.append(f"{lacking} of {variable} were not compared, because not every table has values of them.")
    if not entries:
        raise TableError(
            f"{name_table(tables.before, 'the table before')} and the tables after have no score in common; name a "
            "variable as `variables`, such as mass_sep."
        )
    return entries, left_out


def _usual(before: xr.Dataset, score: Score) -> tuple[list[Place], int]:
    """Return the rows of a score with the most items, which are compared by default, and the number of other rows.

    A score with directions is compared, in each row, in the direction of the reported head.
    """
    dim = score.row_dimension(before)
    if not dim:
        return _places(before, score.variable, {}), 0
    values = before[score.variable]
    known = values.notnull().any([other for other in values.dims if other != dim])
    rows = [str(row) for row in before[dim].values[known.values]]
    frequent = sorted(sorted(rows, key=lambda row: -score.count(before, {dim: row}))[:FREQUENT], key=rows.index)
    places = []
    for row in frequent:
        direction = {"direction": _direction(before, score, {dim: row})} if "direction" in values.dims else {}
        places += _places(before, score.variable, {dim: row, **direction})
    return places, len(rows) - len(frequent)


def _direction(before: xr.Dataset, score: Score, place: Mapping[str, str]) -> str:
    """Return the direction of the reported head of a row or, if no head is reported, of the best head."""
    reported = f"{score.report_prefix}reported_direction"
    if reported in before and (direction := str(before[reported].sel(place).item())):
        return direction
    values = over_directions(before, score.variable).sel(place)
    best = values.max([dim for dim in HEAD if dim in values.dims and dim != "direction"])
    return str(best["direction"].values[int(best.values.argmax())])


def _places(before: xr.Dataset, variable: str, where: Place) -> list[Place]:
    """List all labels of a variable along dimensions other than heads and runs that agree with `where`."""
    dims = [str(dim) for dim in before[variable].dims if dim not in BY_HEAD]
    along = [[where[dim]] if dim in where else before[dim].values.tolist() for dim in dims]
    return [dict(zip(dims, labels, strict=True)) for labels in product(*along)]


def _parse_entries(before: xr.Dataset, text: str) -> list[Entry]:
    """Parse ``NAME:DIMENSION=LABEL,...`` into the entries that have values; if none has, return the first one."""
    variable, _, places = text.partition(":")
    name = name_table(before, "the table before")
    if variable not in before:
        known = _list_head_variables(before)
        raise TableError(f"`variables` {text}: {name} has no variable {variable!r}; it has {known}.")
    where: dict[str, str | int] = {}
    for part in filter(None, places.split(",")):
        dim, separator, label = part.partition("=")
        if not separator or dim not in before[variable].dims or dim in BY_HEAD:
            example = "NAME:DIMENSION=PLACE, such as token_class_mass:token_class=noun"
            raise HeadscopeError(f"`variables` {text}: {part!r} is no place of {variable}; write {example}.")
        labels = {str(place): place for place in before[dim].values.tolist()}
        if label not in labels:
            raise TableError(f"`variables` {text}: {name} has no {dim} {label!r}; it has {', '.join(labels)}.")
        where[dim] = labels[label]
    if not {"layer", "head"} <= set(before[variable].dims):
        known = _list_head_variables(before)
        raise TableError(f"`variables` {text}: {variable} is not of each head; {name} has {known}.")
    entries = [Entry(variable, place) for place in _places(before, variable, where)]
    return [entry for entry in entries if entry.where == where or _has(before, entry)] or entries[:1]


def _list_head_variables(table: xr.Dataset) -> str:
    """Return the names of the variables with a value for each head, except sums by fold or permutation, as text."""
    dims = {str(name): {*values.dims} for name, values in table.data_vars.items()}
    inner = {"fold", "permutation"}
    return ", ".join(name for name in dims if {"layer", "head"} <= dims[name] and not inner & dims[name])


def _has(table: xr.Dataset, entry: Entry) -> bool:
    """Return True if a table has a value of an entry for some head."""
    known = all(dim in table.coords and label in table[dim].values for dim, label in entry.where.items())
    if entry.variable not in table or not known:
        return False
    return bool(np.isfinite(table[entry.variable].sel(dict(entry.where)).values).any())
