"""The average attention map of each head, weight by weight."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from witnesses.seen import Seen


def average_map(documents: Sequence[Seen], bins: int) -> np.ndarray:
    """Per layer and head the mean attention from the queries of each part to each part."""
    layers, heads = documents[0].weights.shape[:2]
    sums, queries = np.zeros((layers, heads, bins, bins)), np.zeros(bins)
    for seen in documents:
        from_parts, to_parts = (list_parts(len(side), bins) for side in (seen.queries, seen.keys))
        for query, here in enumerate(from_parts):
            for query_bin, share in here:
                queries[query_bin] += share
                for key, there in enumerate(to_parts):
                    for key_bin, part in there:
                        sums[:, :, query_bin, key_bin] += share * part * seen.weights[:, :, query, key]
    return sums / queries[:, None]


def list_parts(length: int, bins: int) -> list[list[tuple[int, float]]]:
    """Of each token of a text the parts in which it lies, each with its share of the token."""
    return [
        [(part, float(share)) for part in range(bins) if (share := find_share(place, length, part, bins)) > 0]
        for place in range(length)
    ]


def find_share(place: int, length: int, part: int, bins: int) -> Fraction:
    """The share of a token that lies in a part of a text of so many tokens."""
    start, end = Fraction(place, length), Fraction(place + 1, length)
    return (min(end, Fraction(part + 1, bins)) - max(start, Fraction(part, bins))) * length
