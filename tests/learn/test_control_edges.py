"""The control task: what a word type attaches to is arbitrary, and the same everywhere."""

import numpy as np
import torch

from headscope.learn.control_edges import ControlTask
from probe_worlds import TYPES, WORDS, at_random, make_data


def test_each_type_attaches_to_itself_the_first_or_the_last_word(tmp_path) -> None:
    blocks = make_data(tmp_path, at_random).blocks(range(20))
    control = ControlTask.sample(TYPES, blocks, seed=0)
    behaviours: dict[int, set[int]] = {}
    for block in blocks:
        questions = control(block.questions)
        assert questions.count == block.questions.count
        for text, word in np.ndindex(*questions.words.shape):
            target = int(questions.target[text, word])
            options = {word: "itself", 0: "first", WORDS - 1: "last"}
            assert target in options
            assert questions.candidates[text, word, target]
            if len(options) == 3:
                behaviours.setdefault(int(questions.words[text, word]), set()).add([word, 0, WORDS - 1].index(target))
        assert torch.equal(questions.right.nonzero()[:, 2], questions.target.flatten())
        assert not questions.candidates[..., -1].any()
    assert all(len(kinds) == 1 for kinds in behaviours.values())
    assert {next(iter(kinds)) for kinds in behaviours.values()} == {0, 1, 2}


def test_types_that_training_lacks_are_left_out(tmp_path) -> None:
    blocks = make_data(tmp_path, at_random).blocks(range(20))
    control = ControlTask.sample(TYPES + 1, blocks[:1], seed=0)
    assert not control.seen[TYPES]
    unseen = ControlTask(control.behaviour, torch.zeros_like(control.seen))
    assert unseen(blocks[1].questions).count == 0


def test_seeds_are_different_tasks(tmp_path) -> None:
    first, second = (ControlTask.sample(101, [], seed=seed).behaviour for seed in (0, 1))
    assert not torch.equal(first, second)
