"""The paired difference of a score: scipy's tests, and naive loops over folds and signs.

Axes: 7 folds, 11 differences; tables of 3 layers, 5 heads, 2 directions, 7 relations and 23 texts.
"""

import itertools
from collections import Counter

import numpy as np
import pytest
import scipy.stats
import xarray as xr

from analyse.tables import ATTRIBUTES, RELATIONS, head_table, texts, with_other_hits
from headscope import heads
from headscope.analyse.paired import compare_score
from headscope.analyse.significance import FLIPS, flip_signs
from headscope.reducers.negation_scope import F1, GOLD, HITS, SAID
from headscope.reducers.relations import ACCURACY


def is_near(p: float, exact: float) -> bool:
    """True where a p-value of random draws can be one of all of them."""
    return abs(p - exact) < 4 * np.sqrt(exact * (1 - exact) / FLIPS) + 2 / FLIPS


def count_signs(changes: list[int]) -> float:
    """Return the share of all choices of signs in which the sum is at least as far from 0 as it is."""
    ways = Counter({0: 1})
    for change in changes:
        ways = sum((Counter({total + sign * change: ways[total] for total in ways}) for sign in (1, -1)), Counter())
    return sum(number for total, number in ways.items() if abs(total) >= abs(sum(changes))) / ways.total()


@pytest.mark.parametrize("seed", [3, 5, 7])
def test_p_values_are_those_of_all_signs(seed: int) -> None:
    draw = np.random.default_rng(seed)
    whole = draw.choice([-2.0, -1, 0, 1, 2, 3], (11, 7))
    whole[3], whole[5] = 0, whole[4] * 1000  # the same statistic
    parts = whole * draw.choice([0.1, 1, 10], (11, 1))
    decided = np.arange(11) != 2
    p, corrected = flip_signs(parts, decided)
    # By loops: of every choice of signs the statistic of each difference, and the largest of those that are decided.
    every = []
    for signs in itertools.product([-1, 1], repeat=7):
        of_signs = [
            abs(sum(s * x for s, x in zip(signs, row, strict=True))) / (sum(x**2 for x in row) ** 0.5 or 1)
            for row in parts
        ]
        every.append(of_signs)
    statistics = np.array(every)
    observed, largest = statistics[-1], statistics[:, decided].max(1)
    for place in range(11):
        exact = np.mean(statistics[:, place] >= observed[place] - 1e-9)
        assert is_near(p[place], exact)
        if decided[place]:
            assert is_near(corrected[place], np.mean(largest >= observed[place] - 1e-9))
            assert corrected[place] >= p[place]
        if np.any(parts[place]):
            test = scipy.stats.permutation_test((whole[place],), np.sum, permutation_type="samples", n_resamples=2**7)
            assert is_near(p[place], test.pvalue)
    assert (p[3], corrected[3]) == (1, 1)
    assert (p[4], corrected[4]) == (p[5], corrected[5])
    assert np.isnan(corrected).tolist() == (~decided).tolist()


def test_differences_in_blocks_are_those_of_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(11)
    parts, decided = draw.standard_normal((11, 23)), draw.random(11) < 0.7
    whole = flip_signs(parts, decided)
    monkeypatch.setattr("headscope.analyse.significance._BLOCK", 3 * FLIPS)
    for of_blocks, at_once in zip(flip_signs(parts, decided), whole, strict=True):
        np.testing.assert_array_equal(of_blocks, at_once)


def make_pair(seed: int) -> tuple[xr.Dataset, xr.Dataset]:
    """Tables of two models on the same 23 texts."""
    draw = np.random.default_rng(seed)
    made = texts(draw)
    second = head_table(with_other_hits(made, draw), RELATIONS)
    return head_table(made, RELATIONS), second.assign_attrs(weights_sha256="ef" * 32)


@pytest.mark.parametrize("seed", [3, 5])
def test_of_texts_of_one_size_the_interval_is_that_of_the_paired_t_test(seed: int) -> None:
    draw = np.random.default_rng(seed)
    first, second = make_pair(seed)
    items = xr.zeros_like(first.fold_link) + np.where(np.arange(64) < 23, 11, 0)
    pair = []
    for table in (first, second):
        right = table.fold_correct.copy(data=draw.binomial(11, 0.4, table.fold_correct.shape)) * (items > 0)
        pair.append(table.assign(fold_correct=right, fold_link=items))
    compared = compare_score(*pair, ACCURACY)
    place = {"layer": 2, "head": 4, "direction": "head_to_dependent", "relation": "obl"}
    shares = [table.fold_correct.sel(place).values[:23] / 11 for table in pair]
    test = scipy.stats.ttest_1samp(shares[1] - shares[0], 0)
    row = compared.sel(place)
    assert float(row.difference) == pytest.approx(shares[1].mean() - shares[0].mean())
    ends = [float(row.difference_lower), float(row.difference_upper)]
    assert ends == pytest.approx([*test.confidence_interval(0.95)])
    assert (int(row["count"]), int(row.clusters)) == (253, 23)


@pytest.mark.parametrize("seed", [3, 5])
def test_the_numbers_are_those_of_plain_loops(seed: int) -> None:
    first, second = make_pair(seed)
    compared = compare_score(first, second, ACCURACY)
    for layer, head, way, row in itertools.product(range(3), range(5), range(2), range(7)):
        place = {"layer": layer, "head": head, "direction": way, "relation": row}
        a, b = (table.fold_correct.isel(place).values for table in (first, second))
        n = first.fold_link.isel(relation=row).values
        there = [fold for fold in range(64) if n[fold]]
        m, total = len(there), sum(n)
        found = compared.isel(place)
        difference = sum(b) / total - sum(a) / total
        assert float(found.difference) == pytest.approx(difference)
        residuals = [(b[f] - a[f] - difference * n[f]) / total for f in there]
        error = np.sqrt(sum(r**2 for r in residuals) * m / (m - 1))
        g = sum(n) ** 2 / sum(n.astype(float) ** 2)
        t = scipy.stats.t.ppf(0.975, g - 1)
        half = max(t * error, t**2 / (total + t**2))
        assert float(found.difference_lower) == pytest.approx(max(difference - half, -1))
        assert float(found.difference_upper) == pytest.approx(min(difference + half, 1))
        assert is_near(float(found.p), count_signs([int(change) for change in b - a]))


def test_each_fold_adds_its_part_where_the_items_of_a_head_differ() -> None:
    """An F1 has words in its denominator that the head names, so that two models have other ones."""
    draw = np.random.default_rng(13)
    gold = 1 + draw.poisson(4, 23)
    pair = []
    for model in range(2):
        said = draw.poisson(5, (3, 5, 23))
        hits = draw.binomial(np.minimum(said, gold), 0.3 + 0.4 * model)
        by_head = ("layer", "head", "fold")
        sums = {HITS: (by_head, hits), SAID: (by_head, said), GOLD: (("fold",), gold)}
        values = {"scope_f1": (by_head[:2], 2 * hits.sum(-1) / (said + gold).sum(-1)), **sums}
        variables = {
            name: heads.variable(data, dims, name=name, units="1", source="drawn")
            for name, (dims, data) in values.items()
        }
        labels = {"layer": [1, 2, 3], "head": [1, 2, 3, 4, 5]}
        pair.append(xr.Dataset(variables, labels, ATTRIBUTES | {"weights_sha256": str(model)}))
    compared = compare_score(*pair, F1)
    for layer, head in itertools.product(range(3), range(5)):
        sums = [[table[name].values[layer, head] for name in (HITS, SAID)] for table in pair]
        over = [said + gold for _, said in sums]
        f1 = [2 * sum(hits) / sum(below) for (hits, _), below in zip(sums, over, strict=True)]
        middle = sum(f1) / 2
        # The F1 that a fold adds in the one model and in the other, less what the mean of both gives its words.
        parts = [
            (2 * sums[1][0][f] - middle * over[1][f]) / sum(over[1])
            - (2 * sums[0][0][f] - middle * over[0][f]) / sum(over[0])
            for f in range(23)
        ]
        found = compared.isel(layer=layer, head=head)
        assert sum(parts) == pytest.approx(f1[1] - f1[0])
        assert float(found.difference) == pytest.approx(f1[1] - f1[0])
        draws = scipy.stats.permutation_test(
            (np.array(parts),), np.sum, permutation_type="samples", n_resamples=5000, random_state=1
        )
        assert abs(float(found.p) - draws.pvalue) < 5 * np.sqrt(0.25 / FLIPS)
        residuals = np.array(
            [
                (2 * sums[1][0][f] - f1[1] * over[1][f]) / sum(over[1])
                - (2 * sums[0][0][f] - f1[0] * over[0][f]) / sum(over[0])
                for f in range(23)
            ]
        )
        error = np.sqrt((residuals**2).sum() * 23 / 22)
        share = (over[0] / sum(over[0]) + over[1] / sum(over[1])) / 2
        half = scipy.stats.t.ppf(0.975, 1 / (share**2).sum() - 1) * error
        assert float(found.difference_upper) == pytest.approx(f1[1] - f1[0] + half)
