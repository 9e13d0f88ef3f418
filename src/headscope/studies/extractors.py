"""Functions that return extractors; an extractor reads the `Value` of a claim from a head table (`make_extractor`).

Shares are in percent, as the papers print them. The head is chosen in the same way as in the papers: the best head on
the whole corpus. If the table has a report (`headscope.analyse.add_report`), the value also has a held-out value, of
the head chosen on one half of the texts.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import xarray as xr
from jaxtyping import Bool

from headscope.heads import head_name
from headscope.score import HEAD, over_directions
from headscope.studies.study import Extractor, NotMeasuredError, Value

PERCENT = 100.0

P = ParamSpec("P")
R = TypeVar("R")


def make_extractor(read: Callable[Concatenate[xr.Dataset, P], R]) -> Callable[P, Callable[[xr.Dataset], R]]:
    """Return a function that takes the settings of `read` and returns an extractor: a function of a table alone."""

    def make(*arguments: P.args, **settings: P.kwargs) -> Callable[[xr.Dataset], R]:
        return lambda table: read(table, *arguments, **settings)

    return wraps(read)(make)


@make_extractor
def best_head(table: xr.Dataset, /, variable: str, *, prefix: str = "", score: str = "accuracy", **place: str) -> Value:
    """Return the best of all heads by a score, with its interval, and the held-out score of the reported head.

    `prefix` is the beginning of the names of variables in the table's report, and `score` the end of such a name.
    """
    return _read_best_head(select(table, variable, place), variable, prefix, score)


@make_extractor
def best_head_value(
    table: xr.Dataset, /, variable: str, by: str, scale: float = PERCENT, p: str = "", **place: str
) -> Value:
    """Return the value of `variable` at the coordinates `place`, for the head that is best by the variable `by`.

    The best head is chosen at the coordinate ``all`` of the dimensions in `place`. `p` is the name of the variable with
    the value's p-values, if it is tested.
    """
    where = find_best(select(table, by, dict.fromkeys(place, "all"))[by])
    row = select(table, variable, place)
    value = _read_head(row, variable, where, scale)
    return replace(value, p=float(select(row, p, {})[p].sel(where))) if p else value


@make_extractor
def best_relation_head(table: xr.Dataset, *labels: str, swapped: bool = False) -> Value:
    """Return the best head, in either direction, for the first relation in `labels` that the corpus has.

    The first label is in the annotation scheme of the paper, the others in other schemes. If `swapped` is true, the
    other schemes swap dependent and head.
    """
    label = _find_relation(table, labels)
    row = select(table, "relation_accuracy", {"relation": label})
    return _read_best_head(row, "relation_accuracy", "", "accuracy", swapped=swapped and label != labels[0])


@make_extractor
def best_relation_offset(table: xr.Dataset, *labels: str, swapped: bool = False) -> Value:
    """Return the best fixed offset for the first relation in `labels` that the corpus has (`best_relation_head`)."""
    label = _find_relation(table, labels)
    row = select(table, "offset_accuracy", {"relation": label})
    sign = -1 if swapped and label != labels[0] else 1
    return _read_best_offset(row, row["offset_accuracy"], "heldout_offset", "accuracy", sign)


@make_extractor
def best_offset(table: xr.Dataset, variable: str, by: str, *, report: str = "", score: str = "") -> Value:
    """Return the value of `variable` at the offset that is best by the variable `by`.

    `report` and `score` are the names of the held-out offset and its score in the table.
    """
    row = select(table, variable, {})
    best = _read_best_offset(row, row[by], report, score)
    return replace(best, number=PERCENT * float(row[variable].sel(offset=int(best.detail))))


@make_extractor
def single_value(table: xr.Dataset, /, variable: str, scale: float = PERCENT, **place: str | int) -> Value:
    """Return a single number of a table, at the coordinates `place`, times `scale`."""
    return Value(scale * float(select(table, variable, place)[variable]))


@make_extractor
def mean_of_offsets(table: xr.Dataset, variable: str, farthest: int) -> Value:
    """Return the mean of a variable over the offsets up to the distance `farthest`, in both directions."""
    scores = select(table, variable, {})[variable]
    return Value(PERCENT * float(scores.where(abs(scores["offset"]) <= farthest).mean()))


@make_extractor
def mean_of_heads(table: xr.Dataset, /, variable: str, **place: str) -> Value:
    """Return the mean of a variable over all heads, at the coordinates `place`."""
    return Value(PERCENT * float(select(table, variable, place)[variable].mean()))


@make_extractor
def mean_of_layers(
    table: xr.Dataset, /, variable: str, first: float, last: float, scale: float = PERCENT, **place: str
) -> Value:
    """Return the mean of a variable over the heads of the layers between two depths; layer 6 of 12 is at 0.5."""
    values = select(table, variable, place)[variable]
    chosen = values.isel(layer=find_between(values, first, last))
    layers = chosen["layer"].values.tolist()
    if not layers:
        raise NotMeasuredError(f"none of the {values.sizes['layer']} layers is that deep")
    return Value(scale * float(chosen.mean()), _describe_layers(layers, values.sizes["layer"]))


@make_extractor
def top_layer(table: xr.Dataset, variable: str) -> Value:
    """Return the layer whose heads have the greatest mean of a variable."""
    means = select(table, variable, {})[variable].mean("head")
    layer = int(means["layer"].values[int(means.argmax("layer"))])
    return Value(float(layer), f"of {means.sizes['layer']}")


@make_extractor
def layer_of_top_head(table: xr.Dataset, variable: str) -> Value:
    """Return the layer of the head with the greatest value of a variable."""
    values = select(table, variable, {})[variable]
    where = find_best(values)
    return Value(float(where["layer"]), f"head {_describe_head(where)} of {values.sizes['layer']} layers")


@make_extractor
def count_heads_above(table: xr.Dataset, variable: str, threshold: float) -> Value:
    """Return the number of heads with a value above a threshold, and their layers."""
    values = select(table, variable, {})[variable]
    counts = (values > threshold).sum("head")
    layers = np.repeat(counts["layer"].values, counts.values).tolist()
    return Value(float(len(layers)), _describe_layers(layers, values.sizes["layer"]) if layers else "")


@make_extractor
def share_of_heads_below(table: xr.Dataset, variable: str, threshold: float) -> Value:
    """Return the share of the heads with a value below a threshold."""
    return Value(PERCENT * float((select(table, variable, {})[variable] < threshold).mean()))


def largest(*extractors: Extractor) -> Extractor:
    """Return an extractor of the largest of several values.

    The ends of its interval are the largest lower end and the largest upper end of all these values. Values that the
    table lacks are left out.
    """

    def read(*tables: xr.Dataset) -> Value:
        values = []
        for extractor in extractors:
            with suppress(NotMeasuredError):
                values.append(extractor(*tables))
        if not values:
            raise NotMeasuredError("the table has none of what this is compared with")
        best = max(values, key=lambda value: value.number)
        lower, upper = (max(ends) for ends in zip(*(value.ends for value in values), strict=True))
        return best if lower == upper else replace(best, lower=lower, upper=upper)

    return read


def select(table: xr.Dataset, variable: str, place: Mapping[str, str | int]) -> xr.Dataset:
    """Return a table at the coordinates `place`, after checking that it has the variable and the coordinates.

    Raises:
        NotMeasuredError: the table has no value of the variable, or lacks a coordinate.
    """
    if variable not in table or not bool(table[variable].notnull().any()):
        raise NotMeasuredError(f"the table has no {variable}")
    for dim, label in place.items():
        if label not in table[dim].values:
            raise NotMeasuredError(f"the corpus has no {dim} {label}")
    return table.sel(dict(place))


def find_between(values: xr.DataArray, first: float, last: float) -> Bool[np.ndarray, " layer"]:
    """Return, for each layer, whether it lies between two depths, which are shares of all layers."""
    depth = values["layer"].values / values.sizes["layer"]
    return np.asarray((depth >= first - 1e-9) & (depth <= last + 1e-9))


def _find_relation(table: xr.Dataset, labels: tuple[str, ...]) -> str:
    known = table["relation"].values if "relation" in table.coords else ()
    for label in labels:
        if label in known:
            return label
    raise NotMeasuredError(f"the corpus has no relation {' or '.join(labels)}")


def find_best(values: xr.DataArray) -> dict[str, Any]:
    """Return the coordinates of the head with the greatest value; if several have it, of the first."""
    dims = [dim for dim in HEAD if dim in values.dims]
    if not bool(values.notnull().any()):
        raise NotMeasuredError("no head has a value")
    place = np.unravel_index(int(np.nanargmax(values.transpose(*dims).values)), [values.sizes[dim] for dim in dims])
    return {dim: values[dim].values[index].item() for dim, index in zip(dims, place, strict=True)}


def _describe_head(where: Mapping[str, int | str], swapped: bool = False) -> str:
    """Return the name of a head as ``8-11``, with the direction if it is the less common one.

    The less common direction is from the head of a dependency to its dependent.
    """
    name = head_name(int(where["layer"]), int(where["head"]))
    less_common = "dependent_to_head" if swapped else "head_to_dependent"
    return f"{name} head to dependent" if where.get("direction") == less_common else name


def _read_best_head(row: xr.Dataset, variable: str, prefix: str, score: str, *, swapped: bool = False) -> Value:
    where = find_best(over_directions(row, variable))
    best = replace(_read_head(row, variable, where), detail=_describe_head(where, swapped))
    if f"{prefix}reported_layer" not in row or row[f"{prefix}reported_layer"].isnull():
        return best
    labels = {dim: row[f"{prefix}reported_{dim}"].item() for dim in where}
    chosen = {dim: label if isinstance(label, str) else int(label) for dim, label in labels.items()}
    return replace(best, held_out=_read_reported(row, f"{prefix}heldout", score, _describe_head(chosen, swapped)))


def _read_head(row: xr.Dataset, variable: str, where: Mapping[str, int | str], scale: float = PERCENT) -> Value:
    lower, upper = (
        scale * float(row[name].sel(where)) if (name := f"{variable}_{end}") in row else math.nan
        for end in ("lower", "upper")
    )
    return Value(scale * float(row[variable].sel(where)), _describe_head(where), lower, upper)


def _read_best_offset(row: xr.Dataset, scores: xr.DataArray, report: str, score: str, sign: int = 1) -> Value:
    best = int(scores["offset"].values[int(scores.argmax("offset"))])
    value = Value(PERCENT * float(scores.sel(offset=best)), f"{sign * best:+d}")
    if not report or f"{report}_{score}" not in row or row[report].isnull():
        return value
    return replace(value, held_out=_read_reported(row, report, score, f"{sign * int(row[report]):+d}"))


def _read_reported(row: xr.Dataset, name: str, score: str, detail: str) -> Value:
    number, lower, upper = (PERCENT * float(row[f"{name}_{end}"]) for end in (score, "lower", "upper"))
    return Value(number, detail, lower, upper)


def _describe_layers(layers: list[int], count: int) -> str:
    return f"layer{'s' if len(layers) > 1 else ''} {', '.join(map(str, layers))} of {count}"
