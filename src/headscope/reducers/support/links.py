"""The links of a batch that heads can be scored on, and where permutations put them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Int, Int64
from torch import Tensor

from headscope.capture.words import Pointing
from headscope.corpora.document import Document, Link
from headscope.reducers.support.candidates import Choices
from headscope.reducers.support.folds import Bins
from headscope.reducers.support.permutations import AT_ONCE, Permutations


@dataclass(frozen=True)
class Text:
    """A document of a batch.

    Attributes:
        index: its place in the batch.
        document: what it says.
        fold: to which it is assigned.
        inside: its words that have tokens.
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
        """Those of these links that are choices."""
        return [link for link in self.links if self.is_choice(link)]

    def is_choice(self, link: Link) -> bool:
        """True if a link has rivals, all of them with tokens."""
        return bool(link.rivals) and self.inside.issuperset(link.rivals)


def group_by_label(
    links: Sequence[tuple[Text, Link]], labels: Sequence[tuple[str, str]], device: torch.device
) -> dict[int, Int[Tensor, " item"]]:
    """The places of the links of each kind and label that is there, by its place among these."""
    label_of = {label: index for index, label in enumerate(labels)}
    items: defaultdict[int, list[int]] = defaultdict(list)
    for item, (_, link) in enumerate(links):
        items[label_of[link.kind, link.label]].append(item)
    return {label: torch.tensor(items_of, device=device) for label, items_of in items.items()}


def permute_sources(
    permutations: Permutations, document: Document, links: Sequence[Link], words: Set[int]
) -> Int[np.ndarray, "link permutation"]:
    """The source of each link in each permutation: any word of these from which another stands at the length of the
    link.
    """
    length = np.array([link.target - link.source for link in links], dtype=np.int64)
    sources = {far: np.array([word for word in sorted(words) if word + far in words]) for far in set(length.tolist())}
    permuted = permutations.choose(document, [len(sources[far]) for far in length.tolist()])
    for row, far in enumerate(length.tolist()):
        permuted[row] = sources[far][permuted[row]]
    return permuted


@dataclass(frozen=True, eq=False)
class Links:
    """The gold links of a batch.

    Attributes:
        document, dependent, head: of each link.
        scored: whether it counts in each direction.
        folds, lengths: where each link counts, by relation and fold, and by relation and length.
        by_label: the links of each label that is there, which no two share.
        permuted: where the dependent stands in each permutation, in the flattened axes document and word.
        by_class: for each link, if there are parts of speech, the rules that find it by direction, side and class.
        by_rule: for each link, the user's own rules that find it, by rule and end.
        predicted: for each link, those that predict any word.
        choices: the links that have rivals; None where the corpus has none.
    """

    document: Int[Tensor, " link"]
    dependent: Int[Tensor, " link"]
    head: Int[Tensor, " link"]
    scored: Bool[Tensor, "link direction"]
    folds: Bins
    lengths: Bins
    by_label: Mapping[int, Int[Tensor, " item"]]
    permuted: Int[Tensor, "link permutation"]
    by_class: Bool[Tensor, "_ class"]
    by_rule: Bool[Tensor, "link rule"]
    predicted: Bool[Tensor, "link rule"]
    choices: Choices | None

    def score_permutations(self, directions: Sequence[Pointing], labels: int) -> Int64[Tensor, "label permutation any"]:
        """The links of each label that the heads get right in each permutation; the last axis is head and direction."""
        distances = []
        for pointing in directions:
            word = torch.arange(pointing.word.shape[-1], device=pointing.word.device)
            # No link has the length 0.
            distances.append((pointing.word - word).where(pointing.weight > 0, 0).to(torch.int16))
        by_word = torch.stack(distances, dim=-1).transpose(1, 2).flatten(0, 1).flatten(1)
        length = (self.head - self.dependent).to(torch.int16)
        total = by_word.new_zeros((labels, self.permuted.shape[1], by_word.shape[1]), dtype=torch.long)
        for label, items in self.by_label.items():
            for some in torch.split(items, AT_ONCE):
                total[label] += (by_word[self.permuted[some]] == length[some, None, None]).sum(0, dtype=torch.uint8)
        return total
