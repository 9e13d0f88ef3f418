"""Sets of heads that are disabled together, and random sets to compare them with."""

from collections.abc import Iterable, Mapping
from random import Random

from headscope.analyse.lesions import BY_LAYER
from headscope.capture.model.model import Model
from headscope.errors import HeadscopeError
from headscope.intervene.ablation import SET, Unit
from headscope.intervene.selected_heads import Selection, select_heads


def unite_heads(model: Model, name: str, heads: Iterable[str]) -> Unit:
    """Some heads as one unit.

    Raises:
        HeadscopeError: the model has no such head.
    """
    return Unit(name, SET, select_heads(model, heads))


def draw_random_sets(model: Model, unit: Unit, count: int, seed: int = 0, match: str = BY_LAYER) -> list[Unit]:
    """So many random sets with as many heads as a set, none of which is in the set.

    They match the set by ``layer``, with as many heads in each layer (where a layer has too few others, the rest comes
    from the nearest layers that have some), or by ``size``, with as many heads in whatever layers.

    Raises:
        HeadscopeError: the model has too few heads that are not in the set.
    """
    chosen = unit.selection
    others: Mapping[tuple[str, int], list[int]] = {
        (kind, layer): [head for head in range(model.shape.heads[kind]) if head not in chosen.get((kind, layer), ())]
        for kind, layers in model.attention_layers.items()
        for layer in layers
    }
    size, left = sum(map(len, chosen.values())), sum(map(len, others.values()))
    if left < size:
        raise HeadscopeError(
            f"the set {unit.name!r} has {size} heads, and the model only {left} others for random sets of as many; "
            "name fewer heads."
        )
    draw = _draw_by_layer if match == BY_LAYER else _draw_by_size
    return [
        Unit(f"{unit.name} random {number}", SET, draw(chosen, others, Random(f"{seed} {unit.name} {number}")))
        for number in range(1, count + 1)
    ]


def _draw_by_size(chosen: Selection, others: Mapping[tuple[str, int], list[int]], random: Random) -> Selection:
    """Random heads, as many as are chosen."""
    every = [(layer, head) for layer, heads in others.items() for head in heads]
    placed: dict[tuple[str, int], list[int]] = {}
    for layer, head in random.sample(every, sum(map(len, chosen.values()))):
        placed.setdefault(layer, []).append(head)
    return _sort(placed)


def _draw_by_layer(chosen: Selection, others: Mapping[tuple[str, int], list[int]], random: Random) -> Selection:
    """Random heads, as many as are chosen in each layer."""
    left = {layer: random.sample(heads, len(heads)) for layer, heads in others.items()}
    placed: dict[tuple[str, int], list[int]] = {}
    for (kind, layer), heads in sorted(chosen.items()):
        # The nearest layers first; of the same attention type before all others.
        near = sorted(left, key=lambda other: (other[0] != kind, abs(other[1] - layer), other[1]))
        for _ in heads:
            place = next(other for other in near if left[other])
            placed.setdefault(place, []).append(left[place].pop())
    return _sort(placed)


def _sort(placed: Mapping[tuple[str, int], list[int]]) -> Selection:
    return {place: tuple(sorted(heads)) for place, heads in sorted(placed.items())}
