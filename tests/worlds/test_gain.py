"""Whether the best heads gain most: by the corrected tau over runs that share the model before and its texts."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom

from headscope.analyse.change_against_baseline import correlate_change
from headscope.heads import describe
from headscope.score import Score, write_scores
from worlds.shares import LEVEL

HEADS, FOLDS, RUNS, ITEMS = 71, 64, 5, 10

SHARE = Score("right_share", "Share", "the share of words", ("fold_right",), ("fold_item",))


def make_table(right: np.ndarray) -> xr.Dataset:
    """A table of heads, or of heads in runs, from what they get right in each fold."""
    dims = ("run", "layer", "head", "fold")[-right.ndim - 1 :]
    sums = {
        "fold_right": (right[..., None, :, :], dims, "words that are right", "words"),
        "fold_item": (np.full(FOLDS, ITEMS), ("fold",), "words", "words"),
        "right_share": (right.mean(-1)[..., None, :] / ITEMS, dims[:-1], "share of words", "share of words"),
    }
    coords = {"layer": [1], "head": np.arange(1, HEADS + 1)}
    return xr.Dataset(describe(sums, "drawn"), coords=coords, attrs={"scores": write_scores([SHARE])})


def draw_interval(draw: np.random.Generator, world: str) -> tuple[float, float]:
    """The interval of the mean tau over runs of a world."""
    share = draw.beta(2, 6, HEADS)
    of_fold = draw.beta(9 * share[:, None], 9 * (1 - share[:, None]), (HEADS, FOLDS))
    slope = {"rich": 0.15, "poor": -0.15}.get(world, 0) * (share - share.mean())
    after = []
    for _ in range(RUNS):
        noise = 0 if world == "nothing" else draw.normal(0, 0.05, HEADS)
        after.append(draw.binomial(ITEMS, np.clip(of_fold + (slope + noise)[:, None], 0.001, 0.999)))
    before = make_table(draw.binomial(ITEMS, of_fold))
    runs = make_table(np.stack(after))
    change = correlate_change(before, {"task": runs}, "right_share", before["right_share"].notnull())
    return change["baseline_tau_mean_lower"].values.item(), change["baseline_tau_mean_upper"].values.item()


@pytest.mark.parametrize("world", ["nothing", "each run its own"])
@pytest.mark.parametrize("worlds", [20, pytest.param(100, marks=pytest.mark.full)])
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
