"""The interval of a proportion of items in clusters, such as an accuracy over texts, that also covers near 0 and 1."""

import math

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

PROPORTIONS = np.sin(np.linspace(0, np.pi / 2, 130)[1:-1]) ** 2
"""The proportions that are weighed, even in the arcsine of the root: on them Jeffreys' prior is uniform."""

CORRELATIONS = np.array([1e-3, 0.03, 0.1, 0.2, 0.3, 0.45])
"""The correlations between items of a cluster that are weighed, each as likely as another before the data."""

EXACT, ERROR = 16, 0.01
"""The count from which on the likelihood is interpolated, and the most that this may change that of a fold by."""

FEW = 50
"""Up to as many items a single right or wrong one does not bound the interval, since counts are too coarse (Brown, Cai
and DasGupta 2001, section 4.1.2)."""

BLOCK = 4096
"""Cells that are weighed together: some 25 MB."""


def credible_interval(
    right: Float[np.ndarray, "*head row fold"], items: Float[np.ndarray, "row fold"], level: float
) -> tuple[Float[np.ndarray, "*head row"], Float[np.ndarray, "*head row"]]:
    """Return the ends of the equal-tailed posterior interval of a beta-binomial proportion (Skellam 1948).

    The items of each fold are right with a probability of its own, from a beta distribution around the proportion. The
    prior is Jeffreys' for the proportion, and uniform over `CORRELATIONS`. Where nothing is right, the lower end is 0;
    where all is right, the upper end is 1; of up to `FEW` items, also where one is.

    Args:
        right: the number of items that are right in each fold, or the sum of their shares, of each head and row.
        items: the number of items in each fold, which all heads have in common.
        level: such as 0.95.
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
    """Return the ends of the intervals of some rows, by head."""
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
    """Return for each cell the proportion below which this much of the mass lies, between two of `PROPORTIONS`."""
    after = (below < probability).sum(1, keepdims=True).clip(1, len(PROPORTIONS) - 1)
    low, high = (np.take_along_axis(below, at, 1)[:, 0] for at in (after - 1, after))
    share = ((probability - low) / (high - low)).clip(0, 1)
    below_it, above_it = PROPORTIONS[after[:, 0] - 1], PROPORTIONS[after[:, 0]]
    return np.asarray(below_it + share * (above_it - below_it))


def _count_steps(count: float) -> float:
    """Return the number of knots below a count."""
    beyond = max(0.0, count - EXACT)
    return min(count, EXACT) + (math.sqrt(1 + 8 * ERROR * beyond) - 1) / (4 * ERROR)


def _tabulate(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the counts at the knots, and what each adds to the logarithms of the likelihoods.

    For counts of what is right, then of what is wrong, these are logarithms of rising factorials of the beta
    distributions, and for counts of all items those of their reciprocals.

    The knots are `steps` + 1 counts. The second derivative of log-gamma is about 1/x, so that a step of h at x is wrong
    by h^2 / 8x; the steps grow so that this stays below `ERROR`.
    """
    beyond = (np.arange(steps + 1) - EXACT).clip(min=0)
    knots = np.arange(steps + 1) + 2 * ERROR * beyond**2
    scale = 1 / CORRELATIONS - 1
    first, second = (np.outer(scale, part).ravel() for part in (PROPORTIONS, 1 - PROPORTIONS))
    right, wrong, every = (gammaln(each + knots[:, None]) - gammaln(each) for each in (first, second, first + second))
    return knots, np.concatenate([right, wrong, -every])


def _weigh_knots(counts: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Return for each cell how often each knot stands for the counts of its folds, which lie between two knots."""
    cells, size = len(counts), len(knots)
    after = np.searchsorted(knots, counts, side="right").clip(1, size - 1)
    share = (counts - knots[after - 1]) / (knots[after] - knots[after - 1])
    at = (np.arange(cells)[:, None] * size + after).ravel()
    weights = np.bincount(at, share.ravel(), cells * size)
    weights[:-1] += np.bincount(at, 1 - share.ravel(), cells * size)[1:]
    return weights.reshape(cells, size)
