"""The structural probe: distances in trees beside networkx's, and hidden states in which the tree is planted."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch

from headscope.learn.probe_data import Block, Questions
from headscope.learn.structural_probe import StructuralProbe, list_links, measure_tree_distances, measure_uuas
from probe_worlds import TEXTS, WORDS, make_block
from worlds.trees import by_tree, place_words

LAYERS, WIDTH = 3, 13


def make_tree_block(folder: Path, name: str, random: np.random.Generator) -> Block:
    """Layer 0 is noise; in layer 1 the squared distances are those of the tree; in layer 2 noise hides them."""
    block = make_block(folder, name, by_tree, random)
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(WIDTH, WIDTH)))[0]
    states = random.normal(size=(LAYERS, TEXTS, WORDS, WIDTH))
    states[1] = [place_words(heads, WIDTH) for heads in block.questions.target.tolist()]
    states[2] = (
        states[1] + np.pad(random.normal(size=(TEXTS, WORDS, WIDTH - WORDS)), ((0, 0), (0, 0), (WORDS, 0)))
    ) @ turn
    path = folder / f"{name}-hidden.npy"
    np.save(path, states.astype(np.float32))
    return Block(block.questions, block.maps, path)


@pytest.fixture(scope="module")
def blocks(tmp_path_factory) -> list[Block]:
    folder, random = tmp_path_factory.mktemp("trees"), np.random.default_rng(0)
    return [make_tree_block(folder, str(number), random) for number in range(31)]


def test_distances_are_those_of_networkx(blocks: list[Block]) -> None:
    questions = blocks[0].questions
    distances = measure_tree_distances(questions)
    for text in range(5):
        words, links = list_links(questions, text)
        lengths = dict(nx.all_pairs_shortest_path_length(nx.Graph(links)))
        assert words == list(range(WORDS))
        for word, other in np.ndindex(WORDS, WORDS):
            assert distances[text, word, other] == lengths[word][other]


def test_words_without_a_place_in_the_tree_have_no_distance(blocks: list[Block]) -> None:
    questions = blocks[0].questions
    kept = torch.ones_like(questions.real)
    kept[:, 3] = False
    distances = measure_tree_distances(Questions(**{**vars(questions), "target": questions.target.where(kept, -1)}))
    assert distances[:, 3].isnan().all()
    assert distances[:, :, 3].isnan().all()


def test_planted_trees_are_found_and_noise_is_not(blocks: list[Block]) -> None:
    sums = measure_uuas(blocks[:11], blocks[23:27], blocks[27:], LAYERS, rank=WORDS, seed=0)
    assert sums["links"].sum() == 4 * TEXTS * (WORDS - 1)
    noise, planted, turned = sums["links_found"].sum(1) / sums["links"].sum()
    assert planted > 0.99
    assert turned > 0.95
    # Of all spanning trees over 7 words, one picked at random has each link with probability 2/7.
    assert abs(noise - 2 / WORDS) < 0.1


def test_squared_distances_are_those_of_the_map() -> None:
    torch.manual_seed(0)
    probe, states = StructuralProbe(WIDTH, 4), torch.randn(2, WORDS, WIDTH)
    projected = states @ probe.projection
    expected = ((projected[:, :, None] - projected[:, None]) ** 2).sum(-1)
    torch.testing.assert_close(probe(states), expected, atol=1e-5, rtol=1e-4)
