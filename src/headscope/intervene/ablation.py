"""The units that an evaluation disables, such as a head, a layer or a key/value head, and their placebos."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from headscope.analyse.effect_table import TOTAL
from headscope.capture.model.model import Model
from headscope.intervene.selected_heads import Selection, select_heads

HEAD, LAYER, GROUP, PAIR, SET = "head", "layer", "group", "pair", "set"
"""The kinds of units: a query head, a layer, all query heads of a key/value head, two heads, any set of heads."""


@dataclass(frozen=True)
class Unit:
    """A set of heads that are disabled together.

    Attributes:
        name: The name, as `select_heads` reads it; for a pair, two such names joined by a plus; for a set, any name.
        kind: ``head``, ``layer``, ``group``, ``pair`` or ``set``.
        selection: The heads of the unit.
    """

    name: str
    kind: str
    selection: Selection


@dataclass(frozen=True)
class Ablation:
    """One run of an evaluation, with a unit disabled or a placebo in its place.

    Attributes:
        unit: The unit that is disabled.
        how: The kind of output that replaces the unit's own, one of `headscope.intervene.ways.WAYS`.
        placebo: The number of the placebo that runs in place of the unit, counted from 1; 0 for the unit itself.
        path: The path on which the change reaches the output, one of `headscope.analyse.effect_table.PATHS`.
    """

    unit: Unit
    how: str
    placebo: int = 0
    path: str = TOTAL


def list_units(model: Model, names: Sequence[str] = ()) -> list[Unit]:
    """List the named units of a model; by default all its heads, layers and key/value heads.

    By default a key/value head is left out if it has a single query head, or all query heads of its layer: it would be
    the same unit as the head or the layer.

    Raises:
        HeadscopeError: The model has no such head, layer or key/value head.
    """
    units = [_make_unit(model, name) for name in names or _name_units(model)]
    return [*{unit.name: unit for unit in units}.values()]


def list_heads(model: Model) -> list[Unit]:
    """List all heads of a model."""
    return [unit for unit in list_units(model) if unit.kind == HEAD]


def pair_units(heads: Sequence[Unit]) -> list[Unit]:
    """Make a unit of each pair of the given heads."""
    return [
        Unit(f"{first.name}+{second.name}", PAIR, _merge(first.selection, second.selection))
        for first, second in combinations(heads, 2)
    ]


def _name_units(model: Model) -> Iterator[str]:
    shape = model.shape
    for attention_type, numbers in shape.attention_layers.items():
        prefix = f"{attention_type} " if len(model.layers) > 1 else ""
        heads = shape.heads[attention_type]
        yield from (f"{prefix}{layer}-{head}" for layer in numbers for head in range(1, heads + 1))
        yield from (f"{prefix}{layer}" for layer in numbers)
        for layer in numbers:
            groups = shape.count_key_value_heads(attention_type, layer)
            if 1 < groups < heads:
                yield from (f"{prefix}{layer}-kv{group}" for group in range(1, groups + 1))


def _make_unit(model: Model, name: str) -> Unit:
    """Make the unit with a name; the name is written as in tables, such as ``3-1`` for ``03-1``."""
    kind = GROUP if "kv" in name else HEAD if "-" in name else LAYER
    plain = re.sub(r"\d+", lambda number: str(int(number[0])), " ".join(name.split()))
    return Unit(plain, kind, select_heads(model, [name]))


def _merge(first: Selection, second: Selection) -> Selection:
    layers = sorted({*first, *second})
    return {layer: tuple(sorted({*first.get(layer, ()), *second.get(layer, ())})) for layer in layers}


PLACEBOS = {HEAD: 1, GROUP: 1, LAYER: 2, PAIR: 0, SET: 0}
"""The factor by which the number of placebos is multiplied, for each kind of unit.

A layer gets twice the number: the spread of placebos is pooled over the units of a layer, and a layer is alone in it.
"""


def list_ablations(
    units: Sequence[Unit], ways: Sequence[str], placebos: Mapping[str, int], paths: Sequence[str] = (TOTAL,)
) -> list[Ablation]:
    """List the ablations of each unit, by each way of disabling it and on each path.

    On the total path, each ablation is followed by its placebos. `placebos` has their number for each way (0 if the way
    is missing), which is multiplied by the factor in `PLACEBOS`.
    """
    return [
        Ablation(unit, how, placebo, path)
        for unit in units
        for how in ways
        for path in paths
        for placebo in range((placebos.get(how, 0) * PLACEBOS[unit.kind] if path == TOTAL else 0) + 1)
    ]
