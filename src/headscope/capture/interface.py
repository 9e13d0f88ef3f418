"""The seam: the one place that knows how transformers calls attention.

A model is run under an attention implementation of ours, for which the model's own
``eager_attention_forward`` (the function beside its attention class) does the work, or vouches for
the work of a fused kernel; how, `headscope.capture.layer` says.

Seen to go wrong, and handled here (transformers 5.23):

- A name registered for attention alone gets no mask, silently; ours is registered for both.
- Layers carry no reliable number (DistilBERT has none, ALBERT reuses one module): we count calls.
- Families without the interface accept the name with a log line and ignore it. They are observed
  through ``output_attentions=True``, or refused.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedConfig, PreTrainedModel
from transformers.utils import logging as transformers_logging

from headscope.capture.attention import DenseRows
from headscope.capture.batch import Batch
from headscope.capture.fused import FusedRows
from headscope.capture.layer import Call, Pass, Paths, See, with_matrix, without_matrix
from headscope.capture.model import Model
from headscope.capture.path import plain
from headscope.capture.verify import verify_rows, verify_same, verify_unpadded
from headscope.errors import HeadscopeError, ModelError, first_line

NAME = "headscope"
"""Our name among transformers' attention implementations."""

FUSED_FROM = 1536
"""Keys from which on attention is measured without its matrix; below, the matrix is the faster way."""

VERIFIED_BLOCKS = 2
"""Blocks of rows in which the capture is verified."""


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
    def verified(cls, model: Model, batch: Batch) -> "Capture":
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
        _verify_unpadded(model, batch, untouched)
        capture = cls(model, "interface")
        if not _takes_our_name(model.module, capture._configs):
            capture = cls(model, "outputs")
        # In more than one block of rows, since long texts will be seen in many.
        how: dict[str, Any] = {"rows": -(-batch.encoder.length // VERIFIED_BLOCKS), "verify": True}
        seen = capture.observe(batch, lambda attention: verify_rows(model, attention), **how)
        if capture.route == "interface" and not seen.layers:
            capture = cls(model, "outputs")
            seen = capture.observe(batch, lambda attention: verify_rows(model, attention), **how)
        if dict(seen.layers) != dict(model.layers):
            raise ModelError(
                f"the attention of {model.name!r} cannot be captured: {_counts(model.layers)} were expected and "
                f"{_counts(seen.layers)} seen. The model mixes attention with other layers, or computes it apart."
            )
        verify_same(model, batch, untouched, seen.hidden)
        return capture

    def observe(
        self,
        batch: Batch,
        see: See,
        *,
        rows: int | None = None,
        whole: bool = False,
        fused: bool | None = None,
        verify: bool = False,
    ) -> "Seen":
        """Run the model on `batch` and show each layer's attention to `see`.

        Args:
            batch: documents as tokens.
            see: called with blocks of rows of one layer after the other.
            rows: the number of query rows of a block; by default as many as `BLOCK_WEIGHTS` allows.
            whole: gather the blocks, so that `see` gets all rows of a layer at once, with their matrix.
            fused: do without the matrix where a layer allows it; by default from `FUSED_FROM` keys on.
            verify: check that the values averaged by the weights are what the layer returns.
        """
        if self.route == "outputs":
            return _through_outputs(self.model, batch, see)
        reasons = {"a reducer needs it": whole, "it is checked": verify, "it was asked for": fused is False}
        because = next((reason for reason, holds in reasons.items() if holds), "")
        run = Pass(self.model, batch, see, rows, whole, verify, because, FUSED_FROM if fused is None else 0)
        with _restored(self._configs), torch.inference_mode():
            for config in self._configs:
                config._attn_implementation = NAME
            token = _current.set(run)
            try:
                output = self.model.module(**_inputs(self.model, batch))
            except HeadscopeError:
                raise
            except Exception as error:
                if not verify:
                    raise
                # The untouched model took the same input.
                raise ModelError(
                    f"the attention of {self.model.name!r} ({type(self.model.module).__name__}) cannot be captured: it "
                    f"fails under observation ({type(error).__name__}: {first_line(error)})."
                ) from error
            finally:
                _current.reset(token)
        return Seen(run.layers, output.last_hidden_state, run.paths)

    @cached_property
    def _configs(self) -> tuple[PreTrainedConfig, ...]:
        """Those in which the parts of the model find the name of their attention implementation."""
        found = [part.config for part in self.model.module.modules() if isinstance(part, PreTrainedModel)]
        for config in found:  # which grows
            found += [part for key in config.sub_configs if (part := getattr(config, key)) is not None]
        return tuple({id(config): config for config in found}.values())


@dataclass(frozen=True, eq=False)
class Seen:
    """What a forward pass showed: each attention type's layers, the model's last hidden state, and each layer's way."""

    layers: Mapping[str, int]
    hidden: Float[Tensor, "batch token width"]
    paths: Paths


_current: ContextVar[Pass] = ContextVar("the forward pass under observation")


def _attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **terms: Any
) -> tuple[Tensor, None]:
    """Our attention implementation, chosen for the layer, which shows its attention to `see`."""
    run = _current.get()
    attention_type = run.attention_type_of(query.shape[2], key.shape[2])
    run.layers[attention_type] += 1
    layer, reach = run.layers[attention_type], run.masks.reach(attention_mask)
    width = torch.promote_types(query.dtype, torch.float32)
    call = Call(
        module, attention_type, layer, query.to(width), key.to(width), value.to(width), attention_mask, reach, terms
    )
    because = run.matrix_because
    if not because and key.shape[2] < run.fused_from:
        because = f"fewer than {FUSED_FROM:,} keys, for which it is faster"
    fused = because or plain(run.batch, attention_type, layer, call.query, call.key, call.value, reach, terms)
    output = None
    if isinstance(fused, FusedRows):
        output, because = without_matrix(run, call, fused)
    else:
        because = fused
    run.paths[attention_type, layer, f"with the matrix: {because}" if because else f"without the matrix: {reach}"] += (
        len(query)
    )
    if output is None:
        output = with_matrix(run, call)
    return output.to(query.dtype), None


def _keep_mask(batch_size: int, q_length: int, kv_length: int, q_offset: int = 0, **arguments: Any) -> Tensor:
    """Our mask function: keeps the arguments and hands out a ticket for them."""
    sizes = {"batch_size": batch_size, "q_length": q_length, "kv_length": kv_length, "q_offset": q_offset}
    return _current.get().masks.keep(arguments | sizes)


AttentionInterface.register(NAME, _attend)
AttentionMaskInterface.register(NAME, _keep_mask)


@contextmanager
def _restored(configs: Sequence[PreTrainedConfig]) -> Iterator[None]:
    """Whatever happens, each configuration has the attention implementation again that it had."""
    before = [config._attn_implementation for config in configs]
    try:
        yield
    finally:
        # Setting a configuration sets its parts, which come behind it and so are restored last.
        for config, name in zip(configs, before, strict=True):
            config._attn_implementation = name


def _takes_our_name(module: PreTrainedModel, configs: Sequence[PreTrainedConfig]) -> bool:
    # A family without the interface answers with a warning; that it did not take the name is seen.
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        with _restored(configs):
            module.set_attn_implementation(NAME)
            return bool(module.config._attn_implementation == NAME)
    finally:
        transformers_logging.set_verbosity(verbosity)


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


def _verify_unpadded(model: Model, batch: Batch, untouched: Tensor) -> None:
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
    verify_unpadded(model, untouched[row, : hidden.shape[1]], hidden[0])


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
    return ", ".join(f"{count} {attention_type} layers" for attention_type, count in layers.items()) or "no layers"
