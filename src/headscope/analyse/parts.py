"""What is worked out for each run and each attention type of a table by itself."""

from collections.abc import Callable

import xarray as xr

PARTS = ("run", "attention_type")


def apply_to_parts(function: Callable[[xr.Dataset], xr.Dataset], table: xr.Dataset) -> xr.Dataset:
    """The results of a function of one run and one attention type, side by side.

    Where a part has fewer layers, heads or steps than another, the rest of its results is NaN.
    """
    for dim in PARTS:
        if dim in table.dims:
            parts = [apply_to_parts(function, table.sel({dim: label})) for label in table[dim].values]
            return xr.concat(parts, table[dim], join="outer", combine_attrs="override")
    return function(table).drop_vars(PARTS, errors="ignore")
