"""Sets of heads that are disabled together, and random sets to compare them with."""

from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from math import comb, prod
from operator import itemgetter
from random import Random

from headscope.analyse.lesions import BY_LAYER
from headscope.capture.model.model import Model
from headscope.intervene.ablation import SET, Unit
from headscope.intervene.selected_heads import Selection, select_heads


def unite_heads(model: Model, name: str, heads: Iterable[str]) -> Unit:
    """Unite heads into one unit.

    Raises:
        HeadscopeError: The model has no such head.
    """
    return Unit(name, SET, select_heads(model, heads))


def count_random_sets(model: Model, unit: Unit, match: str = BY_LAYER) -> int:
    """Return the number of other sets that `draw_random_sets` can draw."""
    return prod(comb(len(pool), chosen) for pool, chosen in _list_pools(model, unit.selection, match)) - 1


def draw_random_sets(model: Model, unit: Unit, seed: int = 0, match: str = BY_LAYER) -> Iterator[Unit]:
    """Yield all other sets that match a set, in random order; they may contain heads of the set.

    They match the set by ``layer``, with the same number of heads in each layer, or by ``size``, with the same number
    in any layers. If the set was also drawn at random, it cannot be told from them.
    """
    pools, random = _list_pools(model, unit.selection, match), Random(f"{seed} {unit.name}")
    seen = {tuple(sorted((layer, head) for layer, heads in unit.selection.items() for head in heads))}
    for number in range(1, count_random_sets(model, unit, match) + 1):
        while (heads := tuple(sorted(head for pool, count in pools for head in random.sample(pool, count)))) in seen:
            pass
        seen.add(heads)
        by_layer = groupby(heads, key=itemgetter(0))
        yield Unit(
            f"{unit.name} random {number}", SET, {layer: tuple(head for _, head in group) for layer, group in by_layer}
        )


def _list_pools(model: Model, chosen: Selection, match: str) -> list[tuple[list[tuple[tuple[str, int], int]], int]]:
    """Return the heads to draw from, and the number to draw: for each layer of a set, or for all heads together."""
    every = {
        (kind, layer): [((kind, layer), head) for head in range(model.shape.heads[kind])]
        for kind, layers in model.attention_layers.items()
        for layer in layers
    }
    if match == BY_LAYER:
        return [(every[layer], len(heads)) for layer, heads in sorted(chosen.items())]
    return [([*chain.from_iterable(every.values())], sum(map(len, chosen.values())))]
