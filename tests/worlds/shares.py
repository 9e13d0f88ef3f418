"""Worlds of items in texts: a share of them is right, as often as the world says, and alike within a text."""

from collections.abc import Callable

import numpy as np
import scipy.optimize
import xarray as xr
from scipy.special import expit

from headscope.analyse.report import CLUSTERS, MINIMUM
from headscope.analyse.significance import holm
from headscope.analyse.uncertainty import Lift, Ratio

LEVEL = 0.05

INSIDE, OUTSIDE = 6, 9
"""Words of a text in the mean that are to be found, and others."""

Draw = np.random.Generator


def mix_beta(draw: Draw, share: float, correlation: float, shape: tuple[int, ...]) -> np.ndarray:
    """Texts whose shares have a beta distribution."""
    scale = 1 / correlation - 1
    return draw.beta(share * scale, (1 - share) * scale, shape)


def mix_logistic(draw: Draw, share: float, correlation: float, shape: tuple[int, ...]) -> np.ndarray:
    """Texts whose shares have a logistic-normal distribution."""
    normal = np.random.default_rng(0).standard_normal(4001)

    def centre(spread: float) -> float:
        return float(scipy.optimize.brentq(lambda middle: expit(middle + spread * normal).mean() - share, -60, 60))

    def excess(spread: float) -> float:
        return float(expit(centre(spread) + spread * normal).var() - correlation * share * (1 - share))

    spread = scipy.optimize.brentq(excess, 1e-3, 12)
    return np.asarray(expit(centre(spread) + spread * draw.standard_normal(shape)))


def mix_two(draw: Draw, share: float, correlation: float, shape: tuple[int, ...]) -> np.ndarray:
    """Texts of two kinds, of which the rarer is much worse."""
    spread = np.sqrt(correlation * share * (1 - share))
    high = min(1.0, share + spread / 2)
    low = max(0.0, share - spread**2 / (high - share))
    return np.where(draw.random(shape) < (high - share) / (high - low), low, high)


MIXTURES: dict[str, Callable[..., np.ndarray]] = {"beta": mix_beta, "logistic": mix_logistic, "two kinds": mix_two}


def draw_ratio(
    draw: Draw, mixture: str, share: float, correlation: float, texts: int, items: int, worlds: int, *, equal: bool
) -> Ratio:
    """Return what a head gets right in each text of many worlds, of `items` items each or of 1 to twice as many."""
    counts = np.full((worlds, texts), items) if equal else draw.integers(1, 2 * items, (worlds, texts))
    shares = MIXTURES[mixture](draw, share, correlation, counts.shape) if correlation else share
    right = draw.binomial(counts, shares)
    return Ratio(*(xr.DataArray(part, dims=("world", "fold")) for part in (right, counts)))


def draw_f1(draw: Draw, recall: float, alarms: float, correlation: float, texts: int, worlds: int) -> Ratio:
    """Return the F1 of a head in many worlds: of words that it finds, by text, and of others that it finds falsely.

    A text has `INSIDE` words to find in the mean, one at least, and `OUTSIDE` others.
    """
    inside, outside = 1 + draw.poisson(INSIDE - 1, (worlds, texts)), draw.poisson(OUTSIDE, (worlds, texts))
    found, false = (
        draw.binomial(words, mix_beta(draw, share, correlation, words.shape) if correlation else share)
        for words, share in ((inside, recall), (outside, alarms))
    )
    return Ratio(*(xr.DataArray(part, dims=("world", "fold")) for part in (2 * found, found + false + inside)))


def cover(ratio: Ratio, share: float) -> float:
    """Return the part of the worlds whose interval holds the share."""
    lower, upper = ratio.interval()
    return float(((lower <= share) & (share <= upper)).mean())


OUTCOMES = {
    "as often": np.array([0.3, 0.15, 0.15, 0.4]), "hardly ever wrong": np.array([0.9, 0.03, 0.03, 0.04]),
    "hardly ever right": np.array([0.02, 0.03, 0.03, 0.92]),
}  # fmt: skip
"""Of items that a head and its rival both get right, that only the head does, only the rival, and neither."""


def draw_lifts(
    draw: Draw, outcomes: np.ndarray, texts: int, items: float, worlds: int, rows: int, *, alike: float, folds: int = 32
) -> Lift:
    """Return heads and rivals in many worlds of many rows, on the half of the folds on which they are scored.

    Args:
        draw: of random numbers.
        outcomes: as `OUTCOMES`.
        texts: in folds at random.
        items: of a text and row, in the mean; rows differ, and texts do.
        worlds: how many.
        rows: of each world.
        alike: the correlation between the items of a text.
        folds: the number of folds.
    """
    mean = items * draw.lognormal(0, 1, (worlds, rows, 1)) * draw.lognormal(0, 0.5, (worlds, 1, texts))
    counts = draw.poisson(mean)
    of_text = draw.gamma(np.broadcast_to((1 / alike - 1) * outcomes, (*counts.shape, 4))) + 1e-12
    right = draw.multinomial(counts, of_text / of_text.sum(-1, keepdims=True))
    fold = np.eye(folds)[draw.integers(0, folds, texts)]
    parts = (right[..., 0] + right[..., 1], right[..., 0] + right[..., 2], counts)
    head, rival, every = (xr.DataArray(part @ fold, dims=("world", "row", "fold")) for part in parts)
    return Lift(Ratio(head, every), Ratio(rival, every))


def find_stars(lift: Lift) -> np.ndarray:
    """Return which rows of which worlds stand out, as `headscope.analyse.report` judges them."""
    decided = (lift.clusters >= CLUSTERS) & (lift.head.denominator.sum("fold") >= MINIMUM)
    p = np.array([holm(each) for each in lift.p_value().where(decided).values])
    return (p < LEVEL) & (lift.interval()[0].values > 0)
