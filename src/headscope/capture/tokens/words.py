"""Attention from word to word, and the word that each word points to."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Pointing:
    """The other word that each word points to: the word with the largest weight, or the first of equal ones.

    Attributes:
        weight: The largest weight; 0 if the word cannot attend to another word, and so points nowhere.
        word: The index of the other word.
    """

    weight: Float[Tensor, "batch head word"]
    word: Int[Tensor, "batch head word"]


@dataclass(frozen=True, eq=False)
class Words:
    """Attention between words: a mean over the tokens of the attending word, a sum over those of the attended word.

    Clark et al. (2019, section 4.1) pool tokens in the same way.
    Special tokens, which are not part of words, and attention of a word to itself are left out, so a row sums to less
    than 1. `headscope.attend` leaves nothing out.

    Attributes:
        weights: The attention from word to word; 0 from a word to itself, and if a word has no token.
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
        """Compute the attention between words, from averages over keys and the word of each query and key.

        Args:
            average: Returns the average of columns of keys under the attention.
            query_word: The word of each query.
            key_word: The word of each key.
            words: The number of words.
        """
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
    """Average rows of queries over the tokens of each unit, such as a word; 0 for a unit without tokens."""
    share = unit / unit.sum(1, keepdim=True).clamp_min(1)
    return share.mT[:, None] @ averages


def membership(word: Int[Tensor, "batch token"], words: int) -> Float[Tensor, "batch token word"]:
    """Return 1 where a token is part of a word, and 0 elsewhere."""
    return (word[..., None] == torch.arange(words, device=word.device)).float()
