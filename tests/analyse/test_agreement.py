"""Whether the same heads score well on two corpora: naive pairs, the released arrays, simulated texts, refusals."""

import math
from itertools import combinations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from analyse.tables import RELATIONS, head_table, stacked, texts
from headscope.analyse import Consistency, consistency
from headscope.errors import TableError
from headscope.reducers.negation_scope import NegationScope
from headscope.score import write_scores

SCOPE = write_scores(NegationScope.scores)
LAYERS, HEADS, FOLDS = 3, 5, 7
ONE, OTHER = {"corpus": "stories", "corpus_sha256": "01" * 32}, {"corpus": "reviews", "corpus_sha256": "23" * 32}
SCORES = st.lists(st.integers(0, 4), min_size=LAYERS * HEADS, max_size=LAYERS * HEADS)


def table(values: np.ndarray, **attrs: str) -> xr.Dataset:
    """A score of heads without the sums that it comes from."""
    coords = {"layer": np.arange(1, values.shape[0] + 1), "head": np.arange(1, values.shape[1] + 1)}
    about = {"model": "made/up", "weights_sha256": "ab" * 32, "scores": SCOPE} | attrs
    return xr.Dataset({"scope_f1": (("layer", "head"), values.astype(float))}, coords=coords, attrs=about)


def scope_table(hits: np.ndarray, said: np.ndarray, gold: np.ndarray, **attrs: str) -> xr.Dataset:
    """Scores of heads with the sums of each fold, ``hits[layer, head, fold]``."""
    by_head = ("layer", "head", "fold")
    f1 = 2 * hits.sum(-1) / (said.sum(-1) + gold.sum(-1))
    return table(f1, **attrs).assign(
        scope_precision=(by_head[:2], hits.sum(-1) / said.sum(-1)),
        scope_recall=(by_head[:2], hits.sum(-1) / gold.sum(-1)),
        fold_scope_said_hits=(by_head, hits),
        fold_scope_said=(by_head, said),
        fold_scope=(("fold",), gold),
    )


def pairs(one: list[int], other: list[int]) -> float:
    """Kendall's tau-b from its definition."""
    signs = [(np.sign(a - b), np.sign(c - d)) for (a, c), (b, d) in combinations(zip(one, other, strict=True), 2)]
    untied = math.sqrt(sum(a != 0 for a, _ in signs) * sum(b != 0 for _, b in signs))
    return sum(a * b for a, b in signs) / untied if untied else math.nan


# ------------------------------------------------------------------- tau


@given(one=SCORES, other=SCORES)
def test_tau_is_that_of_its_definition(one: list[int], other: list[int]) -> None:
    shape = (LAYERS, HEADS)
    found = consistency(table(np.reshape(one, shape), **ONE), table(np.reshape(other, shape), **OTHER))
    np.testing.assert_allclose(found.tau, pairs(one, other), atol=1e-12)
    assert found.heads == LAYERS * HEADS
    assert math.isnan(found.lower)
    assert math.isnan(found.upper)


def test_heads_without_a_value_are_left_out() -> None:
    one, other = (np.array([[1, 2, 3, 4, np.nan]]), np.array([[1, 2, 4, np.nan, 3]]))
    found = consistency(table(one, **ONE), table(other, **OTHER))
    assert (found.heads, found.tau) == (3, 1.0)


@pytest.mark.data
@pytest.mark.parametrize(("model", "printed"), [
    ("bert-base", ("0.440", "0.418", "0.415")), ("roberta-base", ("0.438", "0.472", "0.471")),
])  # fmt: skip
def test_the_released_scores_give_the_papers_tau(data, model: str, printed: tuple[str, ...]) -> None:
    """Table A5, Pretrain."""
    released = np.load(data / f"negation/zhao_head_scores/{model}.npz")
    for place, tau in enumerate(printed):
        stories, reviews = (released[f"{corpus}_pretrained"][..., place] for corpus in ("story", "review"))
        assert f"{consistency(table(stories, **ONE), table(reviews, **OTHER)).tau:.3f}" == tau


@pytest.mark.data
def test_the_released_scores_give_the_papers_p_values(data) -> None:
    """Section 4.2.1: BERT-base, precision, recall and F1."""
    released = np.load(data / "negation/zhao_head_scores/bert-base.npz")
    for place, p in enumerate(("5.24e-15", "1.20e-13", "1.56e-13")):
        stories, reviews = (released[f"{corpus}_pretrained"][..., place] for corpus in ("story", "review"))
        assert f"{consistency(table(stories, **ONE), table(reviews, **OTHER)).p:.2e}" == p


def test_it_reads_as_a_sentence_that_says_what_the_p_value_takes_for_granted() -> None:
    assert str(Consistency("scope_f1", 72, 0.5477, 1.005e-11, 0.5199, 0.5801)) == (
        "scope_f1: tau 0.548 [0.520, 0.580] over 72 heads, p = 1.01e-11 if heads were independent, which they are not"
    )


# -------------------------------------------------------------- the interval


def drawn(draw: np.random.Generator, shares: np.ndarray, words: int, folds: int, **attrs: str) -> xr.Dataset:
    """A corpus of texts that differ, in which each head finds its share of the words of scopes."""
    gold = draw.poisson(words, folds) + 1
    of_fold = draw.beta(*(np.repeat(6 * part[..., None], folds, -1) for part in (shares, 1 - shares)))
    hits = draw.binomial(gold, of_fold)
    return scope_table(hits, hits + draw.binomial(gold, 0.1, hits.shape), gold, **attrs)


@pytest.mark.parametrize("words", [17, 211])
def test_the_interval_covers_the_tau_of_endless_texts(monkeypatch, words: int) -> None:
    monkeypatch.setattr("headscope.analyse.agreement.RESAMPLED", 101)
    draw = np.random.default_rng(words)
    inside, tried = 0, 53
    for _ in range(tried):
        common = draw.beta(1, 8, (6, 11))
        shares = [np.clip(common * np.exp(draw.normal(0, 0.4, common.shape)), 0.001, 0.95) for _ in range(2)]
        truth = consistency(*(table(share, **name) for share, name in zip(shares, (ONE, OTHER), strict=True))).tau
        corpora = (drawn(draw, share, words, 61, **name) for share, name in zip(shares, (ONE, OTHER), strict=True))
        found = consistency(*corpora, "scope_recall")
        inside += found.lower <= truth <= found.upper
        assert found.lower <= found.tau <= found.upper
    assert inside / tried > 0.86


@pytest.mark.parametrize("variable", ["scope_precision", "scope_recall", "scope_f1"])
def test_every_score_of_scopes_has_an_interval(variable: str) -> None:
    draw = np.random.default_rng(3)
    shares = draw.beta(1, 4, (LAYERS, HEADS))
    one, other = (drawn(draw, shares, 101, FOLDS, **attrs) for attrs in (ONE, OTHER))
    found = consistency(one, other, variable)
    assert -1 <= found.lower < found.tau < found.upper <= 1
    assert found == consistency(one, other, variable)
    backwards = consistency(other.transpose(..., "layer"), one.transpose("fold", ...), variable)
    assert (backwards.tau, backwards.p) == (found.tau, found.p)


def test_scores_of_nothing_agree_in_nothing() -> None:
    nothing, some = np.zeros((LAYERS, HEADS, FOLDS)), np.ones((LAYERS, HEADS, FOLDS))
    with np.errstate(invalid="ignore"):
        empty = scope_table(nothing, nothing, np.zeros(FOLDS), **ONE)
    agreement = consistency(empty, scope_table(some, some, np.ones(FOLDS), **OTHER))
    assert agreement.heads == 0
    assert all(math.isnan(value) for value in (agreement.tau, agreement.lower, agreement.upper))


def test_texts_that_never_differ_leave_no_doubt() -> None:
    shares = np.arange(1, 16).reshape(LAYERS, HEADS)
    hits = np.repeat(shares[..., None], FOLDS, -1)
    same = [scope_table(hits, hits + 1, np.full(FOLDS, 31), **attrs) for attrs in (ONE, OTHER)]
    found = consistency(*same)
    assert (found.tau, found.lower, found.upper) == (1, 1, 1)


def test_a_relation_is_compared_where_one_relation_and_one_direction_are_selected() -> None:
    one, other = (
        head_table(texts(np.random.default_rng(seed)), RELATIONS).assign_attrs(attrs)
        for seed, attrs in ((5, ONE), (7, OTHER))
    )
    place = {"relation": "obj", "direction": "head_to_dependent"}
    found = consistency(one.sel(place), other.sel(place), "relation_accuracy")
    scores = [values["relation_accuracy"].sel(place).values.ravel().tolist() for values in (one, other)]
    assert found.tau == pytest.approx(pairs(*scores))
    assert found.lower <= found.tau <= found.upper
    with pytest.raises(TableError) as refused:
        consistency(one, other, "relation_accuracy")
    assert str(refused.value) == (
        "'relation_accuracy' is not one value for each head; its dimensions are layer, head, relation, direction."
    )


def test_the_heads_of_all_stacks_are_compared() -> None:
    draw = np.random.default_rng(11)
    shares = {"encoder": draw.beta(1, 4, (3, 5)), "decoder": draw.beta(1, 4, (2, 5))}
    one, other = (
        stacked({name: drawn(draw, share, 101, FOLDS) for name, share in shares.items()}).assign_attrs(
            {"weights_sha256": "ab" * 32} | attrs
        )
        for attrs in (ONE, OTHER)
    )
    found = consistency(one, other, "scope_recall")
    assert found.heads == 25
    assert found.lower <= found.tau <= found.upper


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(("other", "sentence"), [
    (
        table(np.ones((2, 5)), **OTHER),
        "one table has 3 layers and 5 heads and the other 2 layers and 5 heads; measure one model on two corpora.",
    ),
    (
        table(np.ones((3, 5)), **OTHER, model="made/other", weights_sha256="cd" * 32),
        "the weights of the tables differ: those of 'made/up' are abababababab..., and those of 'made/other' "
        "cdcdcdcdcdcd...; measure one model on two corpora.",
    ),
    (
        table(np.ones((3, 5)), **ONE),
        "both tables are of the corpus 'stories'; measure one model on two corpora.",
    ),
    (
        table(np.ones((3, 5)), **OTHER).rename(scope_f1="scope_recall"),
        "the head table has no variable 'scope_f1'; of each head it has scope_recall.",
    ),
])  # fmt: skip
def test_tables_whose_heads_cannot_be_compared(other: xr.Dataset, sentence: str) -> None:
    with pytest.raises(TableError) as refused:
        consistency(table(np.ones((3, 5)), **ONE), other)
    assert str(refused.value) == sentence
