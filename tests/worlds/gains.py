"""Worlds of heads that change over runs, at random or the more the better they were."""

import numpy as np
import xarray as xr

from headscope.analyse.change_against_baseline import correlate_change
from headscope.heads import describe
from headscope.score import Score, write_scores

HEADS, FOLDS, RUNS = 71, 64, 5
FEW, MANY = 1, 10
"""Words in each fold."""

SHARE = Score("right_share", "Share", "the share of words", ("fold_right",), ("fold_item",))


def make_table(right: np.ndarray, items: int) -> xr.Dataset:
    """A table of heads, or of heads in runs, from what they get right in each fold, of as many words."""
    dims = ("run", "layer", "head", "fold")[-right.ndim - 1 :]
    sums = {
        "fold_right": (right[..., None, :, :], dims, "words that are right", "words"),
        "fold_item": (np.full(FOLDS, items), ("fold",), "words", "words"),
        "right_share": (right.mean(-1)[..., None, :] / items, dims[:-1], "share of words", "share of words"),
    }
    coords = {"layer": [1], "head": np.arange(1, HEADS + 1)}
    return xr.Dataset(describe(sums, "drawn"), coords=coords, attrs={"scores": write_scores([SHARE])})


def draw_interval(draw: np.random.Generator, world: str) -> tuple[float, float]:
    """The interval of the mean tau over runs of a world.

    With few words much of a score is chance, which is in the score before and in the change if it is taken from that.
    At random a head gains as often as it loses, whatever its score: a share of its way to the nearer end, 0 or 1.
    """
    share = draw.beta(2, 6, HEADS)
    of_fold = draw.beta(9 * share[:, None], 9 * (1 - share[:, None]), (HEADS, FOLDS))
    slope = {"rich": 0.15, "poor": -0.15}.get(world, 0) * (share - share.mean()) * np.ones(HEADS)
    items, still = FEW if world == "few words" else MANY, world in ("nothing", "few words")
    after = []
    for _ in range(RUNS):
        noise = np.zeros((HEADS, 1)) if still else draw.uniform(-0.5, 0.5, (HEADS, 1))
        changed = of_fold + noise * np.minimum(of_fold, 1 - of_fold)
        after.append(draw.binomial(items, np.clip(changed + slope[..., None], 0.001, 0.999)))
    before = make_table(draw.binomial(items, of_fold), items)
    runs = make_table(np.stack(after), items)
    change = correlate_change(before, {"task": runs}, "right_share", before["right_share"].notnull())
    return change["baseline_tau_mean_lower"].values.item(), change["baseline_tau_mean_upper"].values.item()
