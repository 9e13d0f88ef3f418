"""Decoding of scores: the best candidate of each word separately, or the best tree over the words of a text."""

import warnings

import networkx as nx
from jaxtyping import Float, Int
from torch import Tensor

from headscope.learn.probe_data import Questions

ONE_ROOT = 1e6
"""The penalty for each word without a syntactic head, so that a tree with one root beats all trees with several."""


def decode(
    scores: Float[Tensor, "document word candidate"], questions: Questions, way: str
) -> Int[Tensor, "document word"]:
    """Choose a candidate for each word, by the scores of the candidates.

    The last candidate means that a word has no syntactic head. The result for words without a question is arbitrary.

    Args:
        scores: The score of each candidate.
        questions: The questions of the batch.
        way: ``word`` chooses the best candidate of each word. ``tree`` chooses the tree with one root over the words
            with a question whose scores have the largest sum (Edmonds' algorithm).
    """
    choices = scores.argmax(-1)
    if way == "tree":
        for place in range(len(scores)):
            words = questions.chosen_for[place].nonzero()[:, 0].tolist()
            for word, head in _find_tree(scores[place], words).items():
                choices[place, word] = head
    return choices


def _find_tree(scores: Float[Tensor, "word candidate"], words: list[int]) -> dict[int, int]:
    """Return the syntactic head of each given word in the maximum spanning tree; empty without words."""
    if not words:
        return {}
    root = scores.shape[1] - 1
    values = scores.double().tolist()
    graph = nx.DiGraph()
    for word in words:
        graph.add_edge(root, word, weight=values[word][root] - ONE_ROOT)
        graph.add_weighted_edges_from((head, word, values[word][head]) for head in words if head != word)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        tree = nx.maximum_spanning_arborescence(graph)
    return {word: head for head, word in tree.edges}
