"""Means, and how far they are from the truth."""

import math
from collections.abc import Hashable, Sequence

import numpy as np
import statsmodels.api


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if len(values) else math.nan


def effective_clusters(clusters: Sequence[Hashable]) -> float:
    """The number of equally large clusters that would say as much as those of these items."""
    sizes = [sum(other == cluster for other in clusters) for cluster in dict.fromkeys(clusters)]
    return sum(sizes) ** 2 / sum(size**2 for size in sizes)


def clustered_error(correct: Sequence[bool], clusters: Sequence[str]) -> float:
    """The standard error of an accuracy whose links come in clusters; NaN where there is only one cluster.

    statsmodels' sandwich with its default small-sample factor: G / (G - 1) * (N - 1) / (N - K) on the variance, for G
    clusters, N links and K parameters. There is one parameter, the mean, so the factor is G / (G - 1).
    """
    names = sorted(set(clusters))
    if len(names) < 2:
        return math.nan
    groups = np.array([names.index(cluster) for cluster in clusters])
    ordinary = statsmodels.api.OLS(np.asarray(correct, dtype=float), np.ones(len(groups)))
    return float(ordinary.fit(cov_type="cluster", cov_kwds={"groups": groups}).bse[0])
