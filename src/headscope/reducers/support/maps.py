"""The attention maps of the documents of a batch, each as a whole and without padding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.capture.tokens.batch import Batch
from headscope.reducers.support.folds import FoldAssignment, total_by_fold


@dataclass(frozen=True, eq=False)
class Maps:
    """The tokens, the known facts and the folds of the documents of a batch, whose maps are read one by one.

    Attributes:
        queries, keys: True for tokens, False for padding.
        known: For each document, the facts that the reducer needs about its map.
        folds: The fold of each document.
    """

    queries: Bool[Tensor, "document query"]
    keys: Bool[Tensor, "document key"]
    known: Sequence[Any]
    folds: Int[Tensor, " document"]

    @classmethod
    def of_batch(cls, batch: Batch, attention_type: str, known: Sequence[Any], assignment: FoldAssignment) -> "Maps":
        """Return the maps of a batch, with the fact in `known` about each map."""
        queries, keys = batch.queries(attention_type).real, batch.keys(attention_type).real
        return cls(queries, keys, known, assignment.folds(batch.documents, keys.device))

    def count(self) -> Int[Tensor, " fold"]:
        """Count the maps of each fold, one for each document."""
        return total_by_fold(torch.ones_like(self.folds), self.folds)

    def cut(self, weights: Float[Tensor, "document head query key"]) -> Iterator[tuple[Tensor, Any]]:
        """Yield for each document its map without padding (by head, query and key), and the known facts about it."""
        for of_document, queries, keys, known in zip(weights, self.queries, self.keys, self.known, strict=True):
            yield of_document[:, queries][..., keys], known
