"""The heads that stand out, in order and by name."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from headscope.analyse import list_highest
from headscope.errors import TableError

NAN = float("nan")
LAYERS, HEADS = 3, 5


def table(values: np.ndarray, **more: xr.DataArray) -> xr.Dataset:
    """Values over layer and head, with attention types in front if there are three axes."""
    dims = ("attention_type", "layer", "head")[-values.ndim :]
    coords = {"layer": np.arange(1, values.shape[-2] + 1), "head": np.arange(1, values.shape[-1] + 1)}
    if values.ndim == 3:
        coords["attention_type"] = ["encoder", "decoder"]
    return xr.Dataset({"entropy": (dims, values), **more}, coords=coords)


@given(arrays(float, (LAYERS, HEADS), elements=st.one_of(st.just(NAN), st.integers(-2, 2))), st.integers(0, 17))
def test_the_largest_come_first_and_of_equals_the_first_head(values: np.ndarray, count: int) -> None:
    heads = [
        (-values[layer, head], layer + 1, head + 1)
        for layer in range(LAYERS)
        for head in range(HEADS)
        if values[layer, head] == values[layer, head]
    ]
    expected = [(f"{layer}-{head}", -minus) for minus, layer, head in sorted(heads)[:count]]
    assert list_highest(table(values), "entropy", count) == expected


def test_three_heads_unless_told_otherwise() -> None:
    values = np.arange(15.0).reshape(LAYERS, HEADS)
    assert list_highest(table(values), "entropy") == [("3-5", 14.0), ("3-4", 13.0), ("3-3", 12.0)]


def test_heads_without_a_value_are_left_out() -> None:
    values = np.array([[NAN, -7.0, NAN], [NAN, NAN, -2.0]])
    assert list_highest(table(values), "entropy", 5) == [("2-3", -2.0), ("1-2", -7.0)]
    assert list_highest(table(np.full((2, 3), NAN)), "entropy") == []


def test_minus_infinity_is_a_value() -> None:
    assert list_highest(table(np.array([[NAN, -np.inf, 1.0]])), "entropy") == [("1-3", 1.0), ("1-2", -np.inf)]
    assert list_highest(table(np.array([[-np.inf, NAN, 1.0]])), "entropy") == [("1-3", 1.0), ("1-1", -np.inf)]


def test_the_order_of_the_dimensions_does_not_matter() -> None:
    values = table(np.arange(15.0).reshape(LAYERS, HEADS))
    assert list_highest(values.transpose("head", "layer"), "entropy", 4) == list_highest(values, "entropy", 4)


def test_in_an_encoder_decoder_a_name_begins_with_the_stack() -> None:
    values = np.array([[[1.0, 5.0], [3.0, 0.0], [2.0, 2.5]], [[7.0, -1.0], [4.0, 0.5], [NAN, NAN]]])
    assert list_highest(table(values), "entropy", 4) == [
        ("decoder 1-1", 7.0), ("encoder 1-2", 5.0), ("decoder 2-1", 4.0), ("encoder 2-1", 3.0),
    ]  # fmt: skip


def test_a_variable_that_is_not_there() -> None:
    with pytest.raises(TableError) as refused:
        list_highest(table(np.ones((3, 5)), links=xr.DataArray(2)), "entrpy")
    assert str(refused.value) == "the head table has no variable 'entrpy'; of each head it has entropy."


def test_a_variable_that_is_more_than_one_value_for_each_head() -> None:
    more = xr.DataArray(np.ones((3, 5, 7)), dims=("layer", "head", "relation"))
    with pytest.raises(TableError) as refused:
        list_highest(table(np.ones((3, 5)), accuracy=more), "accuracy")
    assert str(refused.value) == "'accuracy' is not one value for each head; its dimensions are layer, head, relation."


def test_a_variable_that_is_less_than_one_value_for_each_head() -> None:
    with pytest.raises(TableError) as refused:
        list_highest(table(np.ones((3, 5)), depth=xr.DataArray(np.ones(3), dims="layer")), "depth")
    assert str(refused.value) == "'depth' is not one value for each head; its dimensions are layer."
