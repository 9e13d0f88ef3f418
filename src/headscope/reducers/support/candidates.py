"""Links that bring their own wrong answers: the head is asked to choose among the target and its rivals.

A pronoun that could refer to one of two names is such an item (Webster et al. 2018). To prefer names to all other words
solves none of them: whoever guesses is right for half.
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
"""The sums of choices that need no attention: how many there are, and what a guess and the nearest candidate hit."""

TARGET = 0
"""The place of the target among the candidates."""

TIE = -1
"""What a head chooses that attends to several candidates alike, or to none."""


@dataclass(frozen=True, eq=False)
class Choices:
    """The links of a batch that have rivals: each a choice among its candidates.

    Attributes:
        link: of each choice, its place among the links of the batch.
        document, source: the place of its document in the batch, and the word from which its link leads.
        candidates: its candidates, the target first; behind the last `NO_WORD`.
        scored: whether it counts in each direction.
        permuted: the choices in each permutation, in which the right one may be any candidate; the places are the
            flattened axes choice and candidate.
        folds: where each choice counts, by relation and fold.
    """

    link: Int[Tensor, " choice"]
    document: Int[Tensor, " choice"]
    source: Int[Tensor, " choice"]
    candidates: Int[Tensor, "choice candidate"]
    scored: Bool[Tensor, "choice direction"]
    permuted: PermutedItems
    folds: Bins

    def count(self) -> dict[str, Num[Tensor, "relation fold direction"]]:
        """The sums of `COUNTED`, in each direction."""
        choices = torch.ones(len(self.link), 1, dtype=torch.double, device=self.link.device)
        values = (choices, self.guess(), self.take_nearest())
        totals = [self.folds.total(value * self.scored) for value in values]
        return dict(zip(COUNTED, (totals[0].long(), *totals[1:]), strict=True))

    def guess(self) -> Float64[Tensor, "choice 1"]:
        """The share of each choice that a guess among its candidates gets right: one over their number."""
        return 1 / (self.candidates != NO_WORD).sum(1, keepdim=True).double()

    def take_nearest(self) -> Float64[Tensor, "choice 1"]:
        """The share of each choice that the candidate nearest to the source gets right; equally near ones share it."""
        distance = (self.candidates - self.source[:, None]).abs()
        distance = distance.where(self.candidates != NO_WORD, torch.iinfo(distance.dtype).max)
        nearest = distance == distance.amin(1, keepdim=True)
        return nearest[:, [TARGET]] / nearest.sum(1, keepdim=True).double()

    def choose(self, words: Words) -> Int[Tensor, "choice head direction"]:
        """The candidate that each head chooses: the one that the source attends to most, and that attends most to it.

        It is `TIE` where several have the largest weight, or none has any, or the choice does not count.
        """
        document, source = self.document[:, None], self.source[:, None]
        present = self.candidates != NO_WORD
        there = self.candidates.clamp_min(0)
        directions = (words.weights[document, :, source, there], words.weights[document, :, there, source])
        chosen = [_take_largest(weights.where(present[..., None], 0)) for weights in directions]
        return torch.stack(chosen, dim=-1).where(self.scored[:, None], TIE)

    def score_permutations(self, chosen: Int[Tensor, "choice any"]) -> Int64[Tensor, "label permutation any"]:
        """The choices of each label that the heads get right in each permutation."""
        candidate = torch.arange(self.candidates.shape[1], device=chosen.device)
        return self.permuted.count_hits((chosen[:, None] == candidate[:, None]).flatten(0, 1))


def _take_largest(weights: Float[Tensor, "choice candidate head"]) -> Int[Tensor, "choice head"]:
    """The candidate of the largest weight, if it is above 0 and no other has the same; else `TIE`."""
    largest, candidate = weights.max(1)
    single = (weights == largest[:, None]).sum(1) == 1
    return candidate.where(single & (largest > 0), TIE)


def permute_targets(
    permutations: Permutations, document: Document, links: Sequence[Link]
) -> Int[np.ndarray, "link permutation"]:
    """Which candidate of each link is the right one in each permutation: any of them, at random."""
    return permutations.choose(document, [1 + len(link.rivals) for link in links])


def lay_out_candidates(links: Sequence[Link]) -> Num[np.ndarray, "link candidate"]:
    """The candidates of each link, the target first; behind the last `NO_WORD`."""
    width = max((len(link.rivals) for link in links), default=0) + 1
    candidates = np.full((len(links), width), NO_WORD, dtype=np.int64)
    for row, link in enumerate(links):
        candidates[row, : len(link.rivals) + 1] = (link.target, *link.rivals)
    return candidates
