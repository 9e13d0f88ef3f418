"""Attention answers questions; it is not a matrix.

A reducer is handed an `Attention` while the forward pass runs, and asks it for averages, entropies
or single weights. How the answer is found is the business of the implementation, which the seam in
`headscope.capture.interface` chooses.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.capture import distance
from headscope.capture.batch import Batch, Tokens

FEW_COLUMNS = 16
"""Up to so many columns are averaged in another layout."""


@runtime_checkable
class Attention(Protocol):
    """A block of query rows of one layer's attention, for one batch.

    Rows and keys of padding are present and meaningless; a reducer leaves them out by
    ``queries.real`` and ``keys.real``.
    """

    @property
    def layer(self) -> int:
        """Counted from 1 in the order of the forward pass, in each attention type by itself."""

    @property
    def attention_type(self) -> str:
        """``encoder``, ``decoder`` (also of a model that is a decoder alone) or ``cross``."""

    @property
    def rows(self) -> slice:
        """The query positions held."""

    @property
    def batch(self) -> Batch:
        """The documents, their tokens and words."""

    @property
    def queries(self) -> Tokens:
        """The tokens that attend; all of them, of which `rows` are held."""

    @property
    def keys(self) -> Tokens:
        """The tokens that are attended to."""

    @property
    def heads(self) -> int:
        """The number of query heads."""

    @property
    def before(self) -> "Attention | None":
        """The same rows of the model that this one was tuned from, where two models are compared."""

    def average(self, columns: Float[Tensor, "batch key feature"]) -> Float[Tensor, "batch head query feature"]:
        """The average of each column under the attention: sum_k a[q, k] * columns[k]."""

    def entropy(self) -> Float[Tensor, "batch head query"]:
        """-sum_k a[q, k] ln a[q, k], in nats."""

    def at(self, keys: Int[Tensor, "batch query n"]) -> Float[Tensor, "batch head query n"]:
        """The weights on chosen keys, n for each query."""

    def distances(
        self, edges: tuple[int, ...]
    ) -> tuple[Float[Tensor, "batch head query bucket"], Float[Tensor, "batch head query"]]:
        """How far each query looks: the mass in each bucket of distance, and the mean distance, in tokens.

        Args:
            edges: distances at which a bucket begins, from 1 upwards; there are as many buckets before
                the query as after it, and one for the token itself (`headscope.capture.distance.names`).
        """

    def visible(self) -> Float[Tensor, "batch query"]:
        """How many keys each query may attend to under the model's mask."""

    def weights(self) -> Float[Tensor, "batch head query key"]:
        """The matrix itself: only where a reducer truly needs it."""


@dataclass(frozen=True, eq=False)
class DenseRows:
    """Attention whose weights are held, for the rows of one block.

    Attributes:
        matrix: the weights as the model's own attention function made them, in float32.
        columns: the keys they are on; the mask hides all others from every row of the block.
        allowed: how many keys the mask leaves to each query.
        before: the same rows of the model that this one was tuned from, where two models are compared.
    """

    layer: int
    attention_type: str
    rows: slice
    batch: Batch
    matrix: Float[Tensor, "batch head query held"]
    columns: slice
    allowed: Float[Tensor, "batch query"]
    before: Attention | None = None

    @property
    def queries(self) -> Tokens:
        """The tokens that attend; all of them, of which `rows` are held."""
        return self.batch.queries(self.attention_type)

    @property
    def keys(self) -> Tokens:
        """The tokens that are attended to."""
        return self.batch.keys(self.attention_type)

    @property
    def heads(self) -> int:
        """The number of query heads."""
        return self.matrix.shape[1]

    def average(self, columns: Float[Tensor, "batch key feature"]) -> Float[Tensor, "batch head query feature"]:
        """The average of each column under the attention: sum_k a[q, k] * columns[k]."""
        batch, head, query, held = self.matrix.shape
        # Heads and queries as one axis: one product a document instead of one a head.
        flat, held_columns = self.matrix.reshape(batch, head * query, held), columns[:, self.columns].float()
        if columns.shape[-1] <= FEW_COLUMNS:
            # So few are multiplied several times faster where the keys of each stand side by side.
            held_columns = held_columns.mT.contiguous().mT
        return torch.bmm(flat, held_columns).view(batch, head, query, columns.shape[-1])

    def entropy(self) -> Float[Tensor, "batch head query"]:
        """-sum_k a[q, k] ln a[q, k], in nats; a weight of 0 adds nothing."""
        tiny = torch.finfo(self.matrix.dtype).tiny
        # A text at a time, since memory that is new each time costs more than the logarithms.
        terms = torch.empty_like(self.matrix[0])
        negated = [torch.clamp_min(weights, tiny, out=terms).log_().mul_(weights).sum(-1) for weights in self.matrix]
        return torch.stack(negated).neg_()

    def at(self, keys: Int[Tensor, "batch query n"]) -> Float[Tensor, "batch head query n"]:
        """The weights on chosen keys, n for each query."""
        place = keys - self.columns.start
        held = (place >= 0) & (place < self.matrix.shape[-1])
        index = place.clamp(0, self.matrix.shape[-1] - 1)[:, None].expand(-1, self.heads, -1, -1)
        return self.matrix.gather(3, index).masked_fill_(~held[:, None], 0.0)

    def distances(
        self, edges: tuple[int, ...]
    ) -> tuple[Float[Tensor, "batch head query bucket"], Float[Tensor, "batch head query"]]:
        """The mass in each bucket of distance, and the mean distance, in tokens."""
        first = int(self.keys.position[0, self.columns.start] - self.queries.position[0, self.rows.start])
        together = distance.total(self.matrix, ((first, first + self.matrix.shape[-1]),), edges)
        return together[..., :-1], together[..., -1]

    def visible(self) -> Float[Tensor, "batch query"]:
        """How many keys each query may attend to under the model's mask."""
        return self.allowed

    def weights(self) -> Float[Tensor, "batch head query key"]:
        """The matrix itself."""
        around = (self.columns.start, self.keys.length - self.columns.stop)
        return torch.nn.functional.pad(self.matrix, around) if any(around) else self.matrix
