"""Attention as blocks of rows of its matrix, which the model's own attention function computes."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.capture.rows.attention import Attention, read_values
from headscope.capture.rows.kernel import average_values
from headscope.capture.rows.norms import make_shares
from headscope.capture.tokens.batch import Batch

FEW_COLUMNS = 16
"""Up to this number of columns, a tensor is stored column by column, which makes a product several times faster."""


@dataclass(frozen=True, eq=False)
class DenseRows(Attention):
    """Attention whose weights are held, for the rows of one block.

    Attributes:
        matrix: The weights from the model's own attention function, in float32.
        columns: The range of keys of the matrix; the mask hides all others from every row of the block.
        allowed: The number of keys that the mask shows to each query.
        averaged: The result of `output`; None if `value` is None.
    """

    layer: int
    attention_type: str
    rows: slice
    batch: Batch
    matrix: Float[Tensor, "batch head query held"]
    columns: slice
    allowed: Float[Tensor, "batch query"]
    raised_tokens: Int[Tensor, "batch head key"] | None = None
    value: Float[Tensor, "batch key_head key width"] | None = None
    averaged: Float[Tensor, "batch head query width"] | None = None

    @property
    def heads(self) -> int:
        """The number of query heads."""
        return self.matrix.shape[1]

    def on(self, device: torch.device) -> "DenseRows":
        """Return the same rows on a device."""
        if device == self.matrix.device:
            return self
        tensors: dict[str, Any] = {
            name: part.to(device) for name, part in vars(self).items() if isinstance(part, Tensor)
        }
        return replace(self, batch=self.batch.on(device), **tensors)

    def with_norms(self, norms: Float[Tensor, "batch head key"]) -> "DenseRows":
        """Return the rows of the norm view; `norms` has the norm of each key's value after the output projection."""
        return replace(self, matrix=make_shares(self.matrix, norms[:, :, self.columns]), value=None, averaged=None)

    def average(self, columns: Float[Tensor, "batch key feature"]) -> Float[Tensor, "batch head query feature"]:
        """Return the average of each column under the attention: sum_k a[q, k] * columns[k]."""
        batch, head, query, held = self.matrix.shape
        # Heads and queries form one axis, so that there is one product for each document, not for each head.
        flat, width = self.matrix.reshape(batch, head * query, held), columns.shape[-1]
        columns = columns if held == columns.shape[1] else columns[:, self.columns]
        averages = torch.bmm(flat, _lay_out(columns.float()))
        return averages[..., :width].view(batch, head, query, width)

    def average_by_head(
        self, columns: Float[Tensor, "batch key_head key feature"]
    ) -> Float[Tensor, "batch head query feature"]:
        """Return averages of separate columns for each head or each key/value head."""
        return average_values(self.matrix, _lay_out(columns[:, :, self.columns].float()))[..., : columns.shape[-1]]

    def output(self) -> Float[Tensor, "batch head query width"]:
        """Return the output of each head for each row: the average of its values."""
        return read_values(self.averaged)

    def entropy(self) -> Float[Tensor, "batch head query"]:
        """Return the entropy of each row, -sum_k a[q, k] ln a[q, k], in nats; a weight of 0 adds nothing."""
        tiny = torch.finfo(self.matrix.dtype).tiny
        # A few texts at a time share their memory, since allocating new memory costs more than the logarithms.
        texts = torch.split(self.matrix, self.batch.blocks.texts)
        terms = torch.empty_like(texts[0])
        negated = [
            torch.clamp_min(weights, tiny, out=terms[: len(weights)]).log_().mul_(weights).sum(-1) for weights in texts
        ]
        return torch.cat(negated).neg_()

    def at(self, keys: Int[Tensor, "batch query n"]) -> Float[Tensor, "batch head query n"]:
        """Return the weights of each row on the n keys that `keys` gives for this row."""
        place = keys - self.columns.start
        held = (place >= 0) & (place < self.matrix.shape[-1])
        index = place.clamp(0, self.matrix.shape[-1] - 1)[:, None].expand(-1, self.heads, -1, -1)
        return self.matrix.gather(3, index).masked_fill_(~held[:, None], 0.0)

    def largest(self, queries: Int[Tensor, "batch n"]) -> Int[Tensor, "batch head n"]:
        """Return the key with the largest weight for each of `queries`, which must be among the held rows."""
        place = (queries - self.rows.start) // (self.rows.step or 1)
        index = place[:, None, :, None].expand(-1, self.heads, -1, self.matrix.shape[-1])
        keys: Tensor = self.matrix.gather(2, index).argmax(-1) + self.columns.start
        return keys

    def distances(
        self, edges: tuple[int, ...]
    ) -> tuple[Float[Tensor, "batch head query bucket"], Float[Tensor, "batch head query"]]:
        """Return the attention to each bucket of distance, and the mean distance in tokens, for each row."""
        first = self.keys.first + self.columns.start - self.queries.first - self.rows.start
        keys = ((first, first + self.matrix.shape[-1]),)
        together = self.batch.rulers.total(self.matrix, keys, edges, self.rows.step or 1)
        return together[..., :-1], together[..., -1]

    def visible(self) -> Float[Tensor, "batch query"]:
        """Return the number of keys that each query may attend to under the model's mask."""
        return self.allowed

    def weights(self) -> Float[Tensor, "batch head query key"]:
        """Return the matrix itself, with 0 for keys that are not held."""
        around = (self.columns.start, self.keys.length - self.columns.stop)
        return torch.nn.functional.pad(self.matrix, around) if any(around) else self.matrix


def _lay_out(columns: Float[Tensor, "*batch key feature"]) -> Float[Tensor, "*batch key laid"]:
    """Return columns in the memory layout of the fastest product: up to `FEW_COLUMNS` are stored column by column.

    A single column gets a second column of zeros.
    """
    columns = torch.nn.functional.pad(columns, (0, 1)) if columns.shape[-1] == 1 else columns
    return columns.mT.contiguous().mT if columns.shape[-1] <= FEW_COLUMNS else columns
