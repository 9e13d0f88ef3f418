"""One call of attention in a forward pass, measured with its matrix or without it.

With it, the model's own function is called on blocks of query rows: the softmax is taken row by row, so the result is
the model's own whatever terms the family adds (softcap, sinks, position biases, windows), and memory grows with the
block and not with the square of the length. Without it, a fused kernel answers, and a few rows are compared with the
model's own.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headscope.capture.attention import Attention, DenseRows
from headscope.capture.batch import Batch
from headscope.capture.fused import FusedRows
from headscope.capture.mask import Masks, Reach
from headscope.capture.model import Model
from headscope.capture.path import cut, may_leave_out, too_large
from headscope.capture.verify import verify_average, verify_fused
from headscope.errors import ModelError

BLOCK_WEIGHTS = 1 << 20
"""Attention weights of a block when no number of rows is asked for (4 MiB, about a processor's cache)."""

CHECKED_ROWS = 3
"""Rows of every layer of every batch that are compared with the model's own function."""

See = Callable[[Attention], None]

Paths = Counter[tuple[str, int, str]]
"""How many texts were measured by attention type, layer and way: with the matrix or without it, and why."""


@dataclass(eq=False)
class Pass:
    """The state of one forward pass under our implementation."""

    model: Model
    batch: Batch
    see: See
    block_rows: int | None
    whole: bool
    verify: bool
    matrix_because: str
    fused_from: int
    layers: Counter[str] = field(default_factory=Counter)
    paths: Paths = field(default_factory=Counter)
    masks: Masks = field(default_factory=Masks)

    def attention_type_of(self, queries: int, keys: int) -> str:
        """Which attention a call belongs to.

        A decoder reads one token more than its encoder (its start token), so the two lengths tell.
        """
        encoder = self.batch.encoder.length
        decoder = None if self.batch.decoder is None else self.batch.decoder.length
        known = {(encoder, encoder): "encoder", (decoder, decoder): "decoder", (decoder, encoder): "cross"}
        if (queries, keys) not in known:
            raise ModelError(
                f"{self.model.name!r} calls attention on {queries} queries and {keys} keys for a text of {encoder} "
                "tokens; only attention over the whole text can be captured."
            )
        return known[queries, keys]

    def blocks(self, batch: int, heads: int, queries: int, keys: int) -> Iterator[slice]:
        """Blocks of query rows, as long as was asked for or as `BLOCK_WEIGHTS` allows."""
        rows = self.block_rows or max(1, BLOCK_WEIGHTS // (batch * heads * keys))
        for start in range(0, queries, rows):
            yield slice(start, min(start + rows, queries))


@dataclass(frozen=True, eq=False)
class Call:
    """One call of attention by a model, its queries, keys and values in float32 at least.

    In less the statistics would be rounded with the weights. What goes back to the model is rounded once.
    """

    module: nn.Module
    attention_type: str
    layer: int
    query: Float[Tensor, "batch head query size"]
    key: Float[Tensor, "batch key_head key size"]
    value: Float[Tensor, "batch key_head key width"]
    attention_mask: Tensor | None
    reach: Reach | None
    terms: Mapping[str, Any]

    def eager(self, run: Pass, rows: slice, columns: slice) -> tuple[Tensor, Tensor, Tensor]:
        """The output and weights of the model's own function for some rows and keys; how many keys each row sees."""
        key, value = self.key[:, :, columns], self.value[:, :, columns]
        return self._eager(run, self.query[:, :, rows], key, value, rows, columns)

    def exact(self, run: Pass, rows: slice) -> tuple[Tensor, Tensor]:
        """The same for a few rows and all keys, in float64 and a key head at a time, which takes little memory.

        For so few rows a sum over tens of thousands of keys is further off in float32 than the fused kernel's is.
        """
        groups = self.query[:, :, rows].double().chunk(self.key.shape[1], dim=1)
        outputs, weights = [], []
        for head, query in enumerate(groups):
            key, value = (one[:, head : head + 1].double() for one in (self.key, self.value))
            output, weight, _ = self._eager(run, query, key, value, rows, slice(0, self.key.shape[2]))
            outputs.append(output)
            weights.append(weight)
        return torch.cat(outputs, dim=2), torch.cat(weights, dim=1)

    def _eager(
        self, run: Pass, query: Tensor, key: Tensor, value: Tensor, rows: slice, columns: slice
    ) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys = self.query.shape[2], self.key.shape[2]
        mask, allowed = run.masks.block(self.attention_mask, rows, columns, query, keys)
        terms = {name: cut(term, rows, columns, queries, keys) for name, term in self.terms.items()}
        output, weights = eager_of(self.module)(self.module, query, key, value, mask, **terms)
        return output, weights.float(), allowed


def without_matrix(run: Pass, call: Call, attention: FusedRows) -> tuple[Tensor | None, str]:
    """A layer's output by a fused kernel, a few rows compared with the model's own; or why it cannot be had so."""
    output, log_sum = attention.attend(call.value)
    if because := too_large(log_sum, attention.queries.real):
        return None, because
    output = output.transpose(1, 2).contiguous()
    rows = _rows_to_check(call.layer, call.query.shape[2])
    # Seen first: the proof asks for entropies, which a pass that answers the reducers finds as well.
    run.see(attention)
    expected, weights = call.exact(run, rows)
    verify_fused(run.model, attention, rows, output[:, rows], expected, weights)
    return output, ""


def with_matrix(run: Pass, call: Call) -> Tensor:
    """A layer's output by the model's own function, a block of rows at a time."""
    (batch, heads, queries, _), keys = call.query.shape, call.key.shape[2]
    partly = not run.whole and may_leave_out(call.terms)
    outputs, held = [], []
    for rows in run.blocks(batch, heads, queries, keys):
        columns = call.reach.keys(rows, keys) if partly and call.reach is not None else slice(0, keys)
        output, weights, allowed = call.eager(run, rows, columns)
        attention = DenseRows(call.layer, call.attention_type, rows, run.batch, weights, columns, allowed)
        if run.verify:
            verify_average(run.model, attention, call.value[:, :, columns], output)
        outputs.append(output)
        if run.whole:
            held.append(attention)
        else:
            run.see(attention)
    if run.whole:
        run.see(_gathered(held))
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=1)


def _rows_to_check(layer: int, queries: int) -> slice:
    """A few rows, others in every layer."""
    start = layer * 7919 % max(1, queries - CHECKED_ROWS + 1)
    return slice(start, min(start + CHECKED_ROWS, queries))


def _gathered(blocks: list[DenseRows]) -> DenseRows:
    if len(blocks) == 1:
        return blocks[0]
    first = blocks[0]
    return DenseRows(
        first.layer,
        first.attention_type,
        slice(first.rows.start, blocks[-1].rows.stop),
        first.batch,
        torch.cat([block.matrix for block in blocks], dim=2),
        first.columns,
        torch.cat([block.allowed for block in blocks], dim=1),
    )


def eager_of(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor]]:
    """The eager attention function beside the class of `module`, or beside a class it derives from."""
    for owner in type(module).__mro__:
        beside = vars(sys.modules[owner.__module__])
        if "eager_attention_forward" in beside:
            function: Callable[..., tuple[Tensor, Tensor]] = beside["eager_attention_forward"]
            return function
    raise ModelError(
        f"{type(module).__module__} defines {type(module).__name__} without an eager_attention_forward beside it, "
        "so its attention cannot be captured."
    )
