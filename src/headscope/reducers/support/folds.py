"""The corpus assigned to folds, in which sums are kept apart.

From sums by fold follow, without a second pass and for any ratio of sums, how far it varies from text to text
(the folds are the clusters) and what it is on texts on which nothing was chosen.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar

import torch
from jaxtyping import Bool, Float64, Int, Num
from torch import Tensor

from headscope.corpora.document import Document, hash_name
from headscope.corpora.summary import CorpusSummary

R = TypeVar("R")

FOLDS = 64
"""Even, since the even folds are one half of the corpus and the odd ones the other."""

FEWEST_TEXTS = 8
"""Texts that a corpus must name for whole texts to be assigned."""

STRIDE = 39
"""From one fold to the next that is filled: odd, so that all are, in turn even and odd ones, and near 0.61 of all, so
that few are spread over all of them."""


@dataclass(frozen=True)
class FoldAssignment:
    """To which fold a document goes: its text decides, by a hash, so that no order can change it.

    Few texts are spread evenly: in the order of their hashes they go to one fold after the other, so that no fold has
    two more than another. More texts than a summary lists fill 20 folds of each half by their hashes alone. A copy goes
    where its original goes, and a text where another goes that is nearly the same (`headscope.corpora.originals`).

    Attributes:
        unit: what is assigned: a whole ``text``; a single ``document``, where the corpus does not say which text it
            comes from; or a ``document of few texts``, where it names fewer than `FEWEST_TEXTS`.
        seed: of the hash, where texts are not spread evenly.
        apart: ids of no more than `FOLDS` documents that have a fold each, in this order; if there are any, these are
            all documents.
        names: the hashes of the names of all that is assigned, from the smallest on, where it is so little that it is
            spread evenly.
    """

    unit: Literal["text", "document", "document of few texts"] = "text"
    seed: int = 0
    apart: tuple[str, ...] = ()
    names: tuple[int, ...] = ()

    @classmethod
    def for_corpus(cls, summary: CorpusSummary) -> "FoldAssignment":
        """The assignment for a corpus that names so many texts."""
        if summary.texts >= FEWEST_TEXTS:
            return cls("text", names=tuple(summary.text_names))
        return cls("document of few texts" if summary.texts else "document", names=tuple(summary.document_names))

    def fold(self, document: Document) -> int:
        """The fold of a document."""
        if self.apart:
            return self.apart.index(document.id)
        origin = document.origin
        name = origin.cluster if self.unit == "text" else origin.id
        if self.names:
            return bisect_left(self.names, hash_name(name)) * STRIDE % FOLDS
        return hash_name(name, self.seed) % FOLDS

    def folds(self, documents: tuple[Document, ...], device: torch.device) -> Int[Tensor, " document"]:
        """The fold of each document."""
        return torch.tensor([self.fold(document) for document in documents], dtype=torch.long, device=device)


def keep_apart(reducer: R, documents: Sequence[Document]) -> R:
    """The reducer with a fold for each of a few documents; as it is, if it assigns documents to no folds."""
    return assign_folds(reducer, FoldAssignment("document", apart=tuple(document.id for document in documents)))


def assign_folds(reducer: R, assignment: FoldAssignment) -> R:
    """Return the reducer with this assignment wherever it has one."""
    given: Any = reducer
    names = [each.name for each in fields(given)] if is_dataclass(given) else []
    assignments = [name for name in names if isinstance(getattr(given, name), FoldAssignment)]
    changed: R = replace(given, **dict.fromkeys(assignments, assignment)) if assignments else reducer
    return changed


def total_by_fold(values: Num[Tensor, "item ..."], fold: Int[Tensor, " item"]) -> Num[Tensor, "fold ..."]:
    """Values of the items of a batch, added up for each fold."""
    return values.new_zeros(FOLDS, *values.shape[1:]).index_add_(0, fold, values)


@dataclass(frozen=True, eq=False)
class Bins:
    """Where the items of a batch (links, mentions) count: each in one or more rows of the table, in its fold.

    Attributes:
        item: of each bin in which an item counts, the item.
        bin: of these, where it is in the flattened axes row and column.
        rows: the number of rows.
        columns: the folds, or what else divides the items.
    """

    item: Int[Tensor, " count"]
    bin: Int[Tensor, " count"]
    rows: int
    columns: int = FOLDS

    def list_rows(self, items: int) -> list[list[int]]:
        """Return the rows in which each item counts."""
        rows: list[list[int]] = [[] for _ in range(items)]
        for item, place in zip(self.item.tolist(), self.bin.tolist(), strict=True):
            rows[item].append(place // self.columns)
        return rows

    def total(self, values: Bool[Tensor, "item any"] | Float64[Tensor, "item any"]) -> Num[Tensor, "row column any"]:
        """Values of the items (what is right of them, or shares that they have), added up for each row and column."""
        values = values if values.is_floating_point() else values.long()
        total = torch.zeros(self.rows * self.columns, values.shape[1], dtype=values.dtype, device=values.device)
        return total.index_add_(0, self.bin, values[self.item]).view(self.rows, self.columns, -1)
