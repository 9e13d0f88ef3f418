"""The assignment of documents to folds; each fold has its own sums.

For any ratio of sums, the sums by fold give, without a second pass, how far it varies from text to text (the folds are
the clusters) and its value on texts on which nothing was chosen.
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
"""The number of folds; even, since the even folds are one half of the corpus and the odd folds the other half."""

FEWEST_TEXTS = 8
"""The least number of texts that a corpus must name; with fewer texts, single documents are assigned to folds."""

STRIDE = 39
"""The step from the fold of one text to the fold of the next text, if texts are spread evenly.

It is odd, so that all folds are filled, even and odd ones in turn, and near 0.61 of `FOLDS`, so that few texts are
spread over all folds.
"""


@dataclass(frozen=True)
class FoldAssignment:
    """The assignment of documents to folds by a hash of the name of their text, so that no order can change it.

    Few texts are spread evenly: in the order of their hashes they go to one fold after the other, so that no fold has
    two texts more than another. If there are more texts than a summary lists, their hashes alone fill at least 20 folds
    of each half. A copy goes to the fold of its original, and a text to the fold of a nearly identical text
    (`headscope.corpora.originals`).

    Attributes:
        unit: What is assigned: a whole ``text``; a single ``document``, if the corpus does not name the texts of its
            documents; or a ``document of few texts``, if it names fewer than `FEWEST_TEXTS`.
        seed: The seed of the hash, if texts are not spread evenly.
        apart: The ids of at most `FOLDS` documents, each of which gets its own fold, in this order. If it is not empty,
            other documents cannot be assigned.
        names: The hashes of the names of everything that is assigned, in ascending order, if it is few enough to be
            spread evenly.
    """

    unit: Literal["text", "document", "document of few texts"] = "text"
    seed: int = 0
    apart: tuple[str, ...] = ()
    names: tuple[int, ...] = ()

    @classmethod
    def for_corpus(cls, summary: CorpusSummary) -> "FoldAssignment":
        """Return the assignment for a corpus, made from the texts or documents that its summary names."""
        if summary.texts >= FEWEST_TEXTS:
            return cls("text", names=tuple(summary.text_names))
        return cls("document of few texts" if summary.texts else "document", names=tuple(summary.document_names))

    def fold(self, document: Document) -> int:
        """Return the fold of a document."""
        if self.apart:
            return self.apart.index(document.id)
        origin = document.origin
        name = origin.cluster if self.unit == "text" else origin.id
        if self.names:
            return bisect_left(self.names, hash_name(name)) * STRIDE % FOLDS
        return hash_name(name, self.seed) % FOLDS

    def folds(self, documents: tuple[Document, ...], device: torch.device) -> Int[Tensor, " document"]:
        """Return the fold of each document."""
        return torch.tensor([self.fold(document) for document in documents], dtype=torch.long, device=device)


def keep_apart(reducer: R, documents: Sequence[Document]) -> R:
    """Return a copy of a reducer that puts each document in its own fold; a reducer without folds is unchanged.

    There must be at most `FOLDS` documents.
    """
    return assign_folds(reducer, FoldAssignment("document", apart=tuple(document.id for document in documents)))


def assign_folds(reducer: R, assignment: FoldAssignment) -> R:
    """Return the reducer with this assignment in place of each `FoldAssignment` in its fields."""
    given: Any = reducer
    names = [each.name for each in fields(given)] if is_dataclass(given) else []
    assignments = [name for name in names if isinstance(getattr(given, name), FoldAssignment)]
    changed: R = replace(given, **dict.fromkeys(assignments, assignment)) if assignments else reducer
    return changed


def total_by_fold(values: Num[Tensor, "item ..."], fold: Int[Tensor, " item"]) -> Num[Tensor, "fold ..."]:
    """Return the sum of the values of the items of a batch for each fold."""
    return values.new_zeros(FOLDS, *values.shape[1:]).index_add_(0, fold, values)


@dataclass(frozen=True, eq=False)
class Bins:
    """The bins in which the items of a batch (links, mentions) count: rows of the table, and folds.

    Attributes:
        item: The item of each count; an item counts in one or more rows.
        bin: The index of the bin of each count in the flattened axes row and column.
        rows: The number of rows.
        columns: The number of folds, or of the other parts that divide the items.
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
        """Return the sum of values of the items (hits, or shares) for each row and column."""
        values = values if values.is_floating_point() else values.long()
        total = torch.zeros(self.rows * self.columns, values.shape[1], dtype=values.dtype, device=values.device)
        return total.index_add_(0, self.bin, values[self.item]).view(self.rows, self.columns, -1)
