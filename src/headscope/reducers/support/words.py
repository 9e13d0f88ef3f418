"""Attention from word to word, and the word that each word points at.

Several reducers ask for the same of one attention; it is worked out once and forgotten with the attention.
"""

from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.capture.attention import Attention


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

    Special tokens belong to no word and are left out.

    Attributes:
        weights: 0 from a word to itself, and wherever a word has no token.
    """

    weights: Float[Tensor, "batch head word word"]

    @cached_property
    def attends(self) -> Pointing:
        """The other word that each word attends to most."""
        return Pointing(*self.weights.max(-1))

    @cached_property
    def attended(self) -> Pointing:
        """The other word that attends to each word most."""
        return Pointing(*self.weights.max(-2))


_known: WeakKeyDictionary[Attention, Words] = WeakKeyDictionary()


def words_of(attention: Attention) -> Words:
    """The attention between words of a whole layer."""
    if attention not in _known:
        _known[attention] = Words(_between_words(attention))
    return _known[attention]


def pooled(
    attention: Attention, to: Float[Tensor, "batch key feature"], of: Float[Tensor, "batch query unit"]
) -> Float[Tensor, "batch head unit feature"]:
    """Attention to features of keys from units of tokens: from each unit the mean over its tokens."""
    share = of / of.sum(1, keepdim=True).clamp_min(1)
    return share.mT[:, None] @ attention.average(to)


def membership(word: Int[Tensor, "batch token"], words: int) -> Float[Tensor, "batch token word"]:
    """1 where a token is part of a word."""
    return (word[..., None] == torch.arange(words, device=word.device)).float()


def _between_words(attention: Attention) -> Float[Tensor, "batch head word word"]:
    to, of = (membership(tokens.word, attention.batch.words) for tokens in (attention.keys, attention.queries))
    words = pooled(attention, to, of[:, attention.rows])
    words.diagonal(dim1=-2, dim2=-1).zero_()
    return words
