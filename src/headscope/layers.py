"""The numbers of layers: in a hybrid model only some layers have attention, and each keeps its number in the model."""

import json
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import xarray as xr

from headscope.errors import HeadscopeError

ATTRIBUTE = "layers_without_attention"
"""The attribute of a table that lists its layers without attention and the kind of each, as JSON."""


def place_layers(table: xr.Dataset, numbers: Sequence[int], layers: int) -> xr.Dataset:
    """Return a table of the layers with attention as a table of all layers, with NaN in the others.

    The dimensions ``layer``, ``layer_other`` and ``layer_before`` of `table` have an entry for each of `numbers`.
    """
    every, own = np.arange(1, layers + 1), np.asarray(numbers)
    dims = [dim for dim in ("layer", "layer_other", "layer_before") if dim in table.dims]
    placed = table.assign_coords(dict.fromkeys(dims, own))
    return placed if np.array_equal(every, own) else placed.reindex(dict.fromkeys(dims, every))


def write_without_attention(kinds: Mapping[int, str]) -> dict[str, str]:
    """Return the attribute of a table whose model has layers without attention; nothing for other models."""
    return {ATTRIBUTE: json.dumps({str(number): kind for number, kind in kinds.items()})} if kinds else {}


def read_without_attention(table: xr.Dataset) -> dict[int, str]:
    """Return the layers without attention of a table's model, by number, and the kind of each."""
    return {int(number): str(kind) for number, kind in json.loads(table.attrs.get(ATTRIBUTE, "{}")).items()}


def describe_without_attention(kinds: Mapping[int, str]) -> str:
    """Return a sentence on the layers without attention; empty if all layers have attention.

    For example: *Layers 1-3, 5-7 have no attention (linear attention).*
    """
    if not kinds:
        return ""
    names = ", ".join(dict.fromkeys(kind.replace("_", " ") for kind in kinds.values()))
    several = len(kinds) > 1
    return f"Layer{'s' * several} {list_ranges([*kinds])} {'have' if several else 'has'} no attention ({names})."


def refuse_layer(kinds: Mapping[int, str], layer: int) -> None:
    """Raise an error for a layer without attention."""
    if layer in kinds:
        raise HeadscopeError(
            f"layer {layer} has no attention ({kinds[layer].replace('_', ' ')}); name a head of another layer than "
            f"{list_ranges([*kinds])}."
        )


def list_ranges(numbers: Collection[int]) -> str:
    """Return numbers as ranges: 1-3, 5."""
    starts = sorted(number for number in numbers if number - 1 not in numbers)
    ends = sorted(number for number in numbers if number + 1 not in numbers)
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
