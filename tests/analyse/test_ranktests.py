"""Exact tests by ranks: scipy where nothing is tied, all deals and all signs counted where something is."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, permutation_test, rankdata, wilcoxon

from headscope.analyse import rank_sum
from headscope.analyse.ranktests import (
    dominance,
    least_rank_sum,
    least_signed_rank,
    rank_sums,
    signed_rank,
    signed_ranks,
)
from headscope.errors import HeadscopeError

UNTIED = st.lists(
    st.integers(-(10**6), 10**6).filter(bool).map(lambda x: x / 7), min_size=2, max_size=13, unique_by=abs
)
TIED = st.lists(st.integers(-2, 3), min_size=2, max_size=8)


def deals(one: list[int], other: list[int]) -> float:
    """The rank-sum test by counting every deal of the midranks."""
    ranks = rankdata([*one, *other])
    seen = sum(ranks[: len(one)])
    sums = [sum(deal) for deal in combinations(ranks, len(one))]
    tails = [sum(s <= seen for s in sums), sum(s >= seen for s in sums)]
    return min(1.0, 2 * min(tails) / len(sums))


def signs(differences: list[int]) -> float:
    """The signed-rank test by counting every choice of signs."""
    some = [d for d in differences if d]
    ranks = rankdata(np.abs(some))
    seen = sum(r for r, d in zip(ranks, some, strict=True) if d > 0)
    sums = [
        sum(r for r, plus in zip(ranks, choice, strict=True) if plus) for choice in product([0, 1], repeat=len(some))
    ]
    tails = [sum(s <= seen for s in sums), sum(s >= seen for s in sums)]
    return min(1.0, 2 * min(tails) / len(sums))


@given(values=UNTIED, at=st.integers(1, 12))
def test_without_ties_the_rank_sum_is_scipys(values: list[float], at: int) -> None:
    one, other = values[: min(at, len(values) - 1)], values[min(at, len(values) - 1) :]
    assert rank_sum(one, other) == pytest.approx(mannwhitneyu(one, other, method="exact").pvalue, rel=1e-12)


@given(values=UNTIED)
def test_without_ties_the_signed_rank_is_scipys(values: list[float]) -> None:
    assert signed_rank(values) == pytest.approx(wilcoxon(values, method="exact").pvalue, rel=1e-12)


@given(values=TIED, at=st.integers(1, 7))
def test_with_ties_the_rank_sum_is_a_count_of_deals(values: list[int], at: int) -> None:
    one, other = values[: min(at, len(values) - 1)], values[min(at, len(values) - 1) :]
    assert rank_sum(one, other) == pytest.approx(deals(one, other), rel=1e-12)


@given(values=TIED)
def test_with_ties_the_signed_rank_is_a_count_of_signs(values: list[int]) -> None:
    assert signed_rank(values) == pytest.approx(signs(values), rel=1e-12)


@given(values=TIED, words=st.integers(7, 997), start=st.integers(3, 501))
def test_shares_of_counts_are_tied_as_their_counts_are(values: list[int], words: int, start: int) -> None:
    before = start / words
    after = np.array([(start + value) / words for value in values])
    assert signed_rank(after - before) == pytest.approx(signs(values), rel=1e-12)
    assert signed_ranks(after, np.array([before])) == pytest.approx(signs(values), rel=1e-12)


def test_means_that_are_equal_but_for_rounding_are_tied() -> None:
    counts = np.random.default_rng(5).integers(0, 50, (11, 143)) / 97
    one, other = counts.mean(1), np.array([row[::-1].sum() / 143 for row in counts]) * (1 + 3e-16)
    assert (one != other).sum() > 3
    assert signed_ranks(one, other) == 1
    assert rank_sum(one, other) == 1
    assert signed_rank([1.0, 1 + 1e-9, -1.0]) == signs([10, 11, -10]) != signs([1, 1, -1])


def test_with_ties_scipys_permutation_test_says_the_same() -> None:
    one, other = [1, 2, 2, 5, 7], [2, 3, 3, 1, 0, 2, 2]
    ranks = rankdata([*one, *other])
    found = permutation_test(
        (ranks[:5], ranks[5:]), lambda x, y, axis: x.sum(axis=axis), vectorized=True, n_resamples=np.inf
    )
    assert rank_sum(one, other) == pytest.approx(found.pvalue, rel=1e-12)


@given(first=TIED, second=TIED)
def test_the_effect_of_the_rank_sum_is_scipys_with_its_sign(first: list[int], second: list[int]) -> None:
    u = mannwhitneyu(first, second).statistic
    assert dominance(first, second) == pytest.approx(2 * u / (len(first) * len(second)) - 1)
    assert dominance(second, first) == -dominance(first, second)


def test_differences_by_rounding_alone_have_no_sign() -> None:
    assert dominance([0.3 - 0.2], [0.2 - 0.1]) == 0
    assert math.isnan(dominance([1.0, math.nan], [2.0]))


def test_every_place_is_tested_for_itself() -> None:
    draw = np.random.default_rng(3)
    one, other = draw.integers(0, 9, (5, 3, 7)).astype(float), draw.integers(2, 11, (11, 3, 7)).astype(float)
    one[2, 1, 4] = np.nan
    p, signed = rank_sums(one, other), signed_ranks(one, np.full((1, 3, 7), 4.0))
    for place in np.ndindex(3, 7):
        at = (slice(None), *place)
        if place == (1, 4):
            assert math.isnan(p[place])
            assert math.isnan(signed[place])
            continue
        assert p[place] == rank_sum(one[at], other[at])
        assert signed[place] == signed_rank(one[at] - 4)
    assert len(np.unique(p)) > 11


@pytest.mark.parametrize(("one", "other"), [(3, 3), (2, 7), (1, 1), (10, 10)])
def test_the_smallest_p_is_that_of_samples_apart(one: int, other: int) -> None:
    assert least_rank_sum(one, other) == pytest.approx(rank_sum(range(one), range(50, 50 + other)), rel=1e-12)


@pytest.mark.parametrize("runs", [1, 2, 3, 5, 10])
def test_the_smallest_p_is_that_of_differences_of_one_sign(runs: int) -> None:
    assert least_signed_rank(runs) == pytest.approx(signed_rank([-x for x in range(1, runs + 1)]), rel=1e-12)


def test_no_difference_at_all_is_no_evidence() -> None:
    assert signed_rank([0, 0, 0]) == 1
    assert rank_sum([2, 2], [2, 2, 2]) == 1


def test_a_sample_without_values_is_refused() -> None:
    for statistic in (rank_sum, dominance):
        with pytest.raises(HeadscopeError) as refused:
            statistic([], [1, 2])
        wanted = "the rank-sum test got a sample without values; it needs one of each group at least."
        assert str(refused.value) == wanted
    with pytest.raises(HeadscopeError) as refused:
        signed_rank([])
    assert str(refused.value) == "the signed-rank test got no differences; it needs one at least."
