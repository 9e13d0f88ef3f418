"""The seam: the one place that knows how transformers calls attention.

A model is run under an attention implementation of ours, for which the model's own
``eager_attention_forward`` (the function beside its attention class) does the work. It is called
on blocks of query rows: the softmax is taken row by row, so the result is the model's own whatever
terms the family adds (softcap, sinks, position biases, windows), and memory grows with the block
and not with the square of the length.

Seen to go wrong, and handled here (transformers 5.23):

- A name registered for attention alone gets no mask, silently; ours is registered for both.
- Layers carry no reliable number (DistilBERT has none, ALBERT reuses one module): we count calls.
- Families without the interface accept the name with a log line and ignore it. They are observed
  through ``output_attentions=True``, or refused.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.utils import logging as transformers_logging

from headscope.capture.attention import Attention, DenseRows
from headscope.capture.batch import Batch
from headscope.capture.fused import FusedRows
from headscope.capture.mask import Masks
from headscope.capture.model import Model
from headscope.capture.path import cut, may_leave_out, plain
from headscope.capture.proof import prove_average, prove_fused, prove_rows, prove_same, prove_unpadded
from headscope.errors import HeadscopeError, ModelError, first_line

NAME = "headscope"
"""Our name among transformers' attention implementations."""

BLOCK_WEIGHTS = 1 << 20
"""Attention weights of a block when no number of rows is asked for (4 MiB, about a processor's cache)."""

FUSED_FROM = 1536
"""Keys from which on attention is measured without its matrix; below, the matrix is the faster way."""

PROVEN_BLOCKS = 2
"""Blocks of rows in which the capture is proven."""

CHECKED_ROWS = 3
"""Rows of every layer of every batch that are compared with the model's own function."""

See = Callable[[Attention], None]

Paths = Counter[tuple[str, int, str]]
"""How many texts were measured by stack, layer and way: with the matrix or without it, and why."""


@dataclass(frozen=True, eq=False)
class Capture:
    """A model whose attention is known to be captured faithfully.

    Attributes:
        model: the model.
        route: ``interface`` where attention passes through us, ``outputs`` where the model's own
            ``output_attentions=True`` is all there is.
    """

    model: Model
    route: str

    @classmethod
    def proven(cls, model: Model, batch: Batch) -> "Capture":
        """Find a route to the attention of `model` and prove it on `batch`.

        The model's outputs must be those of the untouched model, and the same for a text with and
        without padding beside it; the number of layers seen must be the model's; every row must sum
        to 1 (at most 1 where the model has sinks); and the average of the values must be what the
        attention function returned.

        Raises:
            ModelError: no route leads to the attention, or a proof fails.
        """
        if model.module.training:
            raise ModelError(
                f"{model.name!r} is in training mode, where dropout changes attention; call `.eval()` on it first."
            )
        untouched = _hidden(model, batch)
        _prove_unpadded(model, batch, untouched)
        route = "interface" if _takes_our_name(model.module) else "outputs"
        capture = cls(model, route)
        # In more than one block of rows, since long texts will be seen in many.
        how: dict[str, Any] = {"rows": -(-batch.encoder.length // PROVEN_BLOCKS), "prove": True}
        seen = capture.observe(batch, lambda attention: prove_rows(model, attention), **how)
        if route == "interface" and not seen.layers:
            capture = cls(model, "outputs")
            seen = capture.observe(batch, lambda attention: prove_rows(model, attention), **how)
        if dict(seen.layers) != dict(model.layers):
            raise ModelError(
                f"the attention of {model.name!r} cannot be captured: {_counts(model.layers)} were expected and "
                f"{_counts(seen.layers)} seen. The model mixes attention with other layers, or computes it apart."
            )
        prove_same(model, batch, untouched, seen.hidden)
        return capture

    def observe(
        self,
        batch: Batch,
        see: See,
        *,
        rows: int | None = None,
        whole: bool = False,
        fused: bool | None = None,
        prove: bool = False,
    ) -> "Seen":
        """Run the model on `batch` and show each layer's attention to `see`.

        Args:
            batch: documents as tokens.
            see: called with blocks of rows of one layer after the other.
            rows: the number of query rows of a block; by default as many as `BLOCK_WEIGHTS` allows.
            whole: gather the blocks, so that `see` gets all rows of a layer at once, with their matrix.
            fused: do without the matrix where a layer allows it; by default from `FUSED_FROM` keys on.
            prove: check that the values averaged by the weights are what the layer returns.
        """
        if self.route == "outputs":
            return _through_outputs(self.model, batch, see)
        reasons = {"a reducer needs it": whole, "it is checked": prove, "it was asked for": fused is False}
        because = next((reason for reason, holds in reasons.items() if holds), "")
        run = _Pass(self.model, batch, see, rows, whole, prove, because, FUSED_FROM if fused is None else 0)
        with _ours(self.model.module), torch.inference_mode():
            token = _current.set(run)
            try:
                output = self.model.module(**_inputs(self.model, batch))
            except HeadscopeError:
                raise
            except Exception as error:
                if not prove:
                    raise
                # The untouched model took the same input.
                raise ModelError(
                    f"the attention of {self.model.name!r} ({type(self.model.module).__name__}) cannot be captured: it "
                    f"fails under observation ({type(error).__name__}: {first_line(error)})."
                ) from error
            finally:
                _current.reset(token)
        return Seen(run.layers, output.last_hidden_state, run.paths)


@dataclass(frozen=True, eq=False)
class Seen:
    """What a forward pass showed: each stack's layers, the model's last hidden state, and each layer's way."""

    layers: Mapping[str, int]
    hidden: Float[Tensor, "batch token width"]
    paths: Paths


@dataclass(eq=False)
class _Pass:
    """The state of one forward pass under our implementation."""

    model: Model
    batch: Batch
    see: See
    block_rows: int | None
    whole: bool
    prove: bool
    matrix_because: str
    fused_from: int
    layers: Counter[str] = field(default_factory=Counter)
    paths: Paths = field(default_factory=Counter)
    masks: Masks = field(default_factory=Masks)

    def stack(self, queries: int, keys: int) -> str:
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
        rows = self.block_rows or max(1, BLOCK_WEIGHTS // (batch * heads * keys))
        for start in range(0, queries, rows):
            yield slice(start, min(start + rows, queries))


_current: ContextVar[_Pass] = ContextVar("the forward pass under observation")


def _attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **terms: Any
) -> tuple[Tensor, None]:
    """Our attention implementation: the model's own, a block of rows at a time, shown to `see`."""
    run = _current.get()
    batch, heads, queries, _ = query.shape
    keys = key.shape[-2]
    stack = run.stack(queries, keys)
    run.layers[stack] += 1
    layer = run.layers[stack]
    reach = run.masks.reach(attention_mask)
    found: FusedRows | str = run.matrix_because
    if not found and keys < run.fused_from:
        found = f"fewer than {FUSED_FROM:,} keys, for which it is faster"
    if not found:
        found = plain(run.batch, stack, layer, query, key, value, reach, terms)
    way = f"without the matrix: {reach}" if isinstance(found, FusedRows) else f"with the matrix: {found}"
    run.paths[stack, layer, way] += batch
    eager = _eager_of(module)
    if isinstance(found, FusedRows):
        return _without_matrix(run, found, eager, module, value, attention_mask, terms), None
    # In float32 whatever the model computes in, or the statistics would be rounded with the weights.
    whole_query, key, value = query.float(), key.float(), value.float()
    partly = not run.whole and may_leave_out(terms)
    outputs, held = [], []
    for rows in run.blocks(batch, heads, queries, keys):
        columns = reach.keys(rows, keys) if partly and reach is not None else slice(0, keys)
        mask, allowed = run.masks.block(attention_mask, rows, columns, whole_query, keys)
        block_terms = {name: cut(term, rows, columns, queries, keys) for name, term in terms.items()}
        block = (whole_query[:, :, rows], key[:, :, columns], value[:, :, columns], mask)
        output, weights = eager(module, *block, **block_terms)
        attention = DenseRows(layer, stack, rows, run.batch, weights, columns, allowed)
        if run.prove:
            prove_average(run.model, attention, block[2], output)
        outputs.append(output.to(query.dtype))
        if run.whole:
            held.append(attention)
        else:
            run.see(attention)
    if run.whole:
        run.see(_gathered(held))
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=1), None


def _without_matrix(
    run: _Pass,
    attention: FusedRows,
    eager: Callable[..., tuple[Tensor, Tensor]],
    module: nn.Module,
    value: Tensor,
    attention_mask: Tensor | None,
    terms: dict[str, Any],
) -> Tensor:
    """The output of a layer by a fused kernel; a few rows are compared with the model's own function."""
    output = attention.attend(value)[0].transpose(1, 2).contiguous()
    queries, keys = attention.query.shape[2], value.shape[2]
    rows, columns = _rows_to_check(attention.layer, queries), slice(0, keys)
    mask, _ = run.masks.block(attention_mask, rows, columns, attention.query, keys)
    block_terms = {name: cut(term, rows, columns, queries, keys) for name, term in terms.items()}
    expected = eager(module, attention.query[:, :, rows], attention.key, value, mask, **block_terms)
    # Seen first: the proof asks for entropies, which a pass that answers the reducers finds as well.
    run.see(attention)
    prove_fused(run.model, attention, rows, output[:, rows], *expected)
    return output


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
        first.stack,
        slice(first.rows.start, blocks[-1].rows.stop),
        first.batch,
        torch.cat([block.matrix for block in blocks], dim=2),
        first.columns,
        torch.cat([block.allowed for block in blocks], dim=1),
    )


def _keep_mask(batch_size: int, q_length: int, kv_length: int, q_offset: int = 0, **arguments: Any) -> Tensor:
    """Our mask function: keeps the arguments and hands out a ticket for them."""
    sizes = {"batch_size": batch_size, "q_length": q_length, "kv_length": kv_length, "q_offset": q_offset}
    return _current.get().masks.keep(arguments | sizes)


AttentionInterface.register(NAME, _attend)
AttentionMaskInterface.register(NAME, _keep_mask)


def _eager_of(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor]]:
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


@contextmanager
def _ours(module: PreTrainedModel) -> Iterator[None]:
    """`module` under our attention implementation; the one it had is restored whatever happens."""
    config = module.config
    parts = {
        key: part
        for key in config.sub_configs
        if (part := getattr(config, key)) is not None and part._attn_implementation is not None
    }
    before = {"": config._attn_implementation} | {key: part._attn_implementation for key, part in parts.items()}
    # A family without the interface answers with a warning; whether it took the name is checked.
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        module.set_attn_implementation(NAME)
        yield
    finally:
        module.set_attn_implementation(before if parts else before[""])
        transformers_logging.set_verbosity(verbosity)


def _takes_our_name(module: PreTrainedModel) -> bool:
    with _ours(module):
        return bool(module.config._attn_implementation == NAME)


def _inputs(model: Model, batch: Batch) -> dict[str, Any]:
    # Nothing is generated, so keys and values need not be kept.
    return {**batch.inputs, **({"use_cache": False} if hasattr(model.module.config, "use_cache") else {})}


def _hidden(model: Model, batch: Batch) -> Float[Tensor, "batch token width"]:
    try:
        with torch.inference_mode():
            hidden: Tensor = model.module(**_inputs(model, batch)).last_hidden_state
    except Exception as error:  # what a model raises on input that it cannot take, it alone knows
        raise ModelError(
            f"{model.name!r} ({type(model.module).__name__}) cannot be run on text "
            f"({type(error).__name__}: {first_line(error)}); give a text model and the tokenizer that belongs to it."
        ) from error
    return hidden


def _prove_unpadded(model: Model, batch: Batch, untouched: Tensor) -> None:
    """The shortest text of a batch gives the same outputs alone; some families mix padding into the text."""
    row = int(batch.encoder.real.sum(1).argmin())
    alone = int(batch.encoder.real[row].sum())
    if alone == batch.encoder.length:
        return
    # A decoder reads one token more than its encoder.
    inputs = {
        name: values[row : row + 1, : alone + (name.startswith("decoder"))] for name, values in batch.inputs.items()
    }
    hidden = _hidden(model, replace(batch, inputs=inputs))
    prove_unpadded(model, untouched[row, : hidden.shape[1]], hidden[0])


def _through_outputs(model: Model, batch: Batch, see: See) -> Seen:
    """The stated fallback: weights as the model itself returns them, all layers at once."""
    with torch.inference_mode():
        try:
            output = model.module(**_inputs(model, batch), output_attentions=True)
        except (TypeError, ValueError):
            output = None
    attentions = getattr(output, "attentions", None)
    length = batch.encoder.length
    if output is None or not attentions or any(a is None or a.shape[-2:] != (length, length) for a in attentions):
        raise ModelError(
            f"the attention of {model.name!r} ({type(model.module).__name__}) cannot be captured: the model does not "
            "use transformers' attention interface, and does not return its attention in the usual way either."
        )
    paths: Paths = Counter()
    for layer, weights in enumerate(attentions, start=1):
        # The mask is not shown to us; a masked key has a weight of exactly 0 in every head.
        allowed = (weights > 0).any(dim=1).sum(-1, dtype=torch.float32)
        everything = slice(0, length)
        see(DenseRows(layer, "encoder", everything, batch, weights.float(), everything, allowed))
        way = "with the matrix: the model returns it and offers no other way"
        paths["encoder", layer, way] += len(weights)
    return Seen({"encoder": len(attentions)}, output.last_hidden_state, paths)


def _counts(layers: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {stack} layers" for stack, count in layers.items()) or "no layers"
