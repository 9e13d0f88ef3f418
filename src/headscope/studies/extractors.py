"""What a claim reads from a head table: functions that return functions table -> `Value`.

Shares are read in percent, as the papers print them. The head is chosen as the papers choose it: the best one on all
of the corpus. The held-out figure beside it, where the table has a report (`headscope.analyse.add_report`), is that
of the head chosen on one half of the texts.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import numpy as np
import xarray as xr

from headscope.heads import head_name
from headscope.studies.study import NotMeasuredError, Read, Value

HEAD = ("layer", "head", "direction")
PERCENT = 100.0


def best_head(variable: str, *, prefix: str = "", score: str = "accuracy", **place: str) -> Read:
    """The best of all heads by a score, with its interval, and the held-out score of the reported head.

    Args:
        variable: the score.
        prefix: what the table puts before the names of its report.
        score: what it calls the score there.
        place: coordinates of the other dimensions.
    """
    return lambda table: _best_head(_at(table, variable, place), variable, prefix, score)


def of_best_head(variable: str, by: str, scale: float = PERCENT, **place: str) -> Read:
    """The value of a variable for the head that is best by another one, or by the same at another place.

    Args:
        variable: what is read, at `place`.
        by: what the head is chosen by, at ``all`` along the dimensions of `place`.
        scale: of the value.
        place: coordinates of the other dimensions.
    """

    def read(table: xr.Dataset) -> Value:
        where = _best(_at(table, by, dict.fromkeys(place, "all"))[by])
        return _of_head(_at(table, variable, place), variable, where, scale)

    return read


def relation(*labels: str, turned: bool = False) -> Read:
    """The best head, in either direction, for the first of these relations that the corpus has.

    Args:
        labels: of the relation, in the scheme of the paper and in others.
        turned: in the other schemes dependent and head have changed places.
    """

    def read(table: xr.Dataset) -> Value:
        label = _label(table, labels)
        row = _at(table, "relation_accuracy", {"relation": label})
        return _best_head(row, "relation_accuracy", "", "accuracy", turned=turned and label != labels[0])

    return read


def relation_offset(*labels: str, turned: bool = False) -> Read:
    """The best fixed offset for the first of these relations that the corpus has; arguments as for `relation`."""

    def read(table: xr.Dataset) -> Value:
        label = _label(table, labels)
        row = _at(table, "offset_accuracy", {"relation": label})
        sign = -1 if turned and label != labels[0] else 1
        return _best_offset(row, row["offset_accuracy"], "heldout_offset", "accuracy", sign)

    return read


def offset(variable: str, by: str, *, report: str = "", score: str = "") -> Read:
    """The value at the offset that is best by a variable.

    Args:
        variable: what is read.
        by: what the offset is chosen by.
        report: what the table calls the held-out offset, if it has one.
        score: and the score.
    """

    def read(table: xr.Dataset) -> Value:
        row = _at(table, variable, {})
        best = _best_offset(row, row[by], report, score)
        return replace(best, number=PERCENT * float(row[variable].sel(offset=int(best.of))))

    return read


def value(variable: str, scale: float = PERCENT, **place: str | int) -> Read:
    """A single number of the table."""
    return lambda table: Value(scale * float(_at(table, variable, place)[variable]))


def mean_of_offsets(variable: str, farthest: int) -> Read:
    """The mean over the offsets up to this distance, before and after."""

    def read(table: xr.Dataset) -> Value:
        scores = _at(table, variable, {})[variable]
        return Value(PERCENT * float(scores.where(abs(scores["offset"]) <= farthest).mean()))

    return read


def mean_of_heads(variable: str, **place: str) -> Read:
    """The mean over all heads."""
    return lambda table: Value(PERCENT * float(_at(table, variable, place)[variable].mean()))


def in_layers(variable: str, first: float, last: float, scale: float = PERCENT, **place: str) -> Read:
    """The mean over the heads of some layers.

    Args:
        variable: the variable.
        first: depth of the first of them, as a share of all layers: layer 6 of 12 is at 0.5.
        last: depth of the last.
        scale: of the value.
        place: coordinates of the other dimensions.
    """

    def read(table: xr.Dataset) -> Value:
        values = _at(table, variable, place)[variable]
        depth = values["layer"] / values.sizes["layer"]
        chosen = values.isel(layer=np.flatnonzero((depth >= first - 1e-9) & (depth <= last + 1e-9)))
        layers = chosen["layer"].values.tolist()
        if not layers:
            raise NotMeasuredError(f"no layer of {values.sizes['layer']} lies so deep")
        return Value(scale * float(chosen.mean()), _layers(layers, values.sizes["layer"]))

    return read


def top_layer(variable: str) -> Read:
    """The layer in which the mean over the heads is greatest."""

    def read(table: xr.Dataset) -> Value:
        means = _at(table, variable, {})[variable].mean("head")
        layer = int(means["layer"].values[int(means.argmax("layer"))])
        return Value(float(layer), f"of {means.sizes['layer']}")

    return read


def layer_of_top_head(variable: str) -> Read:
    """The layer of the head with the greatest value."""

    def read(table: xr.Dataset) -> Value:
        values = _at(table, variable, {})[variable]
        where = _best(values)
        return Value(float(where["layer"]), f"head {_head(where)} of {values.sizes['layer']} layers")

    return read


def heads_above(variable: str, threshold: float) -> Read:
    """How many heads have a value above a threshold, and in which layers they are."""

    def read(table: xr.Dataset) -> Value:
        values = _at(table, variable, {})[variable]
        counts = (values > threshold).sum("head")
        layers = np.repeat(counts["layer"].values, counts.values).tolist()
        return Value(float(len(layers)), _layers(layers, values.sizes["layer"]) if layers else "")

    return read


def share_of_heads_below(variable: str, threshold: float) -> Read:
    """The share of the heads that have a value below a threshold."""
    return lambda table: Value(PERCENT * float((_at(table, variable, {})[variable] < threshold).mean()))


def largest(*reads: Read) -> Read:
    """The largest of several values that the table has."""

    def read(*tables: xr.Dataset) -> Value:
        found = []
        for one in reads:
            with suppress(NotMeasuredError):
                found.append(one(*tables))
        if not found:
            raise NotMeasuredError("the table has none of what this is compared with")
        return max(found, key=lambda value: value.number)

    return read


def _at(table: xr.Dataset, variable: str, place: Mapping[str, str | int]) -> xr.Dataset:
    if variable not in table or not bool(table[variable].notnull().any()):
        raise NotMeasuredError(f"the table has no {variable}")
    for dim, label in place.items():
        if label not in table[dim].values:
            raise NotMeasuredError(f"the corpus has no {dim} {label}")
    return table.sel(dict(place))


def _label(table: xr.Dataset, labels: tuple[str, ...]) -> str:
    known = set(table["relation"].values.tolist()) if "relation" in table.coords else set()
    found = [label for label in labels if label in known]
    if not found:
        raise NotMeasuredError(f"the corpus has no relation {' or '.join(labels)}")
    return found[0]


def _best(values: xr.DataArray) -> dict[str, int | str]:
    """The coordinates of the head with the greatest value; the first of equals."""
    dims = [dim for dim in HEAD if dim in values.dims]
    if not bool(values.notnull().any()):
        raise NotMeasuredError("no head has a value")
    place = np.unravel_index(int(np.nanargmax(values.transpose(*dims).values)), [values.sizes[dim] for dim in dims])
    return {dim: values[dim].values[index].item() for dim, index in zip(dims, place, strict=True)}


def _head(where: Mapping[str, int | str], turned: bool = False) -> str:
    """``8-11``, and the direction where it is the less common one, from the head of a dependency to its dependent."""
    name = head_name(int(where["layer"]), int(where["head"]))
    less_common = "dependent_to_head" if turned else "head_to_dependent"
    return f"{name} head to dependent" if where.get("direction") == less_common else name


def _best_head(row: xr.Dataset, variable: str, prefix: str, score: str, *, turned: bool = False) -> Value:
    where = _best(row[variable])
    best = replace(_of_head(row, variable, where), of=_head(where, turned))
    if int(row.get(f"{prefix}reported_layer", 0)) == 0:
        return best
    chosen = {dim: row[f"{prefix}reported_{dim}"].item() for dim in where}
    return replace(best, held_out=_value(row, f"{prefix}heldout", score, _head(chosen, turned)))


def _of_head(row: xr.Dataset, variable: str, where: Mapping[str, int | str], scale: float = PERCENT) -> Value:
    lower, upper = (
        scale * float(row[name].sel(where)) if (name := f"{variable}_{end}") in row else math.nan
        for end in ("lower", "upper")
    )
    return Value(scale * float(row[variable].sel(where)), _head(where), lower, upper)


def _best_offset(row: xr.Dataset, scores: xr.DataArray, report: str, score: str, sign: int = 1) -> Value:
    best = int(scores["offset"].values[int(scores.argmax("offset"))])
    found = Value(PERCENT * float(scores.sel(offset=best)), f"{sign * best:+d}")
    if not report or f"{report}_{score}" not in row or int(row[report]) == 0:
        return found
    return replace(found, held_out=_value(row, report, score, f"{sign * int(row[report]):+d}"))


def _value(row: xr.Dataset, name: str, score: str, of: str) -> Value:
    number, lower, upper = (PERCENT * float(row[f"{name}_{end}"]) for end in (score, "lower", "upper"))
    return Value(number, of, lower, upper)


def _layers(layers: list[int], count: int) -> str:
    return f"layer{'s' if len(layers) > 1 else ''} {', '.join(map(str, layers))} of {count}"
