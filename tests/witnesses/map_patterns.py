"""Patterns of attention maps: Kovaleva et al. 2019, section 4.1."""

from collections.abc import Callable, Sequence
from math import ceil, floor

import numpy as np

from witnesses.seen import Seen

SIDE = 48
LEAST_TOKENS = 6


def draw_image(weights: np.ndarray, separators: Sequence[int]) -> np.ndarray:
    """The square root of the largest weight in each part of the map, and which parts are of one sentence."""
    queries, keys = weights.shape
    image = np.zeros((2, SIDE, SIDE))
    for row in range(SIDE):
        for column in range(SIDE):
            rows = range(floor(row * queries / SIDE), ceil((row + 1) * queries / SIDE))
            columns = range(floor(column * keys / SIDE), ceil((column + 1) * keys / SIDE))
            image[0, row, column] = max(weights[query, key] for query in rows for key in columns)
            places = [int((place + 0.5) * keys / SIDE) for place in (row, column)]
            first, second = (sum(separator < place for separator in separators) for place in places)
            image[1, row, column] = first == second
    image[0] = np.sqrt(image[0] / image[0].max())
    return image


def map_patterns(seen: Sequence[Seen], classify: Callable[[np.ndarray], int], patterns: int) -> np.ndarray:
    """Per head and pattern the share of maps that a classifier of images says show it; short ones do not count."""
    shown = np.zeros((*seen[0].weights.shape[:2], patterns))
    long = [text for text in seen if min(text.weights.shape[2:]) >= LEAST_TOKENS]
    for text in long:
        ends = [place for place, token in enumerate(text.keys) if token.kind == "sep"]
        for head in np.ndindex(shown.shape[:2]):
            shown[(*head, classify(draw_image(text.weights[head], ends)))] += 1
    return shown / len(long)
