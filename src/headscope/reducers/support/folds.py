"""The corpus assigned to folds, in which sums are kept apart.

From sums by fold follow, without a second pass and for any ratio of sums, how far it varies from text to text
(the folds are the clusters) and what it is on texts on which nothing was chosen.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar

import torch
from jaxtyping import Bool, Float64, Int, Num
from torch import Tensor

from headscope.corpora.document import Document
from headscope.corpora.summary import CorpusSummary

R = TypeVar("R")

FOLDS = 64
"""Even, since the even folds are one half of the corpus and the odd ones the other."""

FEWEST_TEXTS = 8
"""Texts that a corpus must name for whole texts to be assigned."""


@dataclass(frozen=True)
class FoldAssignment:
    """To which fold a document goes: its text decides, by a hash, so that no order can change it.

    A copy goes where its original goes (`headscope.corpora.originals`).

    Attributes:
        unit: what is assigned: a whole ``text``; a single ``document``, where the corpus does not say which text it
            comes from; or a ``document of few texts``, where it names fewer than `FEWEST_TEXTS`.
        seed: of the hash.
        apart: ids of no more than `FOLDS` documents that have a fold each, in this order; if there are any, these are
            all documents.
    """

    unit: Literal["text", "document", "document of few texts"] = "text"
    seed: int = 0
    apart: tuple[str, ...] = ()

    @classmethod
    def for_corpus(cls, summary: CorpusSummary) -> "FoldAssignment":
        """The assignment for a corpus that names so many texts."""
        if not summary.texts:
            return cls("document")
        return cls("text" if summary.texts >= FEWEST_TEXTS else "document of few texts")

    def fold(self, document: Document) -> int:
        """The fold of a document."""
        if self.apart:
            return self.apart.index(document.id)
        origin = document.origin
        name = origin.cluster if self.unit == "text" else origin.id
        return int.from_bytes(hashlib.sha256(f"{self.seed} {name}".encode()).digest()[:8]) % FOLDS

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
        """The rows in which each of so many items counts."""
        rows: list[list[int]] = [[] for _ in range(items)]
        for item, place in zip(self.item.tolist(), self.bin.tolist(), strict=True):
            rows[item].append(place // self.columns)
        return rows

    def total(self, values: Bool[Tensor, "item any"] | Float64[Tensor, "item any"]) -> Num[Tensor, "row column any"]:
        """Values of the items (what is right of them, or shares that they have), added up for each row and column."""
        values = values if values.is_floating_point() else values.long()
        total = torch.zeros(self.rows * self.columns, values.shape[1], dtype=values.dtype, device=values.device)
        return total.index_add_(0, self.bin, values[self.item]).view(self.rows, self.columns, -1)
