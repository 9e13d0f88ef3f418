"""Attention between the units of a text, from what a model returns: Clark et al. 2019, section 4.1."""

from collections.abc import Sequence

import numpy as np

from witnesses.means import mean


def unit_weights(rows: np.ndarray, queries: Sequence[Sequence[int]], keys: Sequence[Sequence[int]]) -> np.ndarray:
    """Attention from units to units, each given by its tokens: to a unit the sum over these, from it their mean."""
    weights = np.zeros((len(queries), len(keys)))
    for source, tokens in enumerate(queries):
        for target, columns in enumerate(keys):
            weights[source, target] = mean([sum(rows[query][key] for key in columns) for query in tokens])
    return weights
