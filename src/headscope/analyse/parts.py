"""Results that are computed for each run and each attention type of a table separately."""

from collections.abc import Callable

import xarray as xr

PARTS = ("run", "attention_type")


def apply_to_parts(function: Callable[[xr.Dataset], xr.Dataset], table: xr.Dataset) -> xr.Dataset:
    """Apply a function to each run and each attention type of a table, and join the results.

    If one part has fewer layers, heads or steps than another, its results are filled with NaN.
    """
    for dim in PARTS:
        if dim in table.dims:
            parts = [apply_to_parts(function, table.sel({dim: label})) for label in table[dim].values]
            return xr.concat(parts, table[dim], join="outer", combine_attrs="override")
    return function(table).drop_vars(PARTS, errors="ignore")
