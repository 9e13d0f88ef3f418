"""The links of a batch that heads can be scored on, and their places in permutations."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int, Int64
from torch import Tensor

from headscope.capture.model.block_sizes import BlockSizes
from headscope.capture.tokens.words import Pointing
from headscope.corpora.document import Document, Link
from headscope.examples import Item
from headscope.reducers.support.candidates import Choices
from headscope.reducers.support.folds import Bins
from headscope.reducers.support.permutations import Permutations, PermutedItems


@dataclass(frozen=True)
class Text:
    """A document of a batch.

    Attributes:
        index: The index of the document in the batch.
        document: The document itself.
        fold: The fold to which the document is assigned.
        inside: The words of the document that have tokens.
    """

    index: int
    document: Document
    fold: int
    inside: frozenset[int]

    @cached_property
    def links(self) -> list[Link]:
        """The links between words that have tokens."""
        return [link for link in self.document.links if {link.source, link.target} <= self.inside]

    @property
    def choices(self) -> list[Link]:
        """The links that are choices: their words and all of their rivals have tokens."""
        return [link for link in self.links if self.is_choice(link)]

    def is_choice(self, link: Link) -> bool:
        """Return True if a link has rivals and each rival has a token."""
        return bool(link.rivals) and self.inside.issuperset(link.rivals)


def number_labels(links: Sequence[tuple[Text, Link]], labels: Sequence[tuple[str, str]]) -> Int[np.ndarray, " link"]:
    """Return the index in `labels` of the kind and label of each link."""
    number = {label: index for index, label in enumerate(labels)}
    return np.array([number[link.kind, link.label] for _, link in links], dtype=np.int64)


def permute_links(
    permutations: Permutations, texts: Sequence[Text], words: int
) -> tuple[Int[np.ndarray, "link permutation"], Int[np.ndarray, "place 2"]]:
    """Return the index of the place that each link takes in each permutation, and the list of all places.

    A place is the source of a link, in the flattened axes text and word, and its length. A link keeps its length, and
    its source is any word with tokens from which another word with tokens is at this length.
    """
    permuted, places, first = [], [], 0
    for text in texts:
        own, own_places = _permute_links_of_text(permutations, text)
        permuted.append(first + own)
        places.append(own_places + np.array([text.index * words, 0]))
        first += len(own_places)
    return np.concatenate(permuted), np.concatenate(places)


def _permute_links_of_text(
    permutations: Permutations, text: Text
) -> tuple[Int[np.ndarray, "link permutation"], Int[np.ndarray, "place 2"]]:
    lengths = [link.target - link.source for link in text.links]
    places: list[tuple[int, int]] = []
    first, count = {}, {}
    for length in sorted(set(lengths)):
        sources = [word for word in sorted(text.inside) if word + length in text.inside]
        first[length], count[length] = len(places), len(sources)
        places += [(word, length) for word in sources]
    permuted = permutations.choose(text.document, [count[length] for length in lengths])
    permuted += np.array([first[length] for length in lengths], dtype=np.int64).reshape(-1, 1)
    return permuted, np.array(places, dtype=np.int64).reshape(-1, 2)


@dataclass(frozen=True, eq=False)
class Links:
    """The gold links of a batch.

    Attributes:
        document, dependent, head: Of each link: the index of its document in the batch, its source and its target.
        scored: Whether each link counts in each direction.
        folds, lengths: The bins in which each link counts, by relation and fold, and by relation and length.
        permuted: The links in each permutation.
        places: The places that links may take: the dependent, in the flattened axes document and word, and the length.
        by_class: For each link, if there are parts of speech, the hits of rules by direction, side and class.
        by_rule: For each link, whether each of your own rules finds it, by rule and end.
        predicted: For each link, whether each of these rules predicts any word.
        choices: The links that have rivals; None if the corpus has none.
    """

    document: Int[Tensor, " link"]
    dependent: Int[Tensor, " link"]
    head: Int[Tensor, " link"]
    scored: Bool[Tensor, "link direction"]
    folds: Bins
    lengths: Bins
    permuted: PermutedItems
    places: Int[Tensor, "place 2"]
    by_class: Float64[Tensor, "_ class"]
    by_rule: Bool[Tensor, "link rule"]
    predicted: Bool[Tensor, "link rule"]
    choices: Choices | None

    def list_items(self, keys: Sequence[str]) -> list[tuple[int, Item]]:
        """Return pairs of a document index and an item: a link with the keys of the rows in which it counts."""
        rows = self.folds.list_rows(len(self.head))
        ends = zip(self.document.tolist(), self.dependent.tolist(), self.head.tolist(), rows, strict=True)
        return [
            (document, Item(source, (target,), tuple(keys[row] for row in of_link)))
            for document, source, target, of_link in ends
        ]

    def score_permutations(self, directions: Sequence[Pointing]) -> Int64[Tensor, "label permutation any"]:
        """Count by label and permutation the links that the heads get right; the last axis is head and direction."""
        distances = []
        for pointing in directions:
            word = torch.arange(pointing.word.shape[-1], device=pointing.word.device)
            # No link has the length 0.
            distances.append((pointing.word - word).where(pointing.weight > 0, 0).to(torch.int16))
        by_word = torch.stack(distances, dim=-1).transpose(1, 2).flatten(0, 1).flatten(1)
        dependent, length = self.places[:, 0], self.places[:, 1, None].to(torch.int16)
        # A long text has hundreds of thousands of places, each with all heads, so work in parts.
        some = max(1, BlockSizes.measure(by_word.device).places // max(1, len(dependent)))
        parts = torch.split(by_word, some, dim=1)
        counts = [self.permuted.count_hits(part.index_select(0, dependent) == length) for part in parts]
        return torch.cat(counts, dim=-1)
