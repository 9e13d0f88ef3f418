"""The average attention maps of all heads, one byte for each cell: data for ``scripts/thumbnails.js``."""

import base64
from typing import Any

import numpy as np
import xarray as xr

DIMS = ("attention_type", "layer", "head", "query_bin", "key_bin")
STEPS = 254
MISSING = 255
"""The byte of a cell without a value."""


def find_maps(table: xr.Dataset) -> xr.DataArray | None:
    """Return the first variable of a head table with an average map for each head; None if the table has none."""
    return next((values for values in table.data_vars.values() if {*DIMS[1:]} <= {*values.dims}), None)


def describe_maps(table: xr.Dataset) -> dict[str, Any] | None:
    """Return the average maps of a head table for the page, or None for a table without maps.

    Each cell holds the square root of its value, in 254 steps: most values are small, and must remain distinguishable.
    """
    maps = find_maps(table)
    if maps is None:
        return None
    if "attention_type" not in maps.dims:
        maps = maps.expand_dims("attention_type")
    values = maps.transpose(*DIMS).values
    known = np.isfinite(values)
    roots = np.sqrt(np.clip(np.where(known, values, 0), 0, 1))
    cells = np.where(known, np.rint(STEPS * roots), MISSING).astype(np.uint8)
    return {
        "bins": maps.sizes["key_bin"],
        "cells": base64.b64encode(cells.tobytes()).decode("ascii"),
        "about": f"{str(maps.attrs['long_name'])[:1].upper()}{str(maps.attrs['long_name'])[1:]}.",
        "units": str(maps.attrs["units"]),
        "source": str(maps.attrs["source"]),
    }
