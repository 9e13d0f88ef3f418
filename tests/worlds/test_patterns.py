"""Worlds of maps in which we chose what there is: the same patterns at every length, parallel bands, noise alone."""

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from headscope.learn.generated_maps import generate_images
from headscope.reducers.support.pattern_network import BLOCK, LEAST_TOKENS, PATTERNS, MapClassifier, make_images

NAMES = list(PATTERNS)
LENGTHS = (LEAST_TOKENS, 7, 8, 11, 17, 37, 61)
MAPS = 23
SINGLE = [name for name in NAMES if name != BLOCK]


def plant(pattern: str, length: int, random: np.random.Generator, offset: int = 0) -> torch.Tensor:
    """The image of a map of one sentence with noise, a column at the first token or a band at this distance."""
    scores = random.normal(0, 0.4, (length, length))
    place = np.arange(length)
    if "vertical" in pattern:
        scores[:, 0] += 3.5
    if "diagonal" in pattern:
        scores += 4.5 * (place - place[:, None] == offset)
    weights = np.exp(scores)
    weights /= weights.sum(1, keepdims=True)
    return make_images(torch.from_numpy(weights)[None], (length - 1,))


def label(images: list[torch.Tensor]) -> np.ndarray:
    return MapClassifier.read().classify(torch.cat(images)).numpy()


@pytest.mark.parametrize("pattern", SINGLE)
def test_the_same_pattern_has_the_same_label_at_every_length(pattern: str) -> None:
    random = np.random.default_rng(5)
    for length in LENGTHS:
        images = [plant(pattern, length, random, int(random.integers(-1, 2))) for _ in range(MAPS)]
        assert (label(images) == NAMES.index(pattern)).mean() > 0.9, length


@pytest.mark.parametrize("length", [13, 23, 47, 97])
def test_a_band_parallel_to_the_diagonal_is_a_diagonal(length: int) -> None:
    random = np.random.default_rng(length)
    for share in (1 / 8, 1 / 6, 1 / 4, 1 / 3):
        for side in (-1, 1):
            images = [plant("diagonal", length, random, side * int(share * length)) for _ in range(7)]
            assert (label(images) == NAMES.index("diagonal")).mean() > 0.8, (share, side)


def test_short_maps_that_are_generated_apart_are_told_apart() -> None:
    images, labels = generate_images(71, seed=1234, lengths=(LEAST_TOKENS, 16))
    assert f1_score(labels, label([images]), average="macro") > 0.86
