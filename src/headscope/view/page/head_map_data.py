"""The map of the heads of a page, and the nearest heads of each head: data for ``scripts/headmap.js``."""

from typing import Any

import numpy as np
import xarray as xr

from headscope.view.page.nested import list_by_head, round_number

NEIGHBOURS = 5
"""The number of nearest heads that are listed for each head."""

DISTANCE = "js_distance"


def describe_map(table: xr.Dataset, distances: xr.Dataset | None) -> dict[str, Any] | None:
    """Return the coordinates, clusters and neighbours of the heads, or None for a table without a map.

    Args:
        table: A head table with the variables of `headscope.analyse.add_head_map`.
        distances: A table with ``js_distance``, in nats; without it, no neighbours are listed.
    """
    if "head_map_x" not in table:
        return None
    stress = np.atleast_1d(table["head_map_stress"].values)
    return {
        "x": list_by_head(table["head_map_x"]),
        "y": list_by_head(table["head_map_y"]),
        "clusters": list_by_head(table["cluster"]),
        "stress": [round_number(float(each)) for each in stress],
        "documents": int(np.max(table["head_map_documents"].values)),
        "neighbours": [] if distances is None or DISTANCE not in distances else _list_neighbours(distances[DISTANCE]),
    }


def _list_neighbours(distances: xr.DataArray) -> Any:
    """Return, at ``[attention_type][layer][head]``, the layer and head (from 0) and distance of each nearest head."""
    if "attention_type" not in distances.dims:
        distances = distances.expand_dims("attention_type")
    values = distances.transpose("attention_type", "layer", "head", "layer_other", "head_other").values
    types, layers, heads = values.shape[:3]
    flat = values.reshape(types, layers * heads, layers * heads).astype(float)
    flat[:, np.arange(layers * heads), np.arange(layers * heads)] = np.nan  # a head is not its own neighbour
    nearest = np.argsort(flat, axis=-1, kind="stable")[..., :NEIGHBOURS]
    neighbours = [
        [_list_known(row, order, heads) for row, order in zip(matrix, orders, strict=True)]
        for matrix, orders in zip(flat, nearest, strict=True)
    ]
    return [[rows[layer * heads : (layer + 1) * heads] for layer in range(layers)] for rows in neighbours]


def _list_known(row: np.ndarray, order: np.ndarray, heads: int) -> list[list[int | float | None]]:
    """Return layer, head and distance of each head in `order`; heads without a distance are left out."""
    return [[int(at) // heads, int(at) % heads, round_number(float(row[at]))] for at in order if np.isfinite(row[at])]
