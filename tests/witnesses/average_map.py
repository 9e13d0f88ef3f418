"""The average attention map of each head, weight by weight."""

import math
from collections.abc import Sequence

import numpy as np

from witnesses.seen import Seen


def average_map(documents: Sequence[Seen], bins: int) -> np.ndarray:
    """Per layer and head the mean attention from the queries of each part to each part; NaN without a query."""
    layers, heads = documents[0].weights.shape[:2]
    means = np.full((layers, heads, bins, bins), math.nan)
    for layer, head, query_bin in np.ndindex(layers, heads, bins):
        rows = []
        for seen in documents:
            for query in range(len(seen.queries)):
                if find_bin(query, len(seen.queries), bins) == query_bin:
                    row = [0.0] * bins
                    for key in range(len(seen.keys)):
                        row[find_bin(key, len(seen.keys), bins)] += seen.weights[layer, head, query, key]
                    rows.append(row)
        if rows:
            means[layer, head, query_bin] = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    return means


def find_bin(place: int, length: int, bins: int) -> int:
    """The last part that begins at a token or before it: part b begins b parts of the length behind the first token."""
    return max(part for part in range(bins) if part * length <= place * bins)
