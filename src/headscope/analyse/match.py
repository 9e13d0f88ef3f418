"""Matches between the heads of a tuned model and the heads of the model before, by the distances between heads."""

import numpy as np
import scipy
import xarray as xr

from headscope.analyse.parts import apply_to_parts
from headscope.errors import TableError
from headscope.heads import Described, describe

SOURCE = "headscope; the assignment of Kuhn 1955, the distance of Clark et al. 2019, section 6"
DISTANCE = "js_distance_before"


def match_heads(table: xr.Dataset) -> xr.Dataset:
    """Match each head with a head of the model before tuning, by the distances between heads.

    Each head of one model is matched with a different head of the other model, so that the sum of the distances of all
    pairs is minimal.

    Args:
        table: A head table with ``js_distance_before``, the distances between the heads of both models.

    Returns:
        The table with, for each run and attention type, ``matched_layer`` and ``matched_head``; ``matched_distance``,
        the distance (nats) to this head, ``own_distance`` to the head with the same layer and number, and
        ``nearest_distance`` to the nearest of all heads; and ``matched_to_itself``, the share of heads that are matched
        with the head with the same layer and number.

    Raises:
        TableError: The table has no such distances.
    """
    if DISTANCE not in table:
        raise TableError(
            "the table has no distances to the heads of another model; measure the reducer `head_distances_before` "
            "with the model before."
        )
    return table.assign(apply_to_parts(lambda part: _match(part[DISTANCE]), table[[DISTANCE]]))


def _match(distances: xr.DataArray) -> xr.Dataset:
    """Match the heads of one run and attention type; return the variables, with NaN where there is no head."""
    layers, heads = distances.sizes["layer"], distances.sizes["head"]
    matrix = distances.transpose("layer", "head", "layer_before", "head_before").values
    matrix = matrix.reshape(layers * heads, layers * heads)
    known = np.flatnonzero(~np.isnan(matrix).all(1))
    rows, columns = (known[chosen] for chosen in scipy.optimize.linear_sum_assignment(matrix[np.ix_(known, known)]))
    by_head = {
        "matched_layer": (
            columns // heads + 1,
            "layer of the head of the model before that it is matched with",
            "number",
        ),
        "matched_head": (columns % heads + 1, "number of that head", "number"),
        "matched_distance": (matrix[rows, columns], "distance to the head that it is matched with", "nats"),
        "own_distance": (matrix[rows, rows], "distance to the head of the same place before", "nats"),
        "nearest_distance": (np.nanmin(matrix[rows], axis=1), "distance to the nearest head before", "nats"),
    }
    described: dict[str, Described] = {}
    for name, (values, what, units) in by_head.items():
        spread = np.full(layers * heads, np.nan)
        spread[rows] = values
        described[name] = spread.reshape(layers, heads), ("layer", "head"), what, units
    what = "heads that are matched with the head of the same place"
    described["matched_to_itself"] = (rows == columns).mean(), (), what, "share of heads"
    return xr.Dataset(describe(described, SOURCE))
