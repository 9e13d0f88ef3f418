"""Intervals cover the truth near 0 and 1 too, and in a table without a lift hardly ever a row stands out."""

import numpy as np
import pytest
from scipy.stats import binom

from headscope.analyse.significance import holm
from worlds.shares import INSIDE, LEVEL, OUTCOMES, OUTSIDE, cover, draw_f1, draw_lifts, draw_ratio, find_stars

WORLDS = 500
LEAST = binom.ppf(0.001, WORLDS, 0.93) / WORLDS
"""Hardly ever seen of intervals that cover 93 %."""

CELLS = [(10, 2), (10, 20), (20, 1), (20, 5), (50, 20), (100, 5)]
"""Texts, and items of each."""


@pytest.mark.parametrize("equal", [True, pytest.param(False, marks=pytest.mark.full)], ids=["equal", "unequal"])
@pytest.mark.parametrize("correlation", [0, 0.2, pytest.param(0.3, marks=pytest.mark.full)])
@pytest.mark.parametrize("mixture", ["beta", "logistic"])
def test_intervals_cover_the_truth_at_any_share(mixture: str, correlation: float, equal: bool) -> None:
    draw = np.random.default_rng([round(100 * correlation), len(mixture), equal])
    for texts, items in CELLS:
        for share in (0.5, 0.9, 0.98, 0.995, 0.02):
            ratio = draw_ratio(draw, mixture, share, correlation, texts, items, WORLDS, equal=equal)
            assert cover(ratio, share) >= LEAST, (texts, items, share)


@pytest.mark.full
def test_intervals_cover_less_where_a_few_texts_are_much_worse() -> None:
    """What the docs say of texts of two kinds: from .75 on."""
    draw = np.random.default_rng(5)
    covered = [
        cover(draw_ratio(draw, "two kinds", share, 0.3, texts, items, WORLDS, equal=True), share)
        for texts, items in CELLS for share in (0.7, 0.9, 0.95, 0.98, 0.995)
    ]  # fmt: skip
    assert 0.7 < min(covered) < 0.93
    assert np.mean(np.array(covered) >= LEAST) > 0.8


@pytest.mark.parametrize("correlation", [0, pytest.param(0.2, marks=pytest.mark.full)])
def test_intervals_cover_an_f1_too(correlation: float) -> None:
    """An F1 is no share of items: of its sums, what is found counts twice."""
    draw = np.random.default_rng(11)
    for texts in (10, 20, 50):
        for recall, alarms in ((0.3, 0.3), (0.6, 0.1), (0.9, 0.02), (0.98, 0.005), (0.995, 0.001)):
            truth = 2 * INSIDE * recall / (INSIDE + INSIDE * recall + OUTSIDE * alarms)
            ratio = draw_f1(draw, recall, alarms, correlation, texts, WORLDS)
            assert cover(ratio, truth) >= LEAST, (texts, recall)


@pytest.mark.parametrize("outcomes", OUTCOMES)
@pytest.mark.parametrize("alike", [0.05, pytest.param(0.2, marks=pytest.mark.full)])
def test_a_table_without_a_lift_hardly_ever_has_a_star(outcomes: str, alike: float) -> None:
    draw = np.random.default_rng([round(100 * alike), len(outcomes)])
    lifts = draw_lifts(draw, OUTCOMES[outcomes], 60, 4, 400, 39, alike=alike)
    assert find_stars(lifts).any(1).mean() <= binom.ppf(0.999, 400, LEVEL) / 400
    assert (lifts.p_value() < LEVEL).any("row").mean() > 0.5  # uncorrected, most tables would have one


def test_a_lift_is_found_beside_rows_without_one() -> None:
    draw = np.random.default_rng(7)
    none, some = OUTCOMES["as often"], np.array([0.3, 0.3, 0.1, 0.3])
    without = draw_lifts(draw, none, 100, 8, 60, 29, alike=0.1)
    lifted = draw_lifts(draw, some, 100, 8, 60, 10, alike=0.1)
    for world in range(3):
        p = np.concatenate([each.p_value().values[world] for each in (without, lifted)])
        assert (holm(p)[:29] < LEVEL).sum() == 0
    p = np.concatenate([without.p_value().values, lifted.p_value().values], axis=1)
    assert np.mean([(holm(each)[29:] < LEVEL).mean() for each in p]) > 0.8
