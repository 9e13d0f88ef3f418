"""The structural probe of Hewitt and Manning (2019): tree distances between words from the hidden states of one layer.

A linear map of rank k is trained so that the squared distance of two words' images is their distance in the tree. The
minimum spanning tree of the distances is then compared with the tree: UUAS, the share of its links that are found,
whichever way they point. Punctuation is left out, also of the paths between words. A rank above 64 gained little in the
paper (figure 5).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path
from torch import Tensor, nn

from headscope.learn.probe_data import ALL, Block, Documents, Questions
from headscope.learn.probe_training import fit_until_worse
from headscope.reducers.support.folds import FOLDS

LEARNING_RATE = 1e-3
"""The learning rate of Adam, as in Hewitt and Manning 2019, section 3.2."""


class StructuralProbe(nn.Module):
    """A linear map of hidden states, such that squared distances between words approximate tree distances."""

    def __init__(self, width: int, rank: int) -> None:
        super().__init__()
        self.projection = nn.Parameter(torch.empty(width, rank).uniform_(-0.05, 0.05))

    def forward(self, states: Float[Tensor, "document word width"]) -> Float[Tensor, "document word word"]:
        """Return the squared distance between each two words of each text."""
        projected = states @ self.projection
        squares = (projected**2).sum(-1)
        products = projected @ projected.mT
        return squares[:, :, None] + squares[:, None] - 2 * products


@dataclass(frozen=True, eq=False)
class TreeReader:
    """The batches, with the hidden states of a layer and the tree distances between words.

    Attributes:
        blocks: The batches.
        layer: The layer; 0 means the embeddings.
        distances: For each batch, the distances by document, word and word; NaN if two words are not connected.
    """

    blocks: Sequence[Block]
    layer: int
    distances: Sequence[Tensor] = field(repr=False)

    def load(self, place: int, documents: Documents = ALL) -> tuple[Tensor, Tensor]:
        """Load the tree distances and hidden states of some documents of the batch with the index `place`."""
        return self.distances[place][documents], self.blocks[place].load_hidden(self.layer, documents)

    def join(self, batches: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Join loaded batches whose texts have the same number of words."""
        distances, states = zip(*batches, strict=True)
        return torch.cat(distances), torch.cat(states)

    def sum_losses(self, probe: nn.Module, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, int]:
        """Return the sum of the losses of texts, and the number of texts with links.

        The loss of a text is the mean absolute error over its pairs of words.
        """
        distances, states = batch
        known = ~distances.isnan()
        errors = (probe(states) - distances.nan_to_num()).abs() * known
        pairs = known.sum((1, 2))
        return (errors.sum((1, 2)) / pairs.clamp_min(1)).sum(), int((pairs > 0).sum())


def measure_uuas(
    train: Sequence[Block], held_out: Sequence[Block], test: Sequence[Block], layers: int, *, rank: int, seed: int
) -> dict[str, np.ndarray]:
    """Train a structural probe on each layer, and count the links that its trees have in common with the gold trees.

    Returns:
        The counts on test texts: ``links_found`` (layer, fold), and ``links`` (fold), the number of all gold links.
    """
    distances = [[measure_tree_distances(block.questions) for block in blocks] for blocks in (train, held_out)]
    correct = np.zeros((layers, FOLDS), dtype=np.int64)
    for layer in range(layers):
        known, stopping = TreeReader(train, layer, distances[0]), TreeReader(held_out, layer, distances[1])
        width = train[0].load_hidden(layer).shape[-1]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            probe = StructuralProbe(width, min(rank, width))
        fit_until_worse(probe, known, stopping, LEARNING_RATE, seed=seed)
        for block in test:
            correct[layer] += count_links_found(probe, block, layer)
    links = np.sum([count_links(block.questions) for block in test], axis=0)
    return {"links_found": correct, "links": links}


def measure_tree_distances(questions: Questions) -> Float[Tensor, "document word word"]:
    """Return the number of links between each two words in the tree of each text; NaN without a path."""
    size, width = questions.words.shape
    distances = np.full((size, width, width), np.nan, dtype=np.float32)
    for place in range(size):
        words, links = list_links(questions, place)
        if not links:
            continue
        graph = np.zeros((width, width))
        graph[tuple(zip(*links, strict=True))] = 1
        between = shortest_path(graph, directed=False, unweighted=True)[np.ix_(words, words)]
        distances[place][np.ix_(words, words)] = np.where(np.isinf(between), np.nan, between)
    return torch.from_numpy(distances)


def list_links(questions: Questions, document: int) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the words in the tree of a text, and its links as pairs of word and syntactic head."""
    width = questions.words.shape[1]
    heads = questions.target[document].tolist()
    words = [word for word, head in enumerate(heads) if head >= 0]
    return words, [(word, heads[word]) for word in words if heads[word] < width and heads[heads[word]] >= 0]


def count_links(questions: Questions) -> np.ndarray:
    """Count the links in the trees of a batch, by fold."""
    counts = np.zeros(FOLDS, dtype=np.int64)
    for place in range(len(questions.words)):
        _, links = list_links(questions, place)
        if links:
            counts[int(questions.fold[place].max())] += len(links)
    return counts


@torch.no_grad()
def count_links_found(probe: StructuralProbe, block: Block, layer: int) -> np.ndarray:
    """Count the links of a batch that are in the minimum spanning trees of the predicted distances, by fold."""
    counts = np.zeros(FOLDS, dtype=np.int64)
    predicted = probe(block.load_hidden(layer)).double().numpy()
    for place, distances in enumerate(predicted):
        words, links = list_links(block.questions, place)
        if not links:
            continue
        # An entry of 0 would not count as an edge.
        tree: Any = minimum_spanning_tree(np.maximum(distances[np.ix_(words, words)], 1e-9))
        edges = {frozenset((words[a], words[b])) for a, b in zip(*tree.nonzero(), strict=True)}
        counts[int(block.questions.fold[place].max())] += sum(frozenset(link) in edges for link in links)
    return counts
