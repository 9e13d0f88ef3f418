"""Two tables that do not differ hardly ever have a head that is said to; one that differs is found, and no other."""

import numpy as np
import pytest
from scipy.stats import binom

from headscope.analyse.paired import compare_score
from headscope.reducers.relations import ACCURACY
from worlds.differences import OUTCOMES, PLACE, draw_tables, find_differences

WORLDS = 60
MOST = int(binom.ppf(0.999, WORLDS, 0.05))
"""Hardly ever exceeded by the number of worlds with a false verdict."""


@pytest.mark.parametrize("texts", [30, pytest.param(150, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", [*OUTCOMES])
def test_where_nothing_differs_hardly_ever_a_head_is_said_to(name: str, texts: int) -> None:
    draw = np.random.default_rng([texts, len(name)])
    worlds = WORLDS if texts == 150 else WORLDS // 4
    found = sum(bool(find_differences(draw_tables(draw, name, texts)).any()) for _ in range(worlds))
    assert found <= binom.ppf(0.999, worlds, 0.05)


@pytest.mark.full
def test_heads_that_differ_together_are_no_more_evidence() -> None:
    draw = np.random.default_rng(0)
    found = sum(bool(find_differences(draw_tables(draw, "as often", 150, share=0.5)).any()) for _ in range(WORLDS))
    assert found <= MOST


def test_a_head_that_is_better_is_found_and_no_other() -> None:
    draw = np.random.default_rng(3)
    worlds = np.array([find_differences(draw_tables(draw, "as often", 150, 8, planted=True)) for _ in range(20)])
    assert worlds[:, *PLACE].mean() >= 0.7
    worlds[:, *PLACE] = False
    assert worlds.any(axis=(1, 2, 3)).sum() <= binom.ppf(0.999, 20, 0.05)


def test_uncorrected_most_worlds_have_a_head_that_seems_to_differ() -> None:
    draw = np.random.default_rng(5)
    p = compare_score(*draw_tables(draw, "as often", 150), ACCURACY)["p"]
    assert 0.02 < float((p < 0.05).mean()) < 0.09


@pytest.mark.parametrize("name", ["as often", "hardly ever wrong", "hardly ever changed"])
def test_intervals_hold_the_truth(name: str) -> None:
    """Of 360 differences that are none, in a few worlds."""
    draw = np.random.default_rng(7)
    worlds = [compare_score(*draw_tables(draw, name, 50), ACCURACY) for _ in range(4)]
    held = [((each.difference_lower <= 0) & (each.difference_upper >= 0)).mean() for each in worlds]
    assert np.mean(held) > 0.93
