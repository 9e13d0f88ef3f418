"""Tokens at a fixed distance, weight by weight."""

import math
from collections.abc import Sequence

import numpy as np

from witnesses.seen import Seen

ROWS = {
    "previous token": -1,
    "2 tokens back": -2,
    "3 tokens back": -3,
    "4 tokens back": -4,
    "next token": 1,
    "2 tokens ahead": 2,
    "3 tokens ahead": 3,
    "4 tokens ahead": 4,
}


def nearby_tokens(
    documents: Sequence[Seen], *, causal: bool
) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray, int]]:
    """Of each row the mean attention of each layer and head, that to the token nearer and to the one farther away, what
    uniform attention gives, and the number of tokens. A token that would be outside of the text gets as much.
    """
    layers, heads = documents[0].weights.shape[:2]
    alone = causal and all(token.position >= 0 for seen in documents for token in seen.queries)
    rows = {}
    for name, distance in ROWS.items():
        total, beside, uniform = np.zeros((layers, heads)), np.zeros((layers, heads, 2)), np.zeros((layers, 1))
        count = 0
        for seen in documents:
            keys = {token.position: key for key, token in enumerate(seen.keys) if token.position >= 0}
            for query, token in enumerate(seen.queries):
                if token.position < 0 or token.position + distance not in keys or (alone and distance > 0):
                    continue
                count += 1
                total += seen.weights[:, :, query, keys[token.position + distance]]
                step = 1 if distance > 0 else -1
                for side, other in enumerate((distance - step, distance + step)):
                    inside = other if token.position + other in keys else distance
                    beside[:, :, side] += seen.weights[:, :, query, keys[token.position + inside]]
                uniform += 1 / seen.visible[:, query].sum(-1, keepdims=True)
        number = count or math.nan
        rows[name] = total / number, beside / number, uniform / number, count
    return rows
