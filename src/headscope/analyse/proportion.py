"""An interval for a proportion of items in clusters, such as an accuracy over texts, that also holds near 0 and 1."""

import math

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

PROPORTIONS = np.sin(np.linspace(0, np.pi / 2, 130)[1:-1]) ** 2
"""The grid of proportions, even on the arcsine of the square root: on this scale Jeffreys' prior is uniform."""

CORRELATIONS = np.array([1e-3, 0.03, 0.1, 0.2, 0.3, 0.45])
"""The grid of correlations between the items of a cluster; before the data all have the same probability."""

EXACT, ERROR = 16, 0.01
"""The count from which the likelihood is interpolated, and the largest error of a fold's log-likelihood from it."""

FEW = 50
"""The number of items up to which one right item leaves the lower end at 0, and one wrong item the upper end at 1.

Counts of few items are too coarse (Brown, Cai and DasGupta 2001, section 4.1.2).
"""

BLOCK = 4096
"""The number of cells (a head and a row) that are computed together: about 25 MB."""


def credible_interval(
    right: Float[np.ndarray, "*head row fold"], items: Float[np.ndarray, "row fold"], level: float
) -> tuple[Float[np.ndarray, "*head row"], Float[np.ndarray, "*head row"]]:
    """Return the ends of the equal-tailed posterior interval of a beta-binomial proportion (Skellam 1948).

    Each fold has its own probability that an item is right, from a beta distribution around the proportion. The prior
    is Jeffreys' for the proportion, and uniform over `CORRELATIONS`. If no item is right, the lower end is 0; if all
    items are right, the upper end is 1. With up to `FEW` items, this also holds if one item is right, or one is wrong.

    Args:
        right: The number of right items in each fold, or the sum of their shares, for each head and row.
        items: The number of items in each fold, which is the same for all heads.
        level: The level of the interval, such as 0.95.
    """
    knots, logs = _tabulate(math.ceil(_count_steps(items.max(initial=1))))
    heads = right.reshape(-1, *items.shape)
    step = max(1, BLOCK // max(1, len(heads)))
    blocks = (slice(start, start + step) for start in range(0, len(items), step))
    ends = [_weigh_proportions(heads[:, block], items[block], knots, logs, level) for block in blocks]
    lower, upper = np.concatenate([np.empty((2, len(heads), 0)), *ends], axis=2).reshape(2, *right.shape[:-1])
    return lower, upper


def _weigh_proportions(
    right: np.ndarray, items: np.ndarray, knots: np.ndarray, logs: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and the upper ends of the intervals for each head and row."""
    wrong = (items - right).clip(min=0)
    counts = [_weigh_knots(part.reshape(-1, items.shape[1]), knots) for part in (right, wrong)]
    likelihood = (np.hstack(counts) @ logs[: 2 * len(knots)]).reshape(*right.shape[:2], -1)
    likelihood += _weigh_knots(items, knots) @ logs[2 * len(knots) :]
    likelihood -= likelihood.max(2, keepdims=True)
    mass = np.exp(likelihood, out=likelihood).reshape(-1, len(CORRELATIONS), len(PROPORTIONS)).sum(1)
    below = (mass.cumsum(1) - mass / 2) / mass.sum(1, keepdims=True)  # half of a mass lies on either side
    tail = (1 - level) / 2
    lower, upper = (_find_quantile(below, end).reshape(right.shape[:2]) for end in (tail, 1 - tail))
    most = np.where(items.sum(1) <= FEW, 1, 0)
    return np.where(right.sum(2) > most, lower, 0.0), np.where(wrong.sum(2) > most, upper, 1.0)


def _find_quantile(below: np.ndarray, probability: float) -> np.ndarray:
    """Return for each cell the proportion below which the share `probability` of the mass lies, by interpolation."""
    after = (below < probability).sum(1, keepdims=True).clip(1, len(PROPORTIONS) - 1)
    low, high = (np.take_along_axis(below, at, 1)[:, 0] for at in (after - 1, after))
    share = ((probability - low) / (high - low)).clip(0, 1)
    below_it, above_it = PROPORTIONS[after[:, 0] - 1], PROPORTIONS[after[:, 0]]
    return np.asarray(below_it + share * (above_it - below_it))


def _count_steps(count: float) -> float:
    """Return the number of steps between knots from 0 to a count, which may be a fraction."""
    beyond = max(0.0, count - EXACT)
    return min(count, EXACT) + (math.sqrt(1 + 8 * ERROR * beyond) - 1) / (4 * ERROR)


def _tabulate(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the counts at the knots, and the terms that each count adds to the logarithms of the likelihoods.

    For counts of right items, and then for counts of wrong items, these are logarithms of rising factorials of the beta
    distributions; for counts of all items, they are negative logarithms.

    The knots are `steps` + 1 counts. The second derivative of log-gamma is about 1/x, so a step of h at x has an error
    of h^2 / 8x; the steps grow so that this stays below `ERROR`.
    """
    beyond = (np.arange(steps + 1) - EXACT).clip(min=0)
    knots = np.arange(steps + 1) + 2 * ERROR * beyond**2
    scale = 1 / CORRELATIONS - 1
    first, second = (np.outer(scale, part).ravel() for part in (PROPORTIONS, 1 - PROPORTIONS))
    right, wrong, every = (gammaln(each + knots[:, None]) - gammaln(each) for each in (first, second, first + second))
    return knots, np.concatenate([right, wrong, -every])


def _weigh_knots(counts: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Return for each cell the weight of each knot, from interpolating the counts of its folds between two knots."""
    cells, size = len(counts), len(knots)
    after = np.searchsorted(knots, counts, side="right").clip(1, size - 1)
    share = (counts - knots[after - 1]) / (knots[after] - knots[after - 1])
    at = (np.arange(cells)[:, None] * size + after).ravel()
    weights = np.bincount(at, share.ravel(), cells * size)
    weights[:-1] += np.bincount(at, 1 - share.ravel(), cells * size)[1:]
    return weights.reshape(cells, size)
