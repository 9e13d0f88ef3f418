"""How alike two models attend: Kovaleva et al. 2019, section 4.3."""

from collections.abc import Sequence

import numpy as np
from scipy.spatial.distance import cosine

from witnesses.seen import Seen


def similarity(before: Sequence[Seen], after: Sequence[Seen]) -> np.ndarray:
    """Per layer and head the mean over documents of the cosine of the two flattened maps."""
    layers, heads = before[0].weights.shape[:2]
    total = np.zeros((layers, heads))
    for first, second in zip(before, after, strict=True):
        assert first.document.id == second.document.id
        for layer in range(layers):
            for head in range(heads):
                maps = (seen.weights[layer, head].ravel() for seen in (first, second))
                total[layer, head] += 1 - cosine(*maps)
    return total / len(before)
