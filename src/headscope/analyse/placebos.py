"""A test whether an adapter changes a head more than any head is changed by placebo adapters."""

import math
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import xarray as xr

from headscope.analyse.comparable import check_measured_alike, name_table, runs_of, split_runs
from headscope.analyse.report import UNDECIDED
from headscope.analyse.uncertainty import ALPHA, Ratio
from headscope.errors import TableError
from headscope.heads import EDITED, head_name
from headscope.identity import ADAPTER_OF, PLACEBO_OF
from headscope.score import HEAD, find_score

FEWEST = math.ceil(1 / ALPHA) - 1
"""The smallest number of placebos with which a p-value can be as low as `ALPHA`."""

CHANGED, UNCHANGED = "changed", "not shown to change"
"""The verdicts on a head; another one is `UNDECIDED`."""

METHOD = (
    "The change of a score is counted in half widths of the 95 % interval of the score before, where it has sums by "
    "fold, and then in the mean, over the adapter and its placebos, of the largest change of any head. p: the share of "
    "the adapter and its placebos that change any head, in any row, direction and score, by at least as much (Westfall "
    f"and Young 1993). Changed: p is at most {ALPHA:g}, which takes {FEWEST} placebos."
)
"""A description of how the numbers are computed; stored with them."""

_ROUNDED = 1e-9
"""A change that is smaller by at most this share counts as equally large: the difference comes from rounding."""

Place = Mapping[str, str | int]


def compare_with_placebos(
    before: xr.Dataset, after: xr.Dataset, placebos: Sequence[xr.Dataset], values: Sequence[tuple[str, Place]]
) -> xr.Dataset:
    """Compare the change of each head by an adapter with the largest change of any head by each placebo.

    If the adapter were as random as its placebos, the adapter and each placebo would be equally likely to have the
    largest change of all.

    Args:
        before: The head table of the model without the adapter.
        after: The head table of the model with the adapter.
        placebos: The head tables of placebos of this adapter; a table may have several runs.
        values: The names of the variables that are compared, each with a selection of labels by dimension.

    Returns:
        With the dimension ``change``, the largest first: ``score``, ``row``, ``place`` (the head, such as ``3-1``),
        ``direction``, ``before``, ``after``, ``size``, ``p`` and ``verdict``. ``largest`` has the size of the largest
        change of each placebo (dimension ``placebo``). The attributes are ``adapter``, ``corpus`` and ``method``.

    Raises:
        TableError: A table is of other heads, texts or edits, of another adapter, or lacks a variable; `before` or
            `after` holds runs; a placebo is there twice; or no head has a value in all tables.
    """
    names = name_table(before, "the table before"), name_table(after, "the table after")
    _check_adapter(before, after, names)
    check_measured_alike(before, names[0], after, names[1])
    tables = [run for table in placebos for run in _check_placebos(after, names[1], table)]
    weights = [run["weights_sha256"] for table in placebos for run in runs_of(table) or [table.attrs]]
    if len({*weights}) < len(weights):
        raise TableError("a placebo is there twice; measure placebos with different seeds.")
    parts = []
    for variable, place in values:
        levels = [_at(table, variable, place) for table in (before, after, *tables)]
        start, *others = (each.transpose(*levels[0].dims) for each in xr.align(*levels, join="inner"))
        change = abs(np.stack([each.values for each in others]) - start.values)
        sizes = change / _find_units(before, variable, start, place)
        sizes[:, ~np.isfinite(sizes).all(0)] = np.nan
        if np.isnan(sizes).all():
            continue
        mean = np.nanmax(sizes.reshape(len(sizes), -1), axis=1).mean()
        parts.append(_lay_out(variable, place, start, others[0], sizes / (mean or 1)))
    if not parts:
        raise TableError(f"no head has a value in {names[0]}, {names[1]} and all placebos; compare other variables.")
    every = xr.concat(parts, dim="change")
    sizes = every["sizes"].values
    largest, size = sizes[:, 1:].max(0), sizes[:, 0]
    p = (1 + (largest >= size[:, None] * (1 - _ROUNDED)).sum(1)) / (1 + len(largest))
    decided = np.where(p <= ALPHA, CHANGED, UNCHANGED).astype(object)
    verdict = decided if len(tables) >= FEWEST else np.full(len(p), UNDECIDED, dtype=object)
    columns = {"size": ("change", size), "p": ("change", p), "verdict": ("change", verdict)}
    ordered = every.drop_vars("sizes").assign(columns).isel(change=np.argsort(-size, kind="stable"))
    about = {
        "adapter": str(after.attrs.get("model", "")),
        "corpus": str(after.attrs.get("corpus", "")),
        "method": METHOD,
    }
    return ordered.assign(largest=("placebo", largest)).assign_attrs(about)


def _lay_out(variable: str, place: Place, start: xr.DataArray, after: xr.DataArray, sizes: np.ndarray) -> xr.Dataset:
    """Lay out the changes of a variable as rows, one for each value that has a change in all tables."""
    known = np.isfinite(sizes).all(0).ravel()
    dims = [str(dim) for dim in start.dims]
    labels = list(product(*(start[dim].values.tolist() for dim in dims)))
    places = [{**place, **dict(zip(dims, each, strict=True))} for each, has in zip(labels, known, strict=True) if has]
    texts = {
        "score": [variable for _ in places],
        "row": [" ".join(str(label) for dim, label in each.items() if dim not in HEAD) for each in places],
        "place": [
            " ".join(filter(None, (str(each.get("attention_type", "")), head_name(each["layer"], each["head"]))))
            for each in places
        ],
        "direction": [str(each.get("direction", "")) for each in places],
    }
    columns = {name: ("change", np.array(column, dtype=object)) for name, column in texts.items()}
    levels = {"before": start, "after": after}
    columns |= {name: ("change", level.values.ravel()[known]) for name, level in levels.items()}
    return xr.Dataset({**columns, "sizes": (("change", "adapter"), sizes.reshape(len(sizes), -1)[:, known].T)})


def _find_units(before: xr.Dataset, variable: str, start: xr.DataArray, place: Place) -> np.ndarray:
    """Return the unit of each change: half the width of the interval of the value before.

    The unit is 1 if the variable has no sums by fold, and NaN if the interval has no width.
    """
    score = find_score(before, variable)
    if score is None or not score.is_ratio or not {*score.numerator, *score.denominator} <= {*before.data_vars}:
        return np.ones(start.shape)
    lower, upper = Ratio.of_heads(before.reset_coords(drop=True), score).interval()
    half = ((upper - lower) / 2).sel(dict(place), drop=True)
    units: np.ndarray = half.where(half > 0).broadcast_like(start).transpose(*start.dims).values
    return units


def _at(table: xr.Dataset, variable: str, place: Place) -> xr.DataArray:
    """Select the values of a variable at the labels in `place`, without coordinates that do not label an axis.

    Raises:
        TableError: The table lacks the variable.
    """
    if variable not in table:
        raise TableError(
            f"{name_table(table, 'a table')} has no variable {variable!r}; measure the same of the model, the adapter "
            "and its placebos."
        )
    values = table[variable].reset_coords(drop=True)
    return values.sel(dict(place), drop=True).astype(float)


def _check_adapter(before: xr.Dataset, after: xr.Dataset, names: tuple[str, str]) -> None:
    """Raise an error unless the tables are of one model, first without and then with an adapter.

    Raises:
        TableError: A table holds runs, `after` has no adapter, or its adapter was trained for another model.
    """
    for table, name in zip((before, after), names, strict=True):
        if "run" in table.dims:
            raise TableError(
                f"{name} holds {table.sizes['run']} runs, and placebos are of one adapter; give the table of one model."
            )
    known = str(after.attrs.get(ADAPTER_OF, "")).split()
    if not known and "adapter_of" not in after.attrs:
        raise TableError(
            f"{names[1]} is of {after.attrs.get('model')!r}, which has no adapter, and placebos are of one; give the "
            "table of a model with an adapter."
        )
    if known and before.attrs.get("weights_sha256") not in known:
        raise TableError(
            f"the adapter of {names[1]} was trained for {after.attrs.get('adapter_of', 'another model')!r}, whose "
            f"weights are not those that {names[0]} is of ({before.attrs.get('model')!r}); measure the model that it "
            "was trained for."
        )


def _check_placebos(after: xr.Dataset, name: str, table: xr.Dataset) -> list[xr.Dataset]:
    """Check that a table is of placebos of the adapter of `after`; return a table for each placebo.

    Raises:
        TableError: The table has no placebos, has placebos of another adapter, or has other heads, texts or edits.
    """
    here = name_table(table, "the table of the placebos")
    if PLACEBO_OF not in table.attrs:
        raise TableError(
            f"{here} is of {table.attrs.get('model')!r}, which is no placebo; measure placebos of the adapter with "
            "`headscope measure --placebos`."
        )
    if table.attrs[PLACEBO_OF] != after.attrs.get("weights_sha256"):
        raise TableError(
            f"{here} has placebos of another adapter than that of {name}; measure placebos of "
            f"{after.attrs.get('model')!r}, loaded in the same way."
        )
    check_measured_alike(after, name, table, here)
    if table.attrs.get(EDITED) != after.attrs.get(EDITED):
        raise TableError(f"{here} and {name} were measured within different edits; measure both within the same ones.")
    return split_runs(table)
