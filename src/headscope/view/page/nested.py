"""Numbers of a page as nested lists for JSON."""

import math
from typing import Any

import xarray as xr


def round_number(value: float) -> float | None:
    """Round a number to six significant digits, to make the page smaller; None if the number is not finite."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def list_by_head(values: xr.DataArray, *leading: str) -> Any:
    """Return values as nested lists ``[leading...][attention_type][layer][head]``; a missing dimension has length 1."""
    for dim in (*leading, "attention_type"):
        if dim not in values.dims:
            values = values.expand_dims(dim)
    return _round(values.transpose(*leading, "attention_type", "layer", "head").astype(float).values.tolist())


def _round(values: Any) -> Any:
    return [_round(part) for part in values] if isinstance(values, list) else round_number(values)
