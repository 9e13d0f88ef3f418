"""Words of translations with their source words, rules that find the source words, and permuted alignments.

An item is a word of a translation that has tokens and a sure link to a source word with tokens.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Int, Int64
from torch import Tensor

from headscope.capture.tokens.batch import Batch, Tokens
from headscope.corpora.document import SURE, Document
from headscope.reducers.support.folds import FoldAssignment, total_by_fold
from headscope.reducers.support.permutations import Permutations, PermutedItems

SHIFTS = tuple(range(-5, 6))
"""The shifts, in words, that are added to the position that a rule predicts."""

RULES = ("index", "diagonal")

_NOWHERE = 1 << 14
"""A distance that no two words have."""


@dataclass(frozen=True)
class _Item:
    """A word of a translation that counts: its document, its position, and the source words that it is aligned to."""

    document: int
    place: int
    aligned: frozenset[int]


@dataclass(frozen=True, eq=False)
class AlignedWords:
    """The aligned words of a batch.

    Attributes:
        document, item_word: Of each item: the index of its document in the batch, and of its word in the translation.
        fold: The fold of each item.
        distances: For each item, the positions of its source words minus its own position; `_NOWHERE` after the last.
        permuted: The items in each permutation, in which any word of the translation may get the source words of an
            item; places are the flattened axes item and word of the translation.
        sizes: For each item, the number of words of the text and of the translation.
        target_word: For each token of the decoder, its word in the translation; -1 for other tokens.
        source_words, target_words: The number of words of the longest text and of the longest translation.
        words: The number of words of translations with tokens.
        sure_links: The number of sure links.
        links: The links between words with tokens: document, source word, word of the translation, and 1 for a sure
            link.
    """

    document: Int[Tensor, " item"]
    item_word: Int[Tensor, " item"]
    fold: Int[Tensor, " item"]
    distances: Int[Tensor, "item aligned"]
    permuted: PermutedItems
    sizes: Int[Tensor, "item 2"]
    target_word: Int[Tensor, "batch query"]
    source_words: int
    target_words: int
    words: int
    sure_links: int
    links: Int[Tensor, "link 4"]

    @classmethod
    def find(
        cls, batch: Batch, decoder: Tokens, fold_assignment: FoldAssignment, permutations: Permutations
    ) -> "AlignedWords":
        """Return the aligned words of a batch whose translations the decoder reads."""
        device = decoder.ids.device
        first = torch.tensor([[len(document.words)] for document in batch.documents], device=device)
        target_word = (decoder.word - first).clamp_min(-1)
        targets = replace(decoder, word=target_word).list_words()
        readable = [*zip(batch.encoder.list_words(), targets, strict=True)]
        items, permuted, links = [], [np.zeros((0, permutations.count), dtype=np.int64)], []
        for number, (document, (source, target)) in enumerate(zip(batch.documents, readable, strict=True)):
            own = [*_list_items(number, document, source, target)]
            items += own
            if own:
                permuted.append(_permute(permutations, document, own, source, target))
            links += [
                (number, link.source, link.target, int(link.label == SURE))
                for link in document.alignment
                if link.source in source and link.target in target
            ]
        most = max((len(item.aligned) for item in items), default=1)
        distances = [
            [*(word - item.place for word in sorted(item.aligned)), *[_NOWHERE] * (most - len(item.aligned))]
            for item in items
        ]
        words = max(1, *(len(document.translation) for document in batch.documents))
        places = np.concatenate(permuted) + np.arange(len(items))[:, None] * words
        permuted_items = PermutedItems.group(places, np.zeros(len(items), dtype=np.int64), 1, device)
        sizes = [(len(batch.documents[i.document].words), len(batch.documents[i.document].translation)) for i in items]
        folds = [fold_assignment.fold(batch.documents[item.document]) for item in items]
        return cls(
            _column([item.document for item in items], device), _column([item.place for item in items], device),
            _column(folds, device), _column(distances, device).reshape(-1, most),
            permuted_items, _column(sizes, device).reshape(-1, 2), target_word, batch.words, words,
            sum(len(target) for _, target in readable),
            sum(link.label == SURE for document in batch.documents for link in document.alignment),
            _column(links, device).reshape(-1, 4),
        )  # fmt: skip

    def total(self, right: Bool[Tensor, "item any"]) -> Int64[Tensor, "fold any"]:
        """Count by fold the items for which `right` is true."""
        return total_by_fold(right.long(), self.fold)

    def find_by_rule(self) -> Mapping[str, Bool[Tensor, "item shift"]]:
        """Return for each item whether each of `RULES` finds one of its source words, for each of `SHIFTS`."""
        source, target = self.sizes.unbind(1)
        # The source word that holds the middle of the word, if both sentences are scaled to one length.
        diagonal = (2 * self.item_word + 1) * source // (2 * target).clamp_min(1)
        shifts = torch.tensor(SHIFTS, device=self.item_word.device)
        return {
            name: self._is_aligned(place[:, None] + shifts - self.item_word[:, None])
            for name, place in zip(RULES, (self.item_word, diagonal), strict=True)
        }

    def is_right(self, chosen: Int[Tensor, "batch target head"]) -> Bool[Tensor, "item head"]:
        """Return for each item and head whether the source word that the head chooses is aligned to the item."""
        words = chosen[self.document, self.item_word]
        return self._is_aligned(words - self.item_word[:, None]) & (words >= 0)

    def count_links(self, chosen: Int[Tensor, "batch target head"]) -> dict[str, Int64[Tensor, " head"]]:
        """Count for each head the sure links and all links of the gold that the head predicts.

        A head predicts a link from every word of a translation to the source word that it chooses.
        """
        document, source, target, sure = self.links.unbind(1)
        hit = chosen[document, target] == source[:, None]
        return {"sure": (hit & (sure[:, None] > 0)).sum(0), "gold": hit.sum(0)}

    def score_permutations(self, chosen: Int[Tensor, "batch target head"]) -> Int64[Tensor, "head permutation"]:
        """Count the items that each head gets right in each permutation."""
        place = torch.arange(chosen.shape[1], device=chosen.device)[None, :, None]
        away = (chosen - place).where(chosen >= 0, -_NOWHERE).to(torch.int16).index_select(0, self.document)
        hits = torch.zeros_like(away, dtype=torch.bool)
        for distance in self.distances.to(torch.int16).unbind(1):
            hits |= away == distance[:, None, None]
        return self.permuted.count_hits(hits.flatten(0, 1))[0].T

    def _is_aligned(self, distance: Int[Tensor, "item any"]) -> Bool[Tensor, "item any"]:
        """Return, for each item and each distance, whether the source word at that distance is aligned to the item."""
        return (distance[..., None] == self.distances[:, None]).any(-1)


def _list_items(number: int, document: Document, source: frozenset[int], target: frozenset[int]) -> Iterator[_Item]:
    """Yield the items of a document, given its source words and target words that have tokens."""
    aligned: defaultdict[int, set[int]] = defaultdict(set)
    sure = set()
    for link in document.alignment:
        if link.source in source and link.target in target:
            aligned[link.target].add(link.source)
            if link.label == SURE:
                sure.add(link.target)
    for place in sorted(sure):
        yield _Item(number, place, frozenset(aligned[place]))


def _permute(
    permutations: Permutations,
    document: Document,
    items: Sequence[_Item],
    source: frozenset[int],
    target: frozenset[int],
) -> Int[np.ndarray, "item permutation"]:
    """Return for each item and permutation the word of the translation that gets the item's source words.

    It is drawn from all words with tokens that have source words with tokens at the same distances.
    """
    choices = []
    for item in items:
        distances = [word - item.place for word in item.aligned]
        choices.append(np.array([place for place in sorted(target) if all(place + far in source for far in distances)]))
    permuted = permutations.choose(document, [len(places) for places in choices])
    for row, places in enumerate(choices):
        permuted[row] = places[permuted[row]]
    return permuted


def _column(values: Sequence[int] | Sequence[Sequence[int]], device: torch.device) -> Int[Tensor, "..."]:
    return torch.tensor(values, dtype=torch.long, device=device)
