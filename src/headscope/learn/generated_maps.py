"""Generated attention maps with noise: any number of maps of each pattern.

A map is the softmax of scores. The scores are the sum of noise for each cell, a preference for each token, and the
pattern: columns, bands along the diagonal, or squares of two sentences.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from headscope.reducers.support.pattern_network import BLOCK, PATTERNS, make_images

LENGTHS = (5, 128)
"""The numbers of tokens of the shortest and of the longest map.

The shortest is two words with special tokens, the longest a pair of sentences.
"""

SINGLE = 0.3
"""The share of maps of a single sentence among maps that do not show the pattern `block`."""

UNIFORM = 0.4
"""The share of heterogeneous maps that are nearly uniform, as in an untrained model."""

CAUSAL = 0.3
"""The share of maps in which no token sees the tokens after it, as in a decoder."""

PARALLEL = 0.3
"""The share of bands at a random distance from the diagonal, up to a third of the length of the map.

Other bands are near the diagonal.
"""


def generate_images(
    count: int, seed: int = 0, lengths: tuple[int, int] = LENGTHS
) -> tuple[Float[Tensor, "map 2 side side"], Int64[Tensor, " map"]]:
    """Generate images of `count` maps of each pattern; return them with the number of the pattern of each image.

    Args:
        count: The number of maps of each pattern.
        seed: The seed of all random choices.
        lengths: The numbers of tokens of the shortest and the longest map.
    """
    generator = np.random.default_rng(seed)
    labels = torch.arange(len(PATTERNS)).repeat_interleave(count)
    names = list(PATTERNS)
    return torch.cat([_generate_image(names[label], lengths, generator) for label in labels]), labels


def _generate_image(
    pattern: str, lengths: tuple[int, int], generator: np.random.Generator
) -> Float[Tensor, "1 2 side side"]:
    """Generate the image of a map with the given pattern."""
    length = int(np.exp(generator.uniform(np.log(lengths[0]), np.log(lengths[1] + 1))))
    causal = bool(generator.random() < CAUSAL)
    scores = generator.normal(0, generator.uniform(0.0, 0.9), (length, length))
    scores += generator.normal(0, generator.uniform(0.0, 0.4), length)
    boundary = max(2, int(length * generator.uniform(0.3, 0.7)))
    if "vertical" in pattern:
        scores += _make_columns(length, generator, causal=causal)
    if "diagonal" in pattern:
        scores += _make_band(length, generator, causal=causal)
        if generator.random() < 0.4:
            # This is the band of a head that stays within a sentence: it has an edge at the separator, but no square.
            scores -= generator.uniform(0.5, 2.5) * ~_find_same_sentence(length, boundary)
    if pattern == BLOCK:
        scores += _make_squares(length, boundary, generator)
    if pattern == "heterogeneous":
        scores += _make_spots(length, generator)
        if generator.random() < UNIFORM:
            scores *= generator.uniform(0.0, 0.1)
    if causal:
        scores[np.triu_indices(length, 1)] = -np.inf
    weights = np.exp(scores - scores.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    pair = pattern == BLOCK or generator.random() > SINGLE
    return make_images(torch.from_numpy(weights)[None], (boundary - 1, length - 1) if pair else (length - 1,))


def _make_columns(length: int, generator: np.random.Generator, *, causal: bool) -> Float[np.ndarray, "query key"]:
    """Return scores that prefer one to four tokens for all queries, mostly including the first token ([CLS]).

    In a causal map, these tokens are in the first quarter, since the column of a later token has fewer cells.
    """
    scores = np.zeros((length, length))
    choices = max(length // 4, 1) if causal else length
    columns = generator.choice(choices, min(int(generator.integers(0, 4)), choices), replace=False).tolist()
    if not columns or generator.random() < 0.7:
        columns.append(0)
    for column in columns:
        scores[:, column] += generator.uniform(1.5, 4.5) + generator.normal(0, generator.uniform(0, 0.6), length)
    return scores


def _make_band(length: int, generator: np.random.Generator, *, causal: bool) -> Float[np.ndarray, "query key"]:
    """Return scores that prefer keys near one distance from the query, sometimes with a second band far away.

    In a causal map, the first band is at earlier tokens or at the token itself.
    """
    distance = np.arange(length) - np.arange(length)[:, None]
    width = generator.uniform(0.3, max(0.6, length / 16))
    height = generator.uniform(2.5, 6.0) + generator.normal(0, 0.5, (length, 1))
    reach = length // 3 if generator.random() < PARALLEL else min(2, length // 3)
    center = generator.integers(-reach, 1 if causal else reach + 1)
    band = height * np.exp(-(((distance - center) / width) ** 2) / 2)
    if generator.random() < 0.2:
        far = generator.choice([-1, 1]) * generator.integers(length // 3, length // 2 + 1)
        band += 0.8 * height * np.exp(-(((distance - far) / width) ** 2) / 2)
    return np.asarray(band)


def _make_squares(length: int, boundary: int, generator: np.random.Generator) -> Float[np.ndarray, "query key"]:
    """Return scores that prefer keys in the same sentence, often with a weak band and a preference for [CLS]."""
    scores = generator.uniform(1.2, 3.0) * _find_same_sentence(length, boundary)
    if generator.random() < 0.6:
        scores[:, 0] += generator.uniform(1.5, 4.0)
    if generator.random() < 0.6:
        scores += generator.uniform(0.2, 0.4) * _make_band(length, generator, causal=False)
    return np.asarray(scores + generator.normal(0, generator.uniform(0, 0.6), length))


def _make_spots(length: int, generator: np.random.Generator) -> Float[np.ndarray, "query key"]:
    """Return scores that prefer at most 5 % of the cells, chosen at random."""
    spots = generator.random((length, length)) < generator.uniform(0.0, 0.05)
    return spots * generator.uniform(1.0, 3.0, (length, length))


def _find_same_sentence(length: int, boundary: int) -> Bool[np.ndarray, "query key"]:
    """Return a mask of pairs of tokens in the same sentence; the second sentence begins at `boundary`."""
    second = np.arange(length) >= boundary
    return np.asarray(second == second[:, None])
