"""Attention without the matrix: what a fused kernel leaves behind answers the same questions.

Where the scores are plain ``scale * q . k`` under a mask that only hides keys, an average of columns
*is* attention with the columns for values, and so costs what attention costs. The kernel also
returns the logarithm of each row's sum of exponentials, lse. With it

- a single weight is ``exp(scale * q . k - lse)``;
- the entropy is ``lse - scale * q . average(K)``, since ``-sum_k a_k ln a_k = -sum_k a_k (scale * q . k - lse)``.

Nothing of size query x key exists, so memory grows with the length and not with its square.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.capture.batch import Batch, Tokens


@dataclass(frozen=True, eq=False)
class FusedRows:
    """All rows of a layer's attention, as queries, keys and the kernel's log-sum-exp.

    Attributes:
        query, key: as the model hands them to attention; several query heads may share a key head.
        scale: what the dot products are multiplied with.
        causal: a query sees no key behind it.
        hidden: keys that no query may see (padding); None if there are none.
    """

    layer: int
    stack: str
    batch: Batch
    query: Float[Tensor, "batch head query size"]
    key: Float[Tensor, "batch key_head key size"]
    scale: float
    causal: bool
    hidden: Bool[Tensor, "batch key"] | None

    @property
    def rows(self) -> slice:
        """The query positions held: all of them."""
        return slice(0, self.query.shape[2])

    @property
    def queries(self) -> Tokens:
        """The tokens that attend."""
        return self.batch.queries(self.stack)

    @property
    def keys(self) -> Tokens:
        """The tokens that are attended to."""
        return self.batch.keys(self.stack)

    @property
    def heads(self) -> int:
        """The number of query heads."""
        return self.query.shape[1]

    def attend(
        self, values: Float[Tensor, "batch key_head key size"]
    ) -> tuple[Float[Tensor, "batch head query size"], Float[Tensor, "batch head query"]]:
        """The average of `values` under the attention, and the log-sum-exp of the scores."""
        mask = None
        if self.hidden is not None:
            queries, keys = self.query.shape[2], self.key.shape[2]
            row = torch.zeros_like(self.hidden, dtype=self.query.dtype).masked_fill_(self.hidden, -torch.inf)
            mask = row[:, None, None].expand(-1, 1, queries, keys)  # one row, seen as many: no memory
        output, log_sum = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            self.query, self.key, values, 0.0, self.causal, attn_mask=mask, scale=self.scale
        )
        return output, log_sum

    def average(self, columns: Float[Tensor, "batch key feature"]) -> Float[Tensor, "batch head query feature"]:
        """The average of each column under the attention, as many columns a pass as a head is wide."""
        size, found = self.query.shape[-1], []
        for start in range(0, columns.shape[-1], size):
            part = columns[..., start : start + size]
            # The kernel is fast only for values as wide as the keys.
            padded = torch.nn.functional.pad(part.to(self.query.dtype), (0, size - part.shape[-1]))
            values = padded[:, None].expand(-1, self.key.shape[1], -1, -1)
            found.append(self.attend(values)[0][..., : part.shape[-1]])
        return torch.cat(found, dim=-1)

    @cached_property
    def _keys_attended(self) -> tuple[Float[Tensor, "batch head query size"], Float[Tensor, "batch head query"]]:
        return self.attend(self.key)

    @property
    def log_sum(self) -> Float[Tensor, "batch head query"]:
        """The logarithm of the sum of the exponentials of each row's scores."""
        return self._keys_attended[1]

    def entropy(self) -> Float[Tensor, "batch head query"]:
        """-sum_k a[q, k] ln a[q, k], in nats."""
        average_key, log_sum = self._keys_attended
        average_score: Tensor = torch.linalg.vecdot(self.query, average_key)
        # Rounding may leave a little less than nothing where a row attends to one key alone.
        return (log_sum - self.scale * average_score).clamp_min(0)

    def at(self, keys: Int[Tensor, "batch query n"]) -> Float[Tensor, "batch head query n"]:
        """The weights on chosen keys, n for each query."""
        row = torch.arange(len(keys), device=keys.device)[:, None]
        groups = self.heads // self.key.shape[1]
        found = []
        for column in keys.unbind(-1):
            chosen = self.key.transpose(1, 2)[row, column].transpose(1, 2).repeat_interleave(groups, dim=1)
            score: Tensor = torch.linalg.vecdot(self.query, chosen)
            found.append((self.scale * score - self.log_sum).exp().where(self._sees(column)[:, None], 0.0))
        return torch.stack(found, dim=-1)

    def _sees(self, column: Int[Tensor, "batch query"]) -> Bool[Tensor, "batch query"]:
        seen = torch.ones_like(column, dtype=torch.bool)
        if self.causal:
            seen &= column <= torch.arange(column.shape[1], device=column.device)
        return seen if self.hidden is None else seen & ~self.hidden.gather(1, column)

    def visible(self) -> Float[Tensor, "batch query"]:
        """How many keys each query may attend to."""
        batch, queries, keys = self.query.shape[0], self.query.shape[2], self.key.shape[2]
        shown = torch.ones(batch, keys, device=self.query.device) if self.hidden is None else (~self.hidden).float()
        return shown.cumsum(1) if self.causal else shown.sum(1, keepdim=True).expand(batch, queries)

    def weights(self) -> Float[Tensor, "batch head query key"]:
        """The matrix itself, made for this question: query x key."""
        groups = self.heads // self.key.shape[1]
        scores = self.scale * self.query @ self.key.repeat_interleave(groups, dim=1).transpose(-1, -2)
        key = torch.arange(self.key.shape[2], device=self.key.device)
        seen = self._sees_all(key)
        return scores.masked_fill(~seen, -torch.inf).softmax(-1)

    def _sees_all(self, key: Int[Tensor, " key"]) -> Bool[Tensor, "batch 1 query key"]:
        query = torch.arange(self.query.shape[2], device=key.device)
        seen = (key <= query[:, None]) if self.causal else torch.ones(len(query), len(key), dtype=torch.bool)
        seen = seen.expand(self.query.shape[0], 1, -1, -1)
        return seen if self.hidden is None else seen & ~self.hidden[:, None, None]
