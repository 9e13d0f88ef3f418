"""Heads of two models matched: heads that changed places are found again."""

import numpy as np
import pytest
import xarray as xr

import headscope
import tiny
from headscope.capture.model.model import Model
from headscope.errors import TableError
from headscope.runner import measure

DOCUMENTS = tiny.documents(7)
HEADS, WIDTH = 5, 7


def exchange_heads(family: str, layer: int, first: int, second: int) -> tuple[Model, Model]:
    """A model, and the same one with two heads of a layer in each other's place, which computes the same."""
    models = []
    for name in ("before", "after"):
        module, tokenizer = tiny.make(family)
        if name == "after":
            order = list(range(HEADS))
            order[first - 1], order[second - 1] = order[second - 1], order[first - 1]
            units = [WIDTH * head + unit for head in order for unit in range(WIDTH)]
            attention = module.encoder.layer[layer - 1].attention
            for part in (attention.self.query, attention.self.key, attention.self.value):
                part.weight.data, part.bias.data = part.weight.data[units], part.bias.data[units]
            attention.output.dense.weight.data = attention.output.dense.weight.data[:, units]
        models.append(Model.from_module(module, tokenizer, name=name))
    return models[0], models[1]


def test_heads_that_changed_places_are_matched_with_what_they_were() -> None:
    before, after = exchange_heads("bert", 2, 1, 4)
    table = measure(after, DOCUMENTS, ["head_distances_before"], before=before)
    matched = headscope.analyse.match_heads(table)
    expected = [[1, 2, 3, 4, 5], [4, 2, 3, 1, 5]]
    assert matched["matched_layer"].values.tolist() == [[1] * HEADS, [2] * HEADS]
    assert matched["matched_head"].values.tolist() == expected
    np.testing.assert_allclose(matched["matched_distance"], 0, atol=1e-9)
    np.testing.assert_allclose(matched["nearest_distance"], 0, atol=1e-9)
    assert (matched["own_distance"].sel(layer=2, head=[1, 4]) > 0.01).all()
    assert float(matched["matched_to_itself"]) == pytest.approx(0.8)


def test_no_head_is_matched_twice() -> None:
    rng = np.random.default_rng(3)
    distances = rng.uniform(size=(2, 5, 2, 5))
    distances[..., 1, 3] = 0.0  # nearest to all
    dims = ("layer", "head", "layer_before", "head_before")
    about = {"units": "nats", "source": "planted", "long_name": "distance"}
    coords = {dim: range(1, size + 1) for dim, size in zip(dims, distances.shape, strict=True)}
    table = headscope.analyse.match_heads(xr.Dataset({"js_distance_before": (dims, distances, about)}, coords))
    pairs = set(zip(table["matched_layer"].values.ravel(), table["matched_head"].values.ravel(), strict=True))
    assert len(pairs) == 10
    assert not table["nearest_distance"].any()


def test_each_attention_type_is_matched_by_itself() -> None:
    module, tokenizer = tiny.make("bart")
    model = Model.from_module(module, tokenizer, name="bart")
    table = headscope.analyse.match_heads(measure(model, DOCUMENTS, ["head_distances_before"], before=model))
    assert table["matched_to_itself"].values.tolist() == [1, 1, 1]
    assert table["matched_layer"].sel(attention_type="encoder", layer=3).isnull().all()
    assert (table["matched_layer"].sel(attention_type="cross", layer=3) == 3).all()


def test_each_run_is_matched_by_itself() -> None:
    before, after = exchange_heads("bert", 1, 2, 5)
    tables = [measure(model, DOCUMENTS, ["head_distances_before"], before=before) for model in (before, after)]
    runs = xr.concat(tables, xr.Variable("run", ["seed-1", "seed-2"]), combine_attrs="override")
    matched = headscope.analyse.match_heads(runs)
    assert matched["matched_to_itself"].values.tolist() == [1, 0.8]
    assert matched["matched_head"].sel(run="seed-2", layer=1).values.tolist() == [1, 5, 3, 4, 2]


def test_without_distances_nothing_is_matched() -> None:
    with pytest.raises(TableError) as refused:
        headscope.analyse.match_heads(xr.Dataset())
    assert str(refused.value) == (
        "the table has no distances to the heads of another model; measure the reducer `head_distances_before` with "
        "the model before."
    )
