"""The control task of a probe (Hewitt and Liang 2019, section 2): the right answer depends only on the word type.

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
"""The number of behaviours of a word type in the control task.

A word attaches to itself, to the first word, or to the last word of its text.
"""


@dataclass(frozen=True, eq=False)
class ControlTask:
    """A control task: a random behaviour for each word type.

    Attributes:
        behaviour: The behaviour of each type, by the number of the type.
        seen: Whether each type has a question in training. The behaviour of other types cannot be known, so they are
            left out.
    """

    behaviour: Int[Tensor, " type"]
    seen: Bool[Tensor, " type"]

    @classmethod
    def sample(cls, types: int, train: Sequence[Block], *, seed: int) -> "ControlTask":
        """Sample a control task; a type counts as seen if one of its words has a question in the training batches."""
        behaviour = torch.randint(BEHAVIOURS, (types,), generator=torch.Generator().manual_seed(seed))
        seen = torch.zeros(types, dtype=torch.bool)
        for block in train:
            seen[block.questions.words[block.questions.chosen_for]] = True
        return cls(behaviour, seen)

    def __call__(self, questions: Questions) -> Questions:
        """Return the questions with the answers of the control, without the words of unseen types.

        A word may choose itself, and cannot choose "no head".
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
