"""The control task for choices between words (Hewitt and Liang 2019, section 2), which needs only memorized word types.

Each word type attaches, wherever it occurs, to itself, to the first or to the last word of its text, at random. The
score of a probe on the task less its score on the control is its *selectivity*.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headscope.learn.probe_data import Block, Questions

BEHAVIOURS = 3
"""The number of behaviours: attach to itself, to the first word, or to the last word."""


@dataclass(frozen=True, eq=False)
class ControlTask:
    """A random behaviour for each word type.

    Attributes:
        behaviour: The behaviour of each type, by the number of the type.
        seen: The types that occur in training; other types cannot be known and are left out.
    """

    behaviour: Int[Tensor, " type"]
    seen: Bool[Tensor, " type"]

    @classmethod
    def sample(cls, types: int, train: Sequence[Block], *, seed: int) -> "ControlTask":
        """Sample a control task for the words that have a choice."""
        behaviour = torch.randint(BEHAVIOURS, (types,), generator=torch.Generator().manual_seed(seed))
        seen = torch.zeros(types, dtype=torch.bool)
        for block in train:
            seen[block.questions.words[block.questions.chosen_for]] = True
        return cls(behaviour, seen)

    def __call__(self, questions: Questions) -> Questions:
        """Return the same words, with the answers of the control.

        A word may choose itself, and must choose some word.
        """
        words = questions.words.shape[1]
        itself = torch.arange(words).expand_as(questions.words)
        last = (questions.real.sum(1, keepdim=True) - 1).clamp_min(0).expand_as(itself)
        answers = torch.stack([itself, torch.zeros_like(itself), last])
        target = answers.gather(0, self.behaviour[questions.words][None])[0]
        no_root = torch.zeros(*questions.words.shape, 1, dtype=torch.bool)
        candidates = torch.cat([questions.real[:, None].expand(-1, words, -1), no_root], -1)
        # Padding has no candidate and no choice.
        return questions.keep(self.seen[questions.words]).answer(target, candidates)
