"""Links with their own wrong answers: a head chooses among the target and its rivals.

A pronoun that could refer to one of two names is such an item (Webster et al. 2018). A head that merely prefers names
to all other words solves none of them: a guess is right for half.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int, Int64, Num
from torch import Tensor

from headscope.capture.tokens.words import Words
from headscope.corpora.document import Document, Link
from headscope.reducers.support.directions import NO_WORD
from headscope.reducers.support.folds import Bins
from headscope.reducers.support.permutations import Permutations, PermutedItems

COUNTED = ("candidate", "candidate_chance", "candidate_nearest")
"""The sums of choices that need no attention: their number, and the hits of a guess and of the nearest candidate."""

TARGET = 0
"""The index of the target among the candidates."""

TIE = -1
"""The choice of a head that attends to several candidates equally, or to none."""


@dataclass(frozen=True, eq=False)
class Choices:
    """The links of a batch that have rivals: each a choice among its candidates.

    Attributes:
        link: The index of each choice among the links of the batch.
        document, source: Of each choice: the index of its document in the batch, and the word from which its link
            leads.
        candidates: The candidates of each choice, the target first; `NO_WORD` after the last.
        scored: Whether each choice counts in each direction.
        permuted: The choices in each permutation, in which any candidate may be the right one; places are the flattened
            axes choice and candidate.
        folds: The bins in which each choice counts, by relation and fold.
    """

    link: Int[Tensor, " choice"]
    document: Int[Tensor, " choice"]
    source: Int[Tensor, " choice"]
    candidates: Int[Tensor, "choice candidate"]
    scored: Bool[Tensor, "choice direction"]
    permuted: PermutedItems
    folds: Bins

    def count(self) -> dict[str, Num[Tensor, "relation fold direction"]]:
        """Return each of the sums `COUNTED` by relation, fold and direction."""
        choices = torch.ones(len(self.link), 1, dtype=torch.double, device=self.link.device)
        values = (choices, self.guess(), self.take_nearest())
        totals = [self.folds.total(value * self.scored) for value in values]
        return dict(zip(COUNTED, (totals[0].long(), *totals[1:]), strict=True))

    def guess(self) -> Float64[Tensor, "choice 1"]:
        """Return the probability that a guess among the candidates of each choice is right: one over their number."""
        return 1 / (self.candidates != NO_WORD).sum(1, keepdim=True).double()

    def take_nearest(self) -> Float64[Tensor, "choice 1"]:
        """Return 1 for a choice whose nearest candidate is the target, 1/n if it is one of n nearest, else 0."""
        distance = (self.candidates - self.source[:, None]).abs()
        distance = distance.where(self.candidates != NO_WORD, torch.iinfo(distance.dtype).max)
        nearest = distance == distance.amin(1, keepdim=True)
        return nearest[:, [TARGET]] / nearest.sum(1, keepdim=True).double()

    def choose(self, words: Words) -> Int[Tensor, "choice head direction"]:
        """Return the index of the candidate that each head chooses, by attention from the source and to the source.

        It is `TIE` if several candidates have the largest weight, if all weights are 0, or if the choice does not
        count.
        """
        document, source = self.document[:, None], self.source[:, None]
        present = self.candidates != NO_WORD
        there = self.candidates.clamp_min(0)
        directions = (words.weights[document, :, source, there], words.weights[document, :, there, source])
        chosen = [_take_largest(weights.where(present[..., None], 0)) for weights in directions]
        return torch.stack(chosen, dim=-1).where(self.scored[:, None], TIE)

    def score_permutations(self, chosen: Int[Tensor, "choice any"]) -> Int64[Tensor, "label permutation any"]:
        """Count the choices of each label that the heads get right in each permutation."""
        candidate = torch.arange(self.candidates.shape[1], device=chosen.device)
        return self.permuted.count_hits((chosen[:, None] == candidate[:, None]).flatten(0, 1))


def _take_largest(weights: Float[Tensor, "choice candidate head"]) -> Int[Tensor, "choice head"]:
    """Return the index of the candidate with the largest weight; `TIE` if several have it, or if it is 0."""
    largest, candidate = weights.max(1)
    single = (weights == largest[:, None]).sum(1) == 1
    return candidate.where(single & (largest > 0), TIE)


def permute_targets(
    permutations: Permutations, document: Document, links: Sequence[Link]
) -> Int[np.ndarray, "link permutation"]:
    """Choose at random which candidate of each link is the right one in each permutation."""
    return permutations.choose(document, [1 + len(link.rivals) for link in links])


def lay_out_candidates(links: Sequence[Link]) -> Num[np.ndarray, "link candidate"]:
    """Return the candidates of each link, the target first; `NO_WORD` after the last."""
    width = max((len(link.rivals) for link in links), default=0) + 1
    candidates = np.full((len(links), width), NO_WORD, dtype=np.int64)
    for row, link in enumerate(links):
        candidates[row, : len(link.rivals) + 1] = (link.target, *link.rivals)
    return candidates
