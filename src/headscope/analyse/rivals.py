"""The rivals of a head: the choice of each rival's options, and the lift of the head over each rival."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import NamedTuple

import numpy as np
import xarray as xr

from headscope import heads
from headscope.analyse.ends import describe_ends
from headscope.analyse.uncertainty import Lift, Ratio
from headscope.score import HEAD, Score

UNTRAINED = "untrained"
"""The name of the rival that is the best head of an untrained model."""

SOURCE = "headscope"


@dataclass(frozen=True)
class ChosenRival:
    """A rival with options that were chosen on some folds.

    Attributes:
        title: A description of the rival.
        options: The chosen options by dimension, for each row.
        choosing: The sums of the rival on the folds on which its options were chosen.
        scored: The sums of the rival on the folds on which it is scored.
    """

    title: str
    options: Mapping[str, xr.DataArray]
    choosing: Ratio
    scored: Ratio


class Strongest(NamedTuple):
    """The strongest rival of each row: its name, the head's lift over it with the interval, and the detectable lift."""

    name: xr.DataArray
    lift: xr.DataArray
    lower: xr.DataArray
    upper: xr.DataArray
    detectable: xr.DataArray


def choose_rivals(
    table: xr.Dataset, score: Score, untrained: xr.Dataset | None, place: Mapping[str, xr.DataArray],
    choosing: slice = slice(None), scored: slice = slice(None),
) -> dict[str, ChosenRival]:  # fmt: skip
    """Choose the options of each rival of a score that applies to a table; return the rivals by name.

    Rivals are scored in the direction of the head. The best head of the untrained model is the last rival.

    Args:
        table: A head table with the sums by fold of the score and of its rivals.
        score: The score of the head.
        untrained: The head table of an untrained model; its rows are put in the order of `table`.
        place: The labels of the head, for each row.
        choosing: The folds on which options are chosen; by default all.
        scored: The folds on which the rivals are scored; by default all.
    """
    rivals = {
        r.name: (r.title, Ratio.of_rival(table, r).at(**place), r.options) for r in score.rivals if r.applies(table)
    }
    if untrained is not None:
        row = score.row_dimension(table)
        control = Ratio.of_heads(untrained.reindex({row: table[row]}) if row else untrained, score)
        dims = tuple(dim for dim in HEAD if dim in control.value.dims)
        rivals[UNTRAINED] = ("best head of the untrained model", control, dims)
    chosen = {}
    for name, (title, ratio, dims) in rivals.items():
        options = choose_best(ratio.half(choosing), dims) if dims else {}
        chosen[name] = ChosenRival(title, options, *(ratio.half(half).at(**options) for half in (choosing, scored)))
    return chosen


def select_strongest(lifts: Mapping[str, Lift], rivals: Mapping[str, ChosenRival]) -> Strongest:
    """Find the strongest rival of each row on the folds for choosing; return its name and the head's lift over it.

    There must be at least one rival.
    """

    def concat(parts: Iterable[xr.DataArray]) -> xr.DataArray:
        # Each rival has its own options, and the untrained model's head its own direction.
        return xr.concat([part.reset_coords(drop=True) for part in parts], dim="rival", coords="minimal")

    strongest = concat(rival.choosing.value for rival in rivals.values()).fillna(-1).argmax("rival")
    parts = ([lift.value, *lift.interval(), lift.detectable()] for lift in lifts.values())
    lift, lower, upper, detectable = (concat(part).isel(rival=strongest) for part in zip(*parts, strict=True))
    names = xr.DataArray(np.array(list(rivals))[strongest.values], dims=strongest.dims)
    return Strongest(names, lift, lower, upper, detectable)


def compare_lifts(table: xr.Dataset, score: Score, begin: str = "") -> tuple[xr.DataArray, xr.DataArray]:
    """Return two masks of the rows of a score: where every lift has an interval above 0, and where there is a lift.

    A rival without a score in a row is ignored, so the first mask is also True for a row without a lift. `begin` is the
    beginning of the variables' names, after the prefix of the score.
    """
    prefix = score.report_prefix
    names = (f"{prefix}{begin}lift_over_{rival}" for rival in (*(rival.name for rival in score.rivals), UNTRAINED))
    lifts = [name for name in names if name in table]
    none = xr.zeros_like(table[f"{prefix}reported_layer"], dtype=bool)
    above = reduce(and_, ((table[f"{name}_lower"] > 0) | table[name].isnull() for name in lifts), ~none)
    return above, reduce(or_, (table[name].notnull() for name in lifts), none)


def describe_lift(
    lift: Lift, name: str, rival: str, score: Score, there: xr.DataArray, where: str = ""
) -> dict[str, xr.Variable]:
    """Return the lift over a rival and the ends of its interval, as variables; `where` names the corpus."""
    beside = rival.removeprefix("the ")
    what = f"{score.measure} of the reported head less that of the {beside}, on the same {score.items}{where}"
    return describe_with_ends(name, lift.value, lift.interval(), what, score, there)


def describe_lift_over_strongest(
    name: str, strongest: Strongest, score: Score, there: xr.DataArray, where: str = ""
) -> dict[str, xr.Variable]:
    """Return the lift over the strongest rival and the ends of its interval, as variables; `where` names the corpus."""
    what = f"{score.measure} of the reported head less that of its strongest rival, on the same {score.items}{where}"
    return describe_with_ends(name, strongest.lift, (strongest.lower, strongest.upper), what, score, there)


def describe_lift_p(lifts: Iterable[Lift], there: xr.DataArray, where: str = "") -> xr.Variable:
    """Return the p-value of no lift over at least one rival, as a variable; NaN for rows that are not `there`.

    All rivals have to be beaten, so the largest of their p-values holds for all of them together, without correction
    (intersection-union test: Berger 1982).

    Args:
        lifts: The lift over each rival.
        there: The rows that have a head.
        where: The end of the description, which names the corpus.
    """
    p = xr.concat([lift.p_value().reset_coords(drop=True) for lift in lifts], dim="rival", coords="minimal")
    what = f"p-value of no lift of the reported head over at least one of its rivals{where}"
    return describe_values(p.max("rival").where(there), what, "probability")


def describe_with_ends(
    name: str, value: xr.DataArray, ends: tuple[xr.DataArray, xr.DataArray], what: str, score: Score,
    there: xr.DataArray, measure: str = "",
) -> dict[str, xr.Variable]:  # fmt: skip
    """Return a number and the ends of its interval, as variables; NaN for rows that are not `there`.

    `measure`, if any, is the ending of the name of the number.
    """
    names = f"{name}_{measure}".rstrip("_"), f"{name}_lower", f"{name}_upper"
    return {
        each: describe_values(values.where(there), text, f"share of {score.items}")
        for each, values, text in zip(names, (value, *ends), describe_ends(what).values(), strict=True)
    }


def describe_values(values: xr.DataArray, name: str, units: str) -> xr.Variable:
    """Return values as a variable of a head table, with the description `name`."""
    return heads.variable(values.values, [str(d) for d in values.dims], name=name, units=units, source=SOURCE)


def add_values(table: xr.Dataset, new: Mapping[str, xr.Variable]) -> xr.Dataset:
    """Add variables to a table; variables with text become coordinates, so that tables can be subtracted."""
    return table.assign(new).set_coords([name for name, values in new.items() if values.dtype.kind not in "iufb"])


def choose_best(ratio: Ratio, dims: tuple[str, ...] | None = None) -> dict[str, xr.DataArray]:
    """Return the coordinates of the best score of each row along `dims`, as `locate_largest` does.

    If each direction has its own items, a ratio with the items of both directions decides (`Ratio.over_directions`).
    """
    return locate_largest(ratio.over_directions().value, dims)


def locate_largest(scores: xr.DataArray, dims: tuple[str, ...] | None = None) -> dict[str, xr.DataArray]:
    """Return the coordinates of the largest value along `dims`; of equal values, the coordinates of the first.

    The result has an array of labels for each dimension. By default, `dims` are the dimensions of heads.
    """
    dims = dims or tuple(dim for dim in HEAD if dim in scores.dims)
    flat = scores.fillna(-1).stack(place=dims)
    where = flat.argmax("place")
    return {dim: flat[dim].isel(place=where).drop_vars(["place", *dims], errors="ignore") for dim in dims}
