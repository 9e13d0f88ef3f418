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
    """Return the number of sets that `draw_random_sets` yields."""
    return prod(comb(len(pool), chosen) for pool, chosen in _list_pools(model, unit.selection, match)) - 1


def draw_random_sets(model: Model, unit: Unit, seed: int = 0, match: str = BY_LAYER) -> Iterator[Unit]:
    """Yield all sets of heads that match a given set, except this set, in random order.

    A set matches by ``layer`` if it has the same number of heads in each layer, and by ``size`` if it has the same
    total number of heads. Both sets may have heads in common. If the heads of the given set were also drawn at random,
    all these sets are equally probable.
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
    """List the pools from which the heads of a set are drawn: the heads of each pool, and the number to draw.

    By ``layer``, each layer of the given set is a pool. By ``size``, all heads of the model are one pool.
    """
    every = {
        (kind, layer): [((kind, layer), head) for head in range(model.shape.heads[kind])]
        for kind, layers in model.attention_layers.items()
        for layer in layers
    }
    if match == BY_LAYER:
        return [(every[layer], len(heads)) for layer, heads in sorted(chosen.items())]
    return [([*chain.from_iterable(every.values())], sum(map(len, chosen.values())))]
