"""Heads of a model by name: query heads, groups of query heads that share keys and values, and whole layers."""

import re
from collections.abc import Mapping
from typing import TypeAlias

from headscope.capture.model.model import Model
from headscope.errors import HeadscopeError, quote
from headscope.heads import head_name
from headscope.intervene.head_names import HeadNames, list_names
from headscope.layers import find_head, refuse_layer

Selection: TypeAlias = Mapping[tuple[str, int], tuple[int, ...]]
"""The selected query heads of each layer, counted from 0. A key is an attention type and a layer, counted from 1."""


def select_heads(model: Model, names: HeadNames) -> Selection:
    """Return the heads of a model with the given names.

    The name ``3-1`` means the first head of the third layer, ``3`` (or the number 3) the whole layer, and ``3-kv1`` its
    first key/value head with all query heads that share it. If a model has several attention types, the name begins
    with one of them: ``cross 3-1``. An attention type alone, ``cross``, means all of its layers. A single string may
    hold several names: ``3-1,4-10``.

    Raises:
        HeadscopeError: No head is named, or the names have another form (`list_names`), or the model has no such head,
            group, layer or attention type, or a layer has no attention.
    """
    shape = model.sizes
    selected: dict[tuple[str, int], set[int]] = {}
    for name in list_names(names):
        if (attention_type := name.strip()) in shape.layers:
            selected |= _select_type(model, attention_type)
            continue
        attention_type, where = _split(model, name)
        layers, heads = shape.layers[attention_type], shape.heads[attention_type]
        if match := re.fullmatch(r"(\d{1,9})(?:-kv(\d{1,9}))?", where):
            layer, group = int(match[1]), int(match[2] or 1)
            if not 1 <= layer <= layers:
                raise HeadscopeError(f"there is no layer {layer}; the model has {layers} layers, counted from 1.")
            groups = shape.count_key_value_heads(attention_type, layer)
            if not 1 <= group <= groups:
                raise HeadscopeError(
                    f"there is no key/value head {where}; the layer has {groups}, {layer}-kv1 to {layer}-kv{groups}."
                )
            shared = heads // groups
            chosen = range((group - 1) * shared, group * shared) if match[2] else range(heads)
        else:
            layer, head = find_head(where, layers, heads)
            chosen = range(head - 1, head)
        refuse_layer(shape.without_attention, layer)
        selected.setdefault((attention_type, layer), set()).update(chosen)
    if not selected:
        raise HeadscopeError("no head is named; give heads such as 3-1, or layers such as 3.")
    return {layer: tuple(sorted(selected[layer])) for layer in sorted(selected)}


def _select_type(model: Model, attention_type: str) -> dict[tuple[str, int], set[int]]:
    """Return all heads of an attention type, in the layers that have attention."""
    shape = model.sizes
    numbers = (layer for layer in range(1, shape.layers[attention_type] + 1) if layer not in shape.without_attention)
    return {(attention_type, layer): {*range(shape.heads[attention_type])} for layer in numbers}


def name_selection(model: Model, selection: Selection) -> list[str]:
    """Return the names of selected heads; a layer whose heads are all selected gives the name of the layer instead."""
    names = []
    for (attention_type, layer), heads in selection.items():
        prefix = f"{attention_type} " if len(model.layers) > 1 else ""
        whole = len(heads) == model.shape.heads[attention_type]
        names += [f"{prefix}{layer}"] if whole else [f"{prefix}{head_name(layer, head + 1)}" for head in heads]
    return names


def _split(model: Model, name: str) -> tuple[str, str]:
    """Split a name into its attention type (by default the only type of the model) and the rest of the name."""
    match = re.fullmatch(r"\s*(?:([a-z]+)\s+)?(.*?)\s*", name, flags=re.DOTALL)
    stated, where = match.groups() if match else (None, name)
    types = list(model.layers)
    if stated is None and len(types) > 1:
        raise HeadscopeError(
            f"{quote(name)} is a head of several: {model.name!r} has {', '.join(types)} attention; write one of these "
            f"before it, as in {types[0]} 1-1."
        )
    if stated is not None and stated not in types:
        raise HeadscopeError(f"{model.name!r} has no {stated!r} attention; it has {', '.join(types)}.")
    return stated or types[0], where
