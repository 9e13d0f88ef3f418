"""Whether the best heads gain most: by the corrected tau over runs that share the model before and its texts."""

import numpy as np
import pytest
from scipy.stats import binom

from worlds.gains import draw_interval
from worlds.shares import LEVEL


@pytest.mark.parametrize(
    ("world", "worlds"),
    [
        ("nothing", 13),
        ("each run its own", 13),
        *(pytest.param(world, 37, marks=pytest.mark.full) for world in ("nothing", "few words")),
    ],
)
def test_where_change_has_nothing_to_do_with_the_score_before_neither_is_said(world: str, worlds: int) -> None:
    """Heads may change at random in each run; a change that all runs share is true of these heads."""
    draw = np.random.default_rng(len(world))
    ends = np.array([draw_interval(draw, world) for _ in range(worlds)])
    assert np.isfinite(ends).all()
    assert ((ends[:, 0] > 0) | (ends[:, 1] < 0)).sum() <= binom.ppf(0.999, worlds, LEVEL)


@pytest.mark.parametrize(("world", "sign"), [("rich", 1), ("poor", -1)])
def test_where_it_has_the_right_one_is_said(world: str, sign: int) -> None:
    draw = np.random.default_rng(3)
    ends = np.array([draw_interval(draw, world) for _ in range(10)])
    assert (ends.min(1) > 0 if sign > 0 else ends.max(1) < 0).sum() >= 7
    assert not (ends.max(1) < 0 if sign > 0 else ends.min(1) > 0).any()
