"""Attention without the matrix: one pass over the rows of a layer computes the same statistics.

This needs scores that are plain ``scale * q . k`` under a mask that only hides keys. Then one pass over all rows
(`headscope.capture.rows.sweep`, on a GPU `headscope.capture.rows.second_pass`) computes the layer's output (unless the
model's own kernel has computed it), entropies, distances, averages of columns, and the logarithm of each row's sum of
exponentials, lse. With lse,

- a single weight is ``exp(scale * q . k - lse)``;
- a fused kernel averages columns that no pass has averaged: attention with the columns as values *is* their average.

No tensor of size query x key exists, so memory grows with the length and not with its square.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from headscope.capture.model.block_sizes import BlockSizes
from headscope.capture.model.mask import Reach, as_mask
from headscope.capture.rows.attention import Attention, read_values
from headscope.capture.rows.gpu import Kernels
from headscope.capture.rows.kernel import ALIGNED, Attended, attend, products
from headscope.capture.rows.sweep import Swept, sweep
from headscope.capture.tokens import distance
from headscope.capture.tokens.batch import Batch
from headscope.capture.tokens.questions import Asked

FEW = 8
"""Columns are averaged over only the keys that are not 0 if these are at most one key in this number."""


@dataclass(frozen=True, eq=False)
class FusedRows(Attention):
    """All rows of a layer's attention, held as queries and keys in place of their weights.

    Attributes:
        query, key: The queries and keys that the model passes to attention; several query heads may share a key head.
        scale: The factor of the dot products.
        reach: The keys that a query sees.
        kernels: The kernels that measure attention without the matrix on a GPU.
        attended: The output and log-sum-exp of the model's own kernel; None if they are computed here.
    """

    layer: int
    attention_type: str
    rows: slice
    batch: Batch
    query: Float[Tensor, "batch head query size"]
    key: Float[Tensor, "batch key_head key size"]
    scale: float
    reach: Reach
    raised_tokens: Int[Tensor, "batch head key"] | None = None
    value: Float[Tensor, "batch key_head key width"] | None = None
    kernels: Kernels = field(default_factory=Kernels)
    attended: Attended | None = None
    _swept: dict[tuple[int, ...], Swept] = field(default_factory=dict)

    @property
    def heads(self) -> int:
        """The number of query heads."""
        return self.query.shape[1]

    def with_norms(self, norms: Float[Tensor, "batch head key"]) -> "FusedRows":
        """Return the rows of the norm view; `norms` has the norm of each key's value after the output projection.

        All norms must be above 0. Multiplying a weight by a norm means adding the norm's logarithm to the score. So
        each key vector gets the logarithm as a further entry, and each query vector gets a constant.
        """
        logarithms = norms.log()[..., None]
        key = self.key.float().repeat_interleave(self.heads // self.key.shape[1], dim=1)
        ones = logarithms.new_full((*self.query.shape[:-1], 1), 1 / self.scale)
        query, key = torch.cat([self.query.float(), ones], dim=-1), torch.cat([key, logarithms], dim=-1)
        query, key = (torch.nn.functional.pad(side, (0, -side.shape[-1] % ALIGNED)) for side in (query, key))
        return replace(self, query=query, key=key, value=None, attended=None, _swept={})

    def attend(self, values: Float[Tensor, "batch key_head key size"]) -> Attended:
        """Return the average of `values` under the attention, and the log-sum-exp of the scores."""
        if self.kernel is not None and not torch.is_grad_enabled():
            return self._attend_by_kernel(self.kernel, values)
        query, key = self.query.float(), self.key.float()
        if self.reach.before is None and self.reach.after in (None, 0):
            mask = self.reach.hiding(slice(0, key.shape[2]), query.shape[2], values.dtype)
            return attend(query, key, values, scale=self.scale, causal=self.reach.after == 0, mask=mask)
        parts = []
        # A block of rows sees its window and as many keys as it has rows; its mask covers both.
        window, sizes = (self.reach.before or 0) + (self.reach.after or 0), self.batch.blocks
        most = min(sizes.windowed_rows, max(BlockSizes.windowed_rows, sizes.held // (len(key) * key.shape[2])))
        length = min(max(window, most // 8), most)
        for rows in self._blocks(length):
            seen = self.reach.keys(rows, key.shape[2])
            shown = self.reach.sees(_range(rows, key), _range(seen, key))
            mask = as_mask(~shown, values.dtype)[:, None]
            block = (query[:, :, rows], key[:, :, seen], values[:, :, seen])
            parts.append(attend(*block, scale=self.scale, mask=mask))
        output, log_sum = (torch.cat(side, dim=2) for side in zip(*parts, strict=True))
        return output, log_sum

    def average(self, columns: Float[Tensor, "batch key feature"]) -> Float[Tensor, "batch head query feature"]:
        """Return the average of each column under the attention.

        One pass averages as many columns as a head is wide. If the layer before was asked for the same columns, the
        pass over all rows has averaged them already.
        """
        self.batch.questions.note_columns(self.attention_type, self.layer, columns)
        if (place := self._recalled.find(columns)) is not None:
            return self._ask().averages[place].clone()
        if self.kernel is not None:
            return self._attend_by_kernel(self.kernel, columns[:, None])[0]
        columns = columns.float()
        used = columns.any(-1)
        most = int(used.sum(1).max())
        if most * FEW <= columns.shape[1]:
            chosen = used.int().argsort(dim=1, descending=True, stable=True)[:, :most]
            held = columns.gather(1, chosen[..., None].expand(-1, -1, columns.shape[-1]))[:, None]
            blocks = self._blocks(self.batch.blocks.swept // max(1, most * self.heads * len(columns)))
            return torch.cat([self._weights(rows, chosen) @ held for rows in blocks], dim=2)
        return torch.cat([self.attend(values)[0][..., :width] for values, width in self._as_values(columns)], dim=-1)

    def average_by_head(
        self, columns: Float[Tensor, "batch key_head key feature"]
    ) -> Float[Tensor, "batch head query feature"]:
        """Return averages of separate columns for each head or each key/value head.

        One pass averages as many columns as a head is wide.
        """
        if self.kernel is not None:
            return self._attend_by_kernel(self.kernel, columns)[0]
        # In a view, there may be more key heads than heads of columns.
        heads = max(columns.shape[1], self.key.shape[1])
        key, columns = (side.repeat_interleave(heads // side.shape[1], dim=1) for side in (self.key, columns))
        apart, size = replace(self, key=key, value=None, attended=None, _swept={}), key.shape[-1]
        blocks = torch.split(columns.float(), size, -1)
        values = (torch.nn.functional.pad(block, (0, size - block.shape[-1])) for block in blocks)
        averages = torch.cat([apart.attend(each)[0] for each in values], dim=-1)
        return averages[..., : columns.shape[-1]]

    def values(self) -> Float[Tensor, "batch key_head key width"]:
        """Return the values of each key/value head."""
        return read_values(self.value).float()

    def output(self) -> Float[Tensor, "batch head query width"]:
        """Return the output of each head for each row: the average of its values."""
        read_values(self.value)
        return self._ask().output if self.attended is None else self.attended[0].detach().float()

    def _attend_by_kernel(self, kernel: ModuleType, columns: Float[Tensor, "batch any key column"]) -> Attended:
        """Return averages of columns and the log-sum-exp of the scores, by the GPU kernel.

        The columns are shared by all heads, or separate for each head or key/value head.
        """
        known = next((swept.log_sum for swept in self._swept.values()), self._known_log_sum)
        laid, how = kernel.lay_columns([columns]), {"scale": self.scale, "reach": self.reach, "log_sum": known}
        attended: Attended = kernel.attend_by_triton(self.query, self.key, laid, **how)
        return attended

    def _ask(self, edges: tuple[int, ...] | None = None) -> Swept:
        """Return the statistics from one pass over all rows; a further pass runs only for other `edges`."""
        if edges is None:
            edges = next(iter([*self._swept, *self._recalled.edges]), distance.EDGES)
        if edges not in self._swept:
            first = self.keys.first - self.queries.first
            how: dict[str, Any] = {"scale": self.scale, "reach": self.reach, "first": first, "edges": edges}
            value = self.value if self.attended is None else None
            if self.kernel is None:
                columns, batch = self._recalled.columns, self.batch
                value = None if value is None else value.float()
                sides = self.query.float(), self.key.float(), value
                swept = sweep(*sides, columns, **how, rulers=batch.rulers, sizes=batch.blocks)
            else:
                swept = self._sweep_by_kernel(self.kernel, value, **how, rulers=self.batch.rulers)
            self._swept[edges] = swept
        return self._swept[edges]

    def _sweep_by_kernel(
        self, kernel: ModuleType, value: Float[Tensor, "batch key_head key width"] | None, **how: Any
    ) -> Swept:
        recalled = self._recalled
        if value is None:
            columns = self.batch.questions.lay(recalled, kernel.lay_columns)
        else:
            columns = kernel.lay_columns([value, *(each[:, None] for each in recalled.columns)])
        swept: Swept = kernel.sweep_by_triton(self.query, self.key, columns, **how, log_sum=self._known_log_sum)
        return swept if value is None else replace(swept, output=swept.averages[0], averages=swept.averages[1:])

    @property
    def _known_log_sum(self) -> Float[Tensor, "batch head query"] | None:
        return None if self.attended is None else self.attended[1]

    @property
    def way(self) -> str:
        """The method that computes the statistics, in words, as the measuring paths of a table name it."""
        return "without the matrix" if self.kernel is None else "without the matrix, by Triton"

    @property
    def kernel(self) -> ModuleType | None:
        """The module of the GPU kernel; None if plain products are used."""
        return self.kernels.find(self.query)

    @cached_property
    def _recalled(self) -> Asked:
        return self.batch.questions.recall(self.attention_type, self.layer)

    def bound_scores(self) -> float:
        """Return an upper bound of the absolute values of all scores (Cauchy-Schwarz)."""
        longest = (side.norm(dim=-1, dtype=torch.float32).amax(-1).amax() for side in (self.query, self.key))
        return float(abs(self.scale) * math.prod(longest))

    @property
    def log_sum(self) -> Float64[Tensor, "batch head query"]:
        """The logarithm of the sum of the exponentials of each row's scores."""
        return self._ask().log_sum

    def entropy(self) -> Float[Tensor, "batch head query"]:
        """Return the entropy of each row, -sum_k a[q, k] ln a[q, k], in nats."""
        # If a row attends to a single key, rounding may give a number a little below 0.
        return self._ask().entropy.clamp_min(0)

    def distances(
        self, edges: tuple[int, ...]
    ) -> tuple[Float[Tensor, "batch head query bucket"], Float[Tensor, "batch head query"]]:
        """Return the attention to each bucket of distance, and the mean distance; see `Attention.distances`."""
        self.batch.questions.note_edges(self.attention_type, self.layer, edges)
        features = self._ask(edges).features
        return features[..., :-1], features[..., -1]

    def at(self, keys: Int[Tensor, "batch query n"]) -> Float[Tensor, "batch head query n"]:
        """Return the weights of each row on the n keys that `keys` gives for this row."""
        row = torch.arange(len(keys), device=keys.device)[:, None]
        place = torch.arange(keys.shape[1], device=keys.device)
        groups = self.heads // self.key.shape[1]
        weights = []
        for column in keys.unbind(-1):
            chosen = self.key.transpose(1, 2)[row, column].transpose(1, 2).repeat_interleave(groups, dim=1)
            # In float64, so that only the rounding of the log-sum-exp remains.
            score: Tensor = torch.linalg.vecdot(self.query.double(), chosen.double())
            weight = (self.scale * score - self.log_sum).exp().float()
            seen = self.reach.within(column - place)
            if self.reach.hidden is not None:
                seen &= ~self.reach.hidden.gather(1, column)
            weights.append(weight.masked_fill_(~seen[:, None], 0.0))
        return torch.stack(weights, dim=-1)

    def largest(self, queries: Int[Tensor, "batch n"]) -> Int[Tensor, "batch head n"]:
        """Return the key with the largest score, and so the largest weight, for each of `queries`."""
        query = self.query.gather(2, queries[:, None, :, None].expand(-1, self.heads, -1, self.query.shape[-1]))
        places = _range(slice(0, self.key.shape[2]), self.key)
        seen = self.reach.within(places - queries[..., None])
        if self.reach.hidden is not None:
            seen &= ~self.reach.hidden[:, None]
        return (
            products(query.float(), self.key.float())
            .mul_(self.scale)
            .masked_fill_(~seen[:, None], -torch.inf)
            .argmax(-1)
        )

    def visible(self) -> Float[Tensor, "batch query"]:
        """Return the number of keys that each query may attend to."""
        return self.reach.count(len(self.key), self.query.shape[2], self.key.shape[2], self.key.device)

    def weights(self) -> Float[Tensor, "batch head query key"]:
        """Compute the whole matrix of query x key."""
        return self._weights(self.rows, _range(slice(0, self.key.shape[2]), self.key))

    def _weights(
        self, rows: slice, keys: Int[Tensor, " key"] | Int[Tensor, "batch key"]
    ) -> Float[Tensor, "batch head query key"]:
        """Compute the weights of a block of rows on some keys, either the same for all texts or different by text."""
        if keys.ndim == 1:
            key = self.key[:, :, keys]
        else:
            key = self.key.gather(2, keys[:, None, :, None].expand(-1, self.key.shape[1], -1, self.key.shape[-1]))
        # In float64, as in `at`.
        scores = products(self.query[:, :, rows].double(), key.double()).mul_(self.scale)
        weights = scores.sub_(self.log_sum[:, :, rows, None]).exp_().float()
        return weights.masked_fill_(~self.reach.sees(_range(rows, key), keys)[:, None], 0.0)

    def _as_values(
        self, columns: Float[Tensor, "batch key feature"]
    ) -> Iterator[tuple[Float[Tensor, "batch key_head key size"], int]]:
        """Yield columns as values of every key head, padded to the width of a head, and the number of columns."""
        size = self.query.shape[-1]
        for part in torch.split(columns, size, dim=-1):
            padded = torch.nn.functional.pad(part, (0, size - part.shape[-1]))
            yield padded[:, None].expand(-1, self.key.shape[1], -1, -1), part.shape[-1]

    def _blocks(self, length: int) -> Iterator[slice]:
        for start in range(0, self.query.shape[2], max(1, length)):
            yield slice(start, min(start + max(1, length), self.query.shape[2]))


def _range(part: slice, like: Tensor) -> Int[Tensor, " n"]:
    return torch.arange(part.start, part.stop, device=like.device)
