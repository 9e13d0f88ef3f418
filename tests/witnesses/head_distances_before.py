"""How far the heads of a model are from those of the model before, as `witnesses.head_distances` has it."""

from collections.abc import Sequence

import numpy as np

from witnesses.head_distances import divergence
from witnesses.seen import Seen


def head_distances_before(after: Sequence[Seen], before: Sequence[Seen]) -> np.ndarray:
    """Per head and head before the mean over documents of the mean over queries of their divergence, in nats."""
    layers, heads = after[0].weights.shape[:2]
    total = np.zeros((layers, heads, layers, heads))
    for text, text_before in zip(after, before, strict=True):
        assert text.document.id == text_before.document.id
        maps, maps_before = (seen.weights.astype(np.float64) for seen in (text, text_before))
        for head in np.ndindex(layers, heads):
            for other in np.ndindex(layers, heads):
                rows = zip(maps[head], maps_before[other], strict=True)
                total[(*head, *other)] += np.mean([divergence(*pair) for pair in rows])
    return total / len(after)
