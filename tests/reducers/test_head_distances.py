"""Distances between heads, against a naive loop; what they must be; and what a sample of rows says of its error."""

import math

import numpy as np
import pytest
import xarray as xr
from scipy.special import softmax

import laws
import tiny
import tuned
import witnesses
from headscope.capture.model.model import Model
from headscope.errors import HeadscopeError
from headscope.reducers import HeadDistances
from headscope.reducers.support.divergence import compare_rows
from headscope.runner import Plan, measure
from witnesses.head_distances import divergence

DOCUMENTS = tiny.documents(11)
FEW = DOCUMENTS[:3]


def load(family: str, *, seed: int | None = None) -> Model:
    module, tokenizer = tiny.make(family)
    return Model.from_module(module if seed is None else tuned.perturb(module, seed), tokenizer, name=family)


def see(model: Model) -> dict[str, list[witnesses.Seen]]:
    attention_types: dict[str, list[witnesses.Seen]] = {}
    for document in FEW:
        for attention_type, seen in witnesses.see(model.module, model.tokenizer, document).items():
            attention_types.setdefault(attention_type, []).append(seen)
    return attention_types


def select(table: xr.Dataset, attention_type: str, expected: np.ndarray, variable: str = "js_distance") -> np.ndarray:
    """The distances of an attention type, without the layers that only another one has."""
    values = table[variable]
    if "attention_type" in values.dims:
        values = values.sel(attention_type=attention_type)
    return values.values[tuple(slice(size) for size in expected.shape)]


@pytest.mark.parametrize("family", [*tiny.FAMILIES, "deberta_v2"])
def test_it_is_the_mean_divergence_of_two_heads(family: str) -> None:
    model = load(family)
    table = measure(model, FEW, [HeadDistances()], plan=Plan(batch_tokens=29))
    for attention_type, texts in see(model).items():
        expected = witnesses.head_distances(texts)
        assert 1e-4 < expected.max() < math.log(2)
        # What the model returns and what is captured differ in the last bits of float32.
        np.testing.assert_allclose(select(table, attention_type, expected), expected, rtol=1e-5, atol=1e-7)
    assert table["js_distance_count"] == len(FEW)


@pytest.mark.parametrize("family", ["bert", "gpt_oss", "bart"])
def test_heads_of_two_models_are_compared_in_the_same_way(family: str) -> None:
    before, after = load(family), load(family, seed=5)
    table = measure(after, FEW, ["head_distances_before"], before=before, plan=Plan(batch_tokens=29))
    first, second = see(after), see(before)
    for attention_type, texts in first.items():
        expected = witnesses.head_distances_before(texts, second[attention_type])
        values = select(table, attention_type, expected, "js_distance_before")
        np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-7)


def test_the_heads_of_a_model_and_itself_are_as_far_apart_as_within_it() -> None:
    model = load("bert")
    table = measure(model, DOCUMENTS, [HeadDistances(), "head_distances_before"], before=model)
    within, between = (table[name].values for name in ("js_distance", "js_distance_before"))
    np.testing.assert_allclose(between, within, rtol=0, atol=1e-15)


def test_it_is_a_divergence() -> None:
    table = measure(load("bert"), DOCUMENTS, [HeadDistances()])
    values = table["js_distance"].stack(one=("layer", "head"), other=("layer_other", "head_other")).values
    np.testing.assert_array_equal(values, values.T)
    np.testing.assert_array_equal(values.diagonal(), 0)
    assert values[~np.eye(len(values), dtype=bool)].min() > 0
    assert values.max() < math.log(2)


def test_the_halves_make_up_the_whole() -> None:
    table = measure(load("bert"), DOCUMENTS, [HeadDistances()])
    even = sum(HeadDistances().fold_assignment.fold(document) % 2 == 0 for document in DOCUMENTS)
    shares = xr.DataArray([even, len(DOCUMENTS) - even], coords={"half": ["even", "odd"]}) / len(DOCUMENTS)
    assert 0 < shares.min() < shares.max() < 1
    np.testing.assert_allclose((table["js_distance_by_half"] * shares).sum("half"), table["js_distance"], atol=1e-15)


def make_maps(heads: int, rows: int, keys: int, seed: int) -> np.ndarray:
    scores = 4 * np.random.default_rng(seed).standard_normal((heads, rows, keys))
    return softmax(scores, axis=-1).astype(np.float32)


def test_heads_that_are_nearly_or_quite_alike_have_the_right_distance() -> None:
    """Where the entropies of both sides cancel, and where a weight is 0."""
    maps = make_maps(5, 7, 11, seed=3)
    maps[1] = maps[0] * (1 + 1e-4 * np.random.default_rng(1).standard_normal((7, 11)))
    maps[2] = maps[3]
    maps[4, :, 4:] = 0
    maps[3, 2] = np.eye(11)[5]
    (values,) = compare_rows(maps)
    for row in range(7):
        for one in range(5):
            for other in range(5):
                pair = maps[one, row].astype(float), maps[other, row].astype(float)
                np.testing.assert_allclose(values[one, other, row], divergence(*pair), rtol=1e-6, atol=1e-15)
    assert 1e-11 < values[0, 1].max() < 1e-8


@pytest.mark.parametrize("block", [1, 100, 1 << 15])
def test_blocks_of_any_size_give_the_same(monkeypatch, block: int) -> None:
    maps, others = make_maps(5, 7, 11, seed=3), make_maps(3, 7, 11, seed=4)
    expected = [np.concatenate(list(compare_rows(maps, beside)), -1) for beside in (None, maps, others)]
    np.testing.assert_allclose(expected[0], expected[1], rtol=0, atol=1e-15)
    monkeypatch.setattr("headscope.reducers.support.divergence.BLOCK_WEIGHTS", block)
    blocks = [np.concatenate(list(compare_rows(maps, beside)), -1) for beside in (None, maps, others)]
    for values, again in zip(expected, blocks, strict=True):
        np.testing.assert_allclose(again, values, rtol=0, atol=1e-15)


def test_a_sample_that_is_no_smaller_than_any_document_has_no_error() -> None:
    exact = measure(load("bert"), DOCUMENTS, [HeadDistances()])
    sampled = measure(load("bert"), DOCUMENTS, [HeadDistances(rows=512)])
    xr.testing.assert_identical(sampled["js_distance"], exact["js_distance"])
    assert not sampled["js_distance_error"].any()


@pytest.mark.full
def test_the_stated_error_of_a_sample_holds_in_95_of_100_repetitions() -> None:
    model, documents = load("bert"), tiny.documents(23)
    exact = measure(model, documents, [HeadDistances()])["js_distance"].values
    pairs = np.triu(np.ones(2 * (exact.shape[0] * exact.shape[1],)), 1).reshape(exact.shape) > 0
    holds, errors = [], []
    for seed in range(100):
        table = measure(model, documents, [HeadDistances(rows=7, seed=seed)])
        distance, error = table["js_distance"].values, table["js_distance_error"].values
        holds.append((np.abs(distance - exact) <= error)[pairs])
        errors.append(error[pairs] / exact[pairs])
    # The pairs of one repetition depend on one another, and it is their mean that has the level.
    assert 0.94 <= np.mean(holds) <= 0.975
    assert 0.01 < np.mean(errors) < 0.2


def test_a_sample_of_the_same_seed_is_the_same_in_any_batch() -> None:
    model = load("mistral")
    tables = [measure(model, DOCUMENTS, [HeadDistances(rows=3)], plan=Plan(batch_tokens=size)) for size in (1, 101)]
    laws.assert_same(*(table.drop_attrs(deep=False) for table in tables))
    other = measure(model, DOCUMENTS, [HeadDistances(rows=3, seed=1)])
    assert np.abs(other["js_distance"] - tables[0]["js_distance"]).max() > 1e-4


def test_one_row_says_nothing_of_its_error() -> None:
    with pytest.raises(HeadscopeError) as refused:
        HeadDistances(rows=1)
    assert str(refused.value) == (
        "1 rows of a document say nothing of the error of a sample; give 2 or more, such as 16, or none for all rows."
    )
