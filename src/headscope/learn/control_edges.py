"""The control task for choices between words (Hewitt and Liang 2019, section 2): memorizing word types is all it takes.

Each word type attaches, wherever it occurs, to itself, to the first or to the last word of its text, at random. What a
probe scores on the task above what it scores on the control is its *selectivity*.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headscope.learn.probe_data import Block, Questions

BEHAVIOURS = 3
"""Itself, the first word, the last word."""


@dataclass(frozen=True, eq=False)
class ControlTask:
    """A random behaviour for each word type.

    Attributes:
        behaviour: of each type, by its number.
        seen: the types that occur in training; others cannot be known and are left out.
    """

    behaviour: Int[Tensor, " type"]
    seen: Bool[Tensor, " type"]

    @classmethod
    def sample(cls, types: int, train: Sequence[Block], *, seed: int) -> "ControlTask":
        """A control task for the words that are chosen for."""
        behaviour = torch.randint(BEHAVIOURS, (types,), generator=torch.Generator().manual_seed(seed))
        seen = torch.zeros(types, dtype=torch.bool)
        for block in train:
            seen[block.questions.words[block.questions.chosen_for]] = True
        return cls(behaviour, seen)

    def __call__(self, questions: Questions) -> Questions:
        """The same words, with the answers of the control. A word may choose itself, and must choose some word."""
        words = questions.words.shape[1]
        itself = torch.arange(words).expand_as(questions.words)
        last = (questions.real.sum(1, keepdim=True) - 1).clamp_min(0).expand_as(itself)
        answers = torch.stack([itself, torch.zeros_like(itself), last])
        target = answers.gather(0, self.behaviour[questions.words][None])[0]
        no_root = torch.zeros(*questions.words.shape, 1, dtype=torch.bool)
        candidates = torch.cat([questions.real[:, None].expand(-1, words, -1), no_root], -1)
        # Padding has no candidate, and is chosen for nowhere.
        return questions.keep(self.seen[questions.words]).answer(target, candidates)
