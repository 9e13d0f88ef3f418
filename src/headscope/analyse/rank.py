"""The heads with the largest values."""

import numpy as np
import xarray as xr

from headscope.errors import TableError
from headscope.heads import head_name

PLACE = ("attention_type", "layer", "head")
"""The dimensions that identify a head; the first exists only if a model has several attention types."""


def values_of_heads(table: xr.Dataset, variable: str) -> xr.DataArray:
    """Return a variable with one value for each head.

    Its dimensions are ``attention_type`` (if there are several), ``layer`` and ``head``.

    Raises:
        TableError: The variable is missing, or does not have one value for each head.
    """
    if variable not in table:
        names = [
            str(name) for name, v in table.data_vars.items() if set(v.dims) - {"attention_type"} == {"layer", "head"}
        ]
        raise TableError(f"the head table has no variable {variable!r}; of each head it has {', '.join(names)}.")
    values = table[variable]
    dims = PLACE if "attention_type" in values.dims else PLACE[1:]
    if set(values.dims) != set(dims):
        raise TableError(
            f"{variable!r} is not one value for each head; its dimensions are {', '.join(map(str, values.dims))}."
        )
    return values.transpose(*dims)


def list_highest(table: xr.Dataset, variable: str, count: int = 3) -> list[tuple[str, float]]:
    """List the heads with the largest values of a variable over layer and head, by name.

    In an encoder-decoder a name begins with its attention type: ``decoder 2-3``. Heads without a value are left out, so
    there may be fewer than `count`.

    Raises:
        TableError: The variable is missing, or does not have one value for each head.
    """
    return rank_heads(values_of_heads(table, variable))[:count]


def rank_heads(values: xr.DataArray) -> list[tuple[str, float]]:
    """Return the name and the value of each head with a value, the largest first; equal values keep their order.

    Args:
        values: One value for each head, with the dimensions ``layer`` and ``head``, and ``attention_type`` if there are
            several.
    """
    values = values.transpose(*(dim for dim in PLACE if dim in values.dims))
    flat = values.values
    ranked = []
    for place in np.argsort(-flat, axis=None, kind="stable"):  # NaN comes last
        where = np.unravel_index(place, flat.shape)
        if np.isnan(flat[where]):
            break
        *attention_type, layer, head = (values[dim].values[i] for dim, i in zip(values.dims, where, strict=True))
        ranked.append((" ".join([*map(str, attention_type), head_name(int(layer), int(head))]), float(flat[where])))
    return ranked
