"""From scores to choices; the best tree, beside all trees."""

from itertools import product

import pytest
import torch

from headscope.learn.decode import decode
from headscope.learn.probe_data import Questions


def make_questions(words: int, chosen_for: list[bool]) -> Questions:
    size = (1, words)
    target = torch.zeros(size, dtype=torch.long).masked_fill(~torch.tensor([chosen_for]), -1)
    others = ~torch.eye(words, dtype=torch.bool)[None]
    candidates = torch.cat([others, torch.ones(1, words, 1, dtype=torch.bool)], -1)
    filler = torch.zeros(size, dtype=torch.long)
    right = torch.zeros_like(candidates)
    return Questions(filler, torch.ones(size, dtype=torch.bool), candidates, right, target, filler, filler, filler)


def is_tree(heads: tuple[int, ...], root: int) -> bool:
    """True if every word leads to the root, which has one child."""
    for word in range(len(heads)):
        seen = {word}
        while (word := heads[word]) != root:
            if word in seen:
                return False
            seen.add(word)
    return heads.count(root) == 1


@pytest.mark.parametrize("seed", range(7))
def test_the_tree_is_the_best_of_all_trees(seed: int) -> None:
    words = 5
    scores = torch.randn(1, words, words + 1, generator=torch.Generator().manual_seed(seed))
    questions = make_questions(words, [True] * words)
    scores = scores.masked_fill(~questions.candidates, -torch.inf)
    trees = [heads for heads in product(range(words + 1), repeat=words) if is_tree(heads, words)]
    best = max(trees, key=lambda heads: sum(float(scores[0, word, head]) for word, head in enumerate(heads)))
    assert tuple(decode(scores, questions, "tree")[0].tolist()) == best
    assert decode(scores, questions, "word")[0].tolist() == scores[0].argmax(-1).tolist()


def test_words_that_are_not_chosen_for_are_no_part_of_the_tree() -> None:
    words = 3
    scores = torch.zeros(1, words, words + 1)
    scores[0, 0, 1] = scores[0, 2, 1] = 9.0  # the best head of both, which is punctuation
    scores[0, 0, 2] = scores[0, 2, 3] = 1.0
    choices = decode(scores, make_questions(words, [True, False, True]), "tree")[0].tolist()
    assert (choices[0], choices[2]) == (2, 3)
