"""The links of a batch that heads can be scored on, and where permutations put them."""

from collections import defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from headscope.corpora.document import Document, Link
from headscope.reducers.support.permutations import Permutations


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
