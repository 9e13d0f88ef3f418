"""What sparse shapes keep of a map: naive loops, planted maps, and bounds."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
import witnesses
from headscope.capture.model.model import Model
from headscope.errors import HeadscopeError
from headscope.reducers import SparseShapes
from headscope.reducers.sparse_shapes import KEPT, MARGIN, SHAPES, _Cells, _keep
from headscope.runner import Plan, measure
from witnesses.sparse_shapes import keep

DOCUMENTS = tiny.documents(7)


def make_map(scores: np.ndarray, *, causal: bool) -> np.ndarray:
    scores = np.where(np.tri(*scores.shape, dtype=bool) | (not causal), scores, -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def measure_shapes(weights: np.ndarray, budget: float, *, causal: bool) -> np.ndarray:
    cells = _Cells.of_map(*weights.shape, causal=causal, budget=budget, device=torch.device("cpu"))
    return _keep(torch.from_numpy(weights)[None], cells)[0].numpy()


@settings(max_examples=40, deadline=None)
@given(
    length=st.integers(2, 37), budget=st.sampled_from([0.05, 0.13, 0.4]), causal=st.booleans(), seed=st.integers(0, 9)
)
def test_a_map_equals_naive_loops(length: int, budget: float, causal: bool, seed: int) -> None:
    weights = make_map(np.random.default_rng(seed).normal(0, 2, (length, length)), causal=causal)
    kept = measure_shapes(weights, budget, causal=causal)
    np.testing.assert_allclose(kept, keep(weights, budget, causal=causal), rtol=1e-9)
    assert (kept <= kept[-1] + 1e-12).all()
    assert (kept >= 0).all()


@pytest.mark.parametrize("family", ["gpt2", "mistral", "bert"])
def test_a_table_equals_naive_loops(family: str) -> None:
    module, tokenizer = tiny.make(family)
    table = measure(Model.from_module(module, tokenizer), DOCUMENTS, [SparseShapes(0.3)], plan=Plan(batch_tokens=47))
    causal = family != "bert"
    texts = [next(iter(witnesses.see(module, tokenizer, document).values())) for document in DOCUMENTS]
    expected = witnesses.sparse_shapes(texts, 0.3, causal=causal)
    np.testing.assert_allclose(table["sparse_mass"].transpose("layer", "head", "kept"), expected, rtol=1e-5)
    uniform = [keep(make_map(np.zeros(text.weights.shape[2:]), causal=causal), 0.3, causal=causal) for text in texts]
    np.testing.assert_allclose(table["sparse_uniform"], np.mean(uniform, axis=0), rtol=1e-9)
    assert (table["sparse_best_share"].sum("shape") == 1).all()
    assert int(table["sparse_count"]) == int(table["sparse_best_count"]) == len(DOCUMENTS)


def plant(shape: str, length: int = 320) -> np.ndarray:
    """The scores of a head of one shape."""
    place = np.arange(length)
    behind = place[:, None] - place
    if shape == "a_shape":
        return np.where((place < 4) | (behind < 6), 7.0, 0.0)
    if shape == "vertical_slash":
        return np.where(np.isin(place, [31, 97, 151]) | np.isin(behind, [53, 101]), 7.0, 0.0)
    blocks = np.random.default_rng(3).random((10, 10)) < 0.06
    np.fill_diagonal(blocks, False)
    return np.where(np.kron(blocks, np.ones((32, 32), dtype=bool))[:length, :length], 9.0, 0.0)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_planted_shape_keeps_most(shape: str) -> None:
    kept = measure_shapes(make_map(plant(shape), causal=True), 0.05, causal=True)
    best = int(np.argmax(kept[: len(SHAPES)] >= kept[: len(SHAPES)].max() - MARGIN))
    assert KEPT[best] == shape
    # Behind it in the list are other shapes, which keep less; an A-shape is made of columns and diagonals too.
    others = np.delete(kept[: len(SHAPES)], [best, *([1] if shape == "a_shape" else [])])
    assert kept[best] > 1.3 * others.max()


@pytest.mark.parametrize("causal", [True, False])
def test_uniform_attention_keeps_little_in_any_shape(causal: bool) -> None:
    kept = measure_shapes(make_map(np.zeros((251, 251)), causal=causal), 0.05, causal=causal)
    assert (kept < (0.3 if causal else 0.0501)).all()


def test_a_budget_that_is_no_share_is_refused() -> None:
    for budget in (0.0, -0.1, 1.5):
        with pytest.raises(HeadscopeError) as refused:
            SparseShapes(budget)
        assert str(refused.value) == f"a budget of {budget} is no share of a map; give one above 0, such as 0.05."
