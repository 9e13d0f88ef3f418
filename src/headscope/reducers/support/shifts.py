"""Chains that are shifted along the mentions of their text: the permutations of coreference.

The labels of a text's chains, one for each mention in the order of the text, rotate along its mentions by some number
of places. Chains keep their sizes and how near their mentions are to one another, but lose the words that they belong
to.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int, Int64
from torch import Tensor

from headscope.capture.tokens.words import Pointing
from headscope.corpora.document import Document
from headscope.reducers.support.antecedents import Mention
from headscope.reducers.support.folds import Bins
from headscope.reducers.support.permutations import Permutations


@dataclass(frozen=True, eq=False)
class ShiftedChains:
    """The mentions of a batch, and the chain of each under every shift of its text that some permutation uses.

    A text with few mentions has fewer shifts than there are permutations, so hits are summed by shift first.

    Attributes:
        document: The index in the batch of the document of each mention.
        word: The head word of each mention.
        chain: The chain of each mention under each shift; the last row means no mention and has its own chain.
        is_scored: For each mention, whether it has a token and an earlier mention of its chain, under each shift.
        mentions_at: The mentions with each head word of each document, filled up with the index of that last row; the
            last word has no mention.
        bins: The bins in which each mention counts, by class and document.
        shift: The index of the shift of each document in each permutation.
    """

    document: Int[Tensor, " mention"]
    word: Int[Tensor, " mention"]
    chain: Int[Tensor, "all shift"]
    is_scored: Bool[Tensor, "mention shift"]
    mentions_at: Int[Tensor, "document any namesake"]
    bins: Bins
    shift: Int[Tensor, "document permutation"]

    @classmethod
    def permute(
        cls,
        permutations: Permutations,
        texts: Sequence[tuple[Document, Sequence[Mention]]],
        have_tokens: Sequence[Set[int]],
        classes: Sequence[str],
        device: torch.device,
    ) -> "ShiftedChains":
        """Return the mentions of a batch with the chains that they have in the permutations.

        Args:
            permutations: The number of permutations, and their seed.
            texts: Each document with its mentions, in the order of the text.
            have_tokens: For each document, the words that have a token.
            classes: The classes of mentions, which are counted separately.
            device: The device of the tensors.
        """
        turns = [permutations.choose(document, [len(mentions)])[0] for document, mentions in texts]
        distinct, shift = zip(*(np.unique(turn, return_inverse=True) for turn in turns), strict=True)
        every = [(text, mention) for text, (_, mentions) in enumerate(texts) for mention in mentions]
        chain = np.full((len(every) + 1, max(map(len, distinct))), -1, dtype=np.int32)
        is_scored = np.zeros((len(every), chain.shape[1]), dtype=bool)
        start = 0
        for (_, mentions), tokens, shifts in zip(texts, have_tokens, distinct, strict=True):
            there = np.s_[start : start + len(mentions), : len(shifts)]
            chain[there], is_scored[there] = _shift(mentions, tokens, shifts)
            start += len(mentions)
        item_bins = [
            (item, classes.index(name) * len(texts) + text)
            for item, (text, mention) in enumerate(every)
            for name in mention.classes
        ]
        item, place = torch.tensor(item_bins, dtype=torch.long, device=device).reshape(-1, 2).T
        heads = [(text, mention.head) for text, mention in every]
        document, word = torch.tensor(heads, dtype=torch.long, device=device).reshape(-1, 2).T
        words = max(len(document.words) for document, _ in texts)
        return cls(
            document, word, torch.from_numpy(chain).to(device), torch.from_numpy(is_scored).to(device),
            _find_namesakes(heads, len(texts), words).to(device),
            Bins(item, place, len(classes), len(texts)), torch.from_numpy(np.stack(shift)).to(device),
        )  # fmt: skip

    def count(self) -> Int64[Tensor, "row permutation"]:
        """Count the mentions that are scored in each permutation, by class."""
        return self._permute(self.bins.total(self.is_scored)[None])[0]

    def score(self, attends: Pointing) -> Int64[Tensor, "head row permutation"]:
        """Count the mentions that point at an antecedent, for each head, class of mentions and permutation."""
        word, weight = (part[self.document, :, self.word] for part in (attends.word, attends.weight))
        nowhere = self.mentions_at.shape[1] - 1
        earlier = word.where((weight > 0) & (word < self.word[:, None]), nowhere)
        by_head = [self.bins.total(self._is_right(of_head)) for of_head in earlier.T]
        return self._permute(torch.stack(by_head))

    def _is_right(self, earlier: Int[Tensor, " mention"]) -> Bool[Tensor, "mention shift"]:
        """Return for each mention and shift whether a mention with the head word `earlier` is in the same chain."""
        right = torch.zeros_like(self.is_scored)
        for other in self.mentions_at[self.document, earlier].T:
            right |= self.chain[other] == self.chain[:-1]
        return right

    def _permute(self, by_shift: Int64[Tensor, "head row document shift"]) -> Int64[Tensor, "head row permutation"]:
        """Return the sums over documents in each permutation, with each document under its shift in the permutation."""
        total = by_shift.new_zeros((*by_shift.shape[:2], self.shift.shape[1]))
        for document in sorted(set(self.document.tolist())):
            total += by_shift[:, :, document, self.shift[document]]
        return total


def _shift(
    mentions: Sequence[Mention], have_tokens: Set[int], shifts: Int[np.ndarray, " shift"]
) -> tuple[Int[np.ndarray, "mention shift"], Bool[np.ndarray, "mention shift"]]:
    """Return the chain of each mention of a text under each shift, and whether the mention is scored then."""
    labels, gold = np.unique([mention.chain for mention in mentions], return_inverse=True)
    place = np.arange(len(mentions))[:, None] + shifts
    chain = gold[place % max(len(mentions), 1)]
    head = np.array([mention.head for mention in mentions], dtype=np.int64)[:, None]
    has_token = np.array([mention.head in have_tokens for mention in mentions], dtype=bool)[:, None]
    column = np.broadcast_to(np.arange(len(shifts)), chain.shape)
    first = np.full((len(labels), len(shifts)), np.iinfo(np.int64).max)
    np.minimum.at(first, (chain, column), np.broadcast_to(head, chain.shape))
    return chain, has_token & (first[chain, column] < head)


def _find_namesakes(
    heads: Sequence[tuple[int, int]], documents: int, words: int
) -> Int[Tensor, "document any namesake"]:
    """Return the mentions with each head word of each document, filled up with the number of all mentions."""
    mentions_of: dict[tuple[int, int], list[int]] = {}
    for mention, head in enumerate(heads):
        mentions_of.setdefault(head, []).append(mention)
    most = max(map(len, mentions_of.values()), default=0)
    mentions_at = torch.full((documents, words + 1, most), len(heads))
    for (document, word), namesakes in mentions_of.items():
        mentions_at[document, word, : len(namesakes)] = torch.tensor(namesakes)
    return mentions_at
