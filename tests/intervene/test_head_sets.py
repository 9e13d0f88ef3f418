"""Random sets of heads: as many in each layer, any heads, each set once and never the set itself."""

from collections import Counter
from itertools import islice
from math import comb

import pytest

import planted
from headscope.capture.model.model import Model
from headscope.intervene.head_sets import count_random_sets, draw_random_sets, unite_heads

LAYERS, HEADS = 3, 5


@pytest.fixture(scope="module")
def model() -> Model:
    model = planted.plant({})
    assert (model.layers["encoder"], model.shape.heads["encoder"]) == (LAYERS, HEADS)
    return model


def test_random_sets_are_all_others_with_as_many_heads_in_each_layer(model: Model) -> None:
    unit = unite_heads(model, "obj", ["1-2", "3-1", "3-2"])
    drawn = [*draw_random_sets(model, unit, seed=5)]
    assert [each.name for each in drawn[:2]] == ["obj random 1", "obj random 2"]
    for each in drawn:
        assert {place: len(heads) for place, heads in each.selection.items()} == {("encoder", 1): 1, ("encoder", 3): 2}
    assert len({str(each.selection) for each in drawn} - {str(unit.selection)}) == HEADS * comb(HEADS, 2) - 1
    assert count_random_sets(model, unit) == len(drawn)
    # Heads of the set are drawn as often as any.
    assert {*Counter(each.selection["encoder", 1] for each in drawn).values()} == {10, 9}
    assert [*islice(draw_random_sets(model, unit, seed=5), 23)] == drawn[:23]
    assert [*islice(draw_random_sets(model, unit, seed=7), 23)] != drawn[:23]


def test_random_sets_of_the_same_size_are_of_any_layer(model: Model) -> None:
    unit = unite_heads(model, "obj", ["1-2", "3-1", "3-2"])
    drawn = [*islice(draw_random_sets(model, unit, seed=5, match="size"), 97)]
    assert {sum(map(len, each.selection.values())) for each in drawn} == {3}
    times = Counter((place, head) for each in drawn for place, heads in each.selection.items() for head in heads)
    # Each head is as likely as any: 291 heads in all.
    expected = 291 / (LAYERS * HEADS)
    assert len(times) == LAYERS * HEADS
    assert max(abs(count - expected) for count in times.values()) < 5 * expected**0.5
    assert count_random_sets(model, unit, "size") == comb(LAYERS * HEADS, 3) - 1


@pytest.mark.parametrize("match", ["layer", "size"])
def test_a_set_of_all_heads_has_no_other(model: Model, match: str) -> None:
    unit = unite_heads(model, "all", map(str, range(1, LAYERS + 1)))
    assert count_random_sets(model, unit, match) == len([*draw_random_sets(model, unit, match=match)]) == 0
