"""Attention between words: Clark et al. 2019, section 4.1."""

from collections.abc import Sequence

import numpy as np

from witnesses.means import mean
from witnesses.seen import Token


def word_weights(rows: np.ndarray, queries: Sequence[Token], keys: Sequence[Token], count: int) -> np.ndarray:
    """Attention between words: to a word the sum over its tokens, from it the mean. A word without tokens has zeros."""
    weights = np.zeros((count, count))
    for source in range(count):
        tokens = [q for q, token in enumerate(queries) if token.word == source]
        for target in range(count):
            columns = [k for k, token in enumerate(keys) if token.word == target]
            if tokens:
                weights[source, target] = mean([sum(rows[q][k] for k in columns) for q in tokens])
    return weights


def best_other(weights: Sequence[float], word: int) -> int | None:
    """The other word with the largest weight, the first of equals; None where no other word has any."""
    best = None
    for other, weight in enumerate(weights):
        if other != word and weight > (0 if best is None else weights[best]):
            best = other
    return best
