"""How far apart the attention of two heads is: Clark et al. 2019, section 6."""

from collections.abc import Sequence

import numpy as np
from scipy.special import rel_entr

from witnesses.seen import Seen


def head_distances(seen: Sequence[Seen]) -> np.ndarray:
    """Per two heads the mean over documents of the mean over queries of their Jensen-Shannon divergence, in nats."""
    layers, heads = seen[0].weights.shape[:2]
    total = np.zeros((layers, heads, layers, heads))
    for text in seen:
        maps = text.weights.astype(np.float64)
        for first in np.ndindex(layers, heads):
            for second in np.ndindex(layers, heads):
                rows = [divergence(*pair) for pair in zip(maps[first], maps[second], strict=True)]
                total[(*first, *second)] += np.mean(rows)
    return total / len(seen)


def divergence(first: np.ndarray, second: np.ndarray) -> float:
    """The Jensen-Shannon divergence: the mean of what each has beyond the average of both."""
    average = (first + second) / 2
    return float((rel_entr(first, average) + rel_entr(second, average)).sum() / 2)
