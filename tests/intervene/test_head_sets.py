"""Random sets of heads: as many in each layer, none of the set itself."""

from collections import Counter

import pytest

import planted
from headscope.capture.model.model import Model
from headscope.errors import HeadscopeError
from headscope.intervene.head_sets import draw_random_sets, unite_heads


@pytest.fixture(scope="module")
def model() -> Model:
    return planted.plant({})


def test_random_sets_have_as_many_heads_in_each_layer_and_none_of_the_set(model: Model) -> None:
    unit = unite_heads(model, "obj", ["1-2", "3-1", "3-2"])
    drawn = draw_random_sets(model, unit, 23, seed=5)
    assert [each.name for each in drawn[:2]] == ["obj random 1", "obj random 2"]
    for each in drawn:
        assert {place: len(heads) for place, heads in each.selection.items()} == {("encoder", 1): 1, ("encoder", 3): 2}
        assert all(not {*heads} & {*unit.selection[place]} for place, heads in each.selection.items())
    heads = model.shape.heads["encoder"]
    times = Counter(head for each in drawn for head in each.selection["encoder", 1])
    assert {*times} == {*range(heads)} - {1}
    assert drawn == draw_random_sets(model, unit, 23, seed=5)
    assert drawn != draw_random_sets(model, unit, 23, seed=7)


def test_random_sets_of_the_same_size_are_of_any_layer(model: Model) -> None:
    unit = unite_heads(model, "obj", ["1-2", "3-1", "3-2"])
    drawn = draw_random_sets(model, unit, 97, seed=5, match="size")
    sizes = {sum(map(len, each.selection.values())) for each in drawn}
    assert sizes == {3}
    own = {(place, head) for place, heads in unit.selection.items() for head in heads}
    times = Counter((place, head) for each in drawn for place, heads in each.selection.items() for head in heads)
    every = {
        ((kind, layer), head)
        for kind, layers in model.layers.items()
        for layer in range(1, layers + 1)
        for head in range(model.shape.heads[kind])
    }
    assert {*times} == every - own
    # Each of the other heads is as likely as any: 291 heads in all.
    expected = 291 / len(every - own)
    assert max(abs(count - expected) for count in times.values()) < 5 * expected**0.5
    assert drawn == draw_random_sets(model, unit, 97, seed=5, match="size")


def test_where_a_layer_has_no_other_heads_the_nearest_gives_them(model: Model) -> None:
    heads = model.shape.heads["encoder"]
    unit = unite_heads(model, "whole layer", ["1"])
    for each in draw_random_sets(model, unit, 7):
        assert each.selection == {("encoder", 2): tuple(range(heads))}


def test_a_set_that_leaves_too_few_heads_is_refused(model: Model) -> None:
    layers = range(1, model.layers["encoder"] + 1)
    with pytest.raises(HeadscopeError, match=r"^the set 'all' has \d+ heads, and the model only 0 others"):
        draw_random_sets(model, unite_heads(model, "all", map(str, layers)), 5)
