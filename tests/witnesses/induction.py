"""Tokens that come again, and what they attend to, weight by weight."""

import math
from collections.abc import Sequence

import numpy as np

from witnesses.seen import Seen


def induction(documents: Sequence[Seen]) -> dict[str, tuple[np.ndarray, int]]:
    """Of each match the mean attention of each layer and head, and the number of tokens that have it."""
    layers, heads = documents[0].weights.shape[:2]
    sums = {"induction": np.zeros((layers, heads)), "duplicate": np.zeros((layers, heads))}
    counts = dict.fromkeys(sums, 0)
    for seen in documents:
        for query, token in enumerate(seen.queries):
            earlier = [
                key
                for key, other in enumerate(seen.keys)
                if token.word is not None
                and other.word is not None
                and other.id == token.id
                and other.position < token.position
            ]
            if not earlier:
                continue
            counts["duplicate"] += 1
            sums["duplicate"] += seen.weights[:, :, query, earlier[-1]]
            behind = earlier[-1] + 1
            other = seen.keys[behind] if behind < len(seen.keys) else None
            if other is not None and other.word is not None and other.position < token.position:
                counts["induction"] += 1
                sums["induction"] += seen.weights[:, :, query, behind]
    return {name: (total / (counts[name] or math.nan), counts[name]) for name, total in sums.items()}
