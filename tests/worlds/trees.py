"""Worlds of hidden states of which one layer may have the trees of the texts: what the terminal says of them."""

import io
import re
from pathlib import Path
from unittest import mock

import numpy as np
from rich.console import Console

from headscope.learn import probe_training
from headscope.learn.probe_data import Block
from headscope.learn.structural_probe import measure_uuas
from headscope.view.probes_report import print_probes
from probe_tables import make_probes
from probe_worlds import TEXTS, WORDS, make_block

LAYERS, BEST, WIDTH = 3, 1, 11
TRAIN, HELD_OUT, TEST = 3, 2, 6
"""Batches of texts."""

EPOCHS = 17
"""The most; the probe is nearly as good as it gets."""

SIZE = 1.5
"""By how much a link parts two words in the layer that has the trees, in standard deviations of noise."""

CHANCE = 2 / WORDS
"""The share of links that a tree at random has, of all trees over the words."""


def by_tree(maps: np.ndarray, types: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A random tree in each text: every word but the first has a head before it, and the first is the root."""
    heads = [[random.integers(0, word) if word else WORDS for word in range(WORDS)] for _ in types]
    return np.array(heads)


def place_words(heads: list[int], width: int) -> np.ndarray:
    """Return a state for each word of a tree, whose squared distances are those of the tree."""
    states = np.zeros((WORDS, width))
    for word in range(1, WORDS):
        # Each link is a direction of its own, along which a word is one further than its head.
        states[word] = states[heads[word]]
        states[word, word] += 1
    return states


def make_world(folder: Path, name: str, random: np.random.Generator, size: float) -> Block:
    """A batch of texts and their hidden states: noise in all layers, and the trees in one of them."""
    block = make_block(folder, name, by_tree, random)
    states = random.normal(size=(LAYERS, TEXTS, WORDS, WIDTH))
    states[BEST] += [size * place_words(heads, WIDTH) for heads in block.questions.target.tolist()]
    path = folder / f"{name}-hidden.npy"
    np.save(path, states.astype(np.float32))
    return Block(block.questions, block.maps, path)


def read_sentence(folder: Path, seed: int, *, size: float = 0.0) -> tuple[int, float, float]:
    """The layer that the terminal names, and the ends of the interval of what is found in it."""
    random = np.random.default_rng(seed)
    blocks = [make_world(folder, str(number), random, size) for number in range(TRAIN + HELD_OUT + TEST)]
    train, held_out, test = np.split(np.array(blocks, dtype=object), np.cumsum([TRAIN, HELD_OUT]))
    with mock.patch.object(probe_training, "MAX_EPOCHS", EPOCHS):
        sums = measure_uuas([*train], [*held_out], [*test], LAYERS, rank=WIDTH, seed=seed)
    said = io.StringIO()
    print_probes(make_probes(structural=sums), Console(file=said, width=300))
    layer = re.search(r"Structural probe .* UUAS [\d.]+ \[([\d.]+), ([\d.]+)\] on layer (\d+),", said.getvalue())
    assert layer is not None, said.getvalue()
    lower, upper, named = layer.groups()
    return int(named), float(lower) / 100, float(upper) / 100


def finds_trees(sentence: tuple[int, float, float]) -> bool:
    """Return whether more is found than trees at random have."""
    return sentence[1] > CHANCE
