"""How alike two models attend: Kovaleva et al. 2019, section 4.3."""

from collections.abc import Sequence

import numpy as np
from scipy.spatial.distance import cosine

from witnesses.seen import Seen


def similarity(before: Sequence[Seen], after: Sequence[Seen]) -> np.ndarray:
    """Per layer and head the mean over documents of the cosine of the two flattened maps."""
    layers, heads = before[0].weights.shape[:2]
    total = np.zeros((layers, heads))
    for one, other in zip(before, after, strict=True):
        assert one.document.id == other.document.id
        for layer in range(layers):
            for head in range(heads):
                total[layer, head] += 1 - cosine(one.weights[layer, head].ravel(), other.weights[layer, head].ravel())
    return total / len(before)
