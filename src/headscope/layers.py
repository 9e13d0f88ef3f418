"""The numbers of heads and layers: in a hybrid model only some layers have attention, and keep their numbers."""

import json
import re
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import xarray as xr

from headscope.errors import HeadscopeError, quote

ATTRIBUTE = "layers_without_attention"
"""The attribute of a table that lists its layers without attention and the kind of each, as JSON."""


def place_layers(table: xr.Dataset, numbers: Sequence[int], layers: int) -> xr.Dataset:
    """Add the layers without attention, filled with NaN, to a table of the layers with attention.

    Args:
        table: a table whose dimensions ``layer``, ``layer_other`` and ``layer_before`` have only layers with attention.
        numbers: the number of each layer with attention, counted from 1.
        layers: the number of all layers of the model.
    """
    every, own = np.arange(1, layers + 1), np.asarray(numbers)
    dims = [dim for dim in ("layer", "layer_other", "layer_before") if dim in table.dims]
    placed = table.assign_coords(dict.fromkeys(dims, own))
    return placed if np.array_equal(every, own) else placed.reindex(dict.fromkeys(dims, every))


def write_without_attention(kinds: Mapping[int, str]) -> dict[str, str]:
    """Return the attribute of a table that lists the layers without attention; an empty dict if there are none."""
    return {ATTRIBUTE: json.dumps({str(number): kind for number, kind in kinds.items()})} if kinds else {}


def read_without_attention(table: xr.Dataset) -> dict[int, str]:
    """Return the kind of each layer without attention, by its number, from the attributes of a table."""
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
    """Return numbers as a text with ranges: ``1-3, 5``."""
    starts = sorted(number for number in numbers if number - 1 not in numbers)
    ends = sorted(number for number in numbers if number + 1 not in numbers)
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def find_head(name: str, layers: int, heads: int) -> tuple[int, int]:
    """Return the layer and the head, both counted from 1, of a head's name: ``8-10`` or ``L7H9`` (which counts from 0).

    Raises:
        HeadscopeError: the name is not of one of these forms, or the model has no such head.
    """
    match = re.fullmatch(r"\s*(?:(\d{1,9})-(\d{1,9})|[Ll](\d{1,9})[Hh](\d{1,9}))\s*", str(name))
    last = f"{layers}-{heads}"
    if not match:
        came, forms = (
            quote(name) if isinstance(name, str) else repr(name),
            f"such as 1-1 or {last} (L0H0 counts from 0)",
        )
        raise HeadscopeError(f"{came} is not a head; write layer-head, both counted from 1, {forms}.")
    layer, head = (int(match[1]), int(match[2])) if match[1] else (int(match[3]) + 1, int(match[4]) + 1)
    if not (1 <= layer <= layers and 1 <= head <= heads):
        sizes = f"{layers} layers of {heads} heads, 1-1 to {last}"
        raise HeadscopeError(f"there is no head {layer}-{head}; the model has {sizes}.")
    return layer, head
