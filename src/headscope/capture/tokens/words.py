"""Attention from word to word, and the word that each word points at."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Pointing:
    """Where each word points: the other word of the largest weight, the first of equals.

    Attributes:
        weight: that weight; 0 where a word may attend to no other word, and so points nowhere.
        word: that word.
    """

    weight: Float[Tensor, "batch head word"]
    word: Int[Tensor, "batch head word"]


@dataclass(frozen=True, eq=False)
class Words:
    """Attention between words: to a split word the sum over its tokens, from it their mean (Clark et al. 2019, 4.1).

    Left out are special tokens, which belong to no word, and what a word attends to itself: a row sums to less than 1.
    `headscope.attend` leaves nothing out.

    Attributes:
        weights: 0 from a word to itself, and wherever a word has no token.
    """

    weights: Float[Tensor, "batch head word word"]

    @classmethod
    def from_average(
        cls,
        average: Callable[[Tensor], Tensor],
        query_word: Int[Tensor, "batch query"],
        key_word: Int[Tensor, "batch key"],
        words: int,
    ) -> "Words":
        """The attention between so many words, from averages over keys and the word of each query and key."""
        weights = pool_queries(average(membership(key_word, words)), membership(query_word, words))
        weights.diagonal(dim1=-2, dim2=-1).zero_()
        return cls(weights)

    @cached_property
    def attends(self) -> Pointing:
        """The other word that each word attends to most."""
        return Pointing(*self.weights.max(-1))

    @cached_property
    def attended(self) -> Pointing:
        """The other word that attends to each word most."""
        return Pointing(*self.weights.max(-2))


def pool_queries(
    averages: Float[Tensor, "batch head query feature"], unit: Float[Tensor, "batch query unit"]
) -> Float[Tensor, "batch head unit feature"]:
    """The mean over the tokens of each unit (a word, say) of what its tokens attend to; 0 where it has none."""
    share = unit / unit.sum(1, keepdim=True).clamp_min(1)
    return share.mT[:, None] @ averages


def membership(word: Int[Tensor, "batch token"], words: int) -> Float[Tensor, "batch token word"]:
    """1 where a token is part of a word."""
    return (word[..., None] == torch.arange(words, device=word.device)).float()
