"""Running a model while its heads are observed, edited and differentiated.

This is the one place that knows how transformers calls attention. A model runs under an attention implementation of
ours, in which the model's own ``eager_attention_forward`` (the function beside its attention class) does the work, or
vouches for a fused kernel; `headscope.capture.layer` says how.

What went wrong in transformers 5.23 and is handled here:

- An implementation that is registered for attention alone silently gets no mask; ours is registered for both.
- Layers carry no reliable number (DistilBERT has none, ALBERT reuses one module), so calls are counted.
- Families without the interface accept the name with a log line and ignore it. They are observed through
  ``output_attentions=True``, or refused.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedConfig, PreTrainedModel

from headscope.capture.attention import Attention
from headscope.capture.batch import Batch
from headscope.capture.dense import DenseRows
from headscope.capture.edit import Edit, HeadGradient
from headscope.capture.fused import FusedRows
from headscope.capture.layer import (
    Call,
    Observer,
    Pass,
    Paths,
    attend_with_matrix,
    attend_without_matrix,
    fuse,
    pass_on,
)
from headscope.capture.loading import quiet
from headscope.capture.model import Model
from headscope.capture.turns import hold, list_configs
from headscope.capture.verify import are_finite, by_token, verify_rows, verify_same, verify_unpadded
from headscope.errors import HeadscopeError, ModelError, first_line

NAME = "headscope"
"""Our name among transformers' attention implementations."""

FUSED_FROM = 1536
"""Keys from which on attention is measured without its matrix; below, the matrix is the faster way."""

VERIFIED_BLOCKS = 2
"""Blocks of rows in which the capture is verified."""


Loss = Callable[[Any], Tensor]
"""A function of what the model returns (a ``ModelOutput`` of transformers), whose value is one number."""


@dataclass(frozen=True, eq=False)
class Capture:
    """A model whose attention is verified to be what it computes.

    Attributes:
        model: the model.
        route: ``interface`` where attention passes through us, ``outputs`` where the model's own
            ``output_attentions=True`` is all there is.
    """

    model: Model
    route: str

    @classmethod
    def verified(cls, model: Model, batch: Batch) -> "Capture":
        """The route to the attention of `model`, verified on `batch`.

        The model's outputs (its logits, where it has a task head) must be those of the untouched model, and the same
        for a text with and without padding beside it; the number of layers must be the model's; every row must sum to
        1 (at most 1 where the model has sinks); and the average of the values must be what the attention function
        returned.

        Raises:
            ModelError: the attention cannot be reached, or a check fails.
        """
        if model.module.training:
            raise ModelError(
                f"{model.name!r} is in training mode, where dropout changes attention; call `.eval()` on it first."
            )
        untouched = _run_untouched(model, batch)
        _verify_without_padding(model, batch, untouched)
        capture = cls(model, "interface")
        if not _takes_our_name(model.module, capture._configs):
            capture = cls(model, "outputs")

        def check(attention: Attention) -> None:
            verify_rows(model, attention)

        # In several blocks of rows, since long texts will be shown in many.
        how: dict[str, Any] = {"rows": -(-batch.encoder.length // VERIFIED_BLOCKS), "verify": True}
        outputs = capture.run(batch, check, **how)
        if capture.route == "interface" and not outputs.layers:
            capture = cls(model, "outputs")
            outputs = capture.run(batch, check, **how)
        if dict(outputs.layers) != dict(model.layers):
            raise ModelError(
                f"the attention of {model.name!r} cannot be captured: {_list_layers(model.layers)} were expected and "
                f"{_list_layers(outputs.layers)} seen. The model mixes attention with other layers, or computes it "
                "apart."
            )
        verify_same(model, batch, untouched, outputs.verified)
        return capture

    def run(
        self,
        batch: Batch,
        observe: Observer | None = None,
        edit: Edit | None = None,
        gradients: bool = False,
        *,
        loss: Loss | None = None,
        rows: int | None = None,
        whole: bool = False,
        fused: bool | None = None,
        verify: bool = False,
    ) -> "Outputs":
        """The outputs of the model on `batch`, whose heads are observed, edited and differentiated on the way.

        Args:
            batch: documents as tokens.
            observe: called with blocks of rows of one layer after the other.
            edit: called with the output of each layer's heads, and returns what goes on in its place.
            gradients: also find the gradient of `loss` by each head's output, in one backward pass. No `.grad` of a
                parameter is touched. Layers with their matrix keep it until then; others have none.
            loss: a function of what the model returns; by default the model's own loss, for which the inputs of the
                batch must hold ``labels``.
            rows: the number of query rows of a block; by default as many as `BLOCK_WEIGHTS` allows.
            whole: gather the blocks, so that `observe` gets all rows of a layer at once, with their matrix.
            fused: do without the matrix where a layer allows it; by default from `FUSED_FROM` keys on.
            verify: check that the values averaged by the weights are what the layer returns.

        Raises:
            ModelError: the model does not use the attention interface, and cannot be edited or differentiated.
            HeadscopeError: an edit returns something else than a new z, or there is no loss.
        """
        if self.route == "outputs":
            return self._run_for_outputs(batch, observe, edit is not None or gradients)
        reasons = {"a reducer needs it": whole, "it is checked": verify, "it was asked for": fused is False}
        because = next((reason for reason, holds in reasons.items() if holds), "")
        fused_from = FUSED_FROM if fused is None else 0
        run = Pass(self.model, batch, observe, edit, gradients, rows, whole, verify, because, fused_from)
        with (
            hold(self._configs),
            torch.inference_mode(not gradients),
            torch.set_grad_enabled(gradients),
            _under_observation(run),
        ):
            for config in self._configs:
                config._attn_implementation = NAME
            try:
                output = self.model.module(**_prepare_inputs(self.model, batch))
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
            by_layer = _differentiate(run, output, loss) if gradients else {}
        return _gather_outputs(output, run.layers, run.paths, by_layer)

    def _run_for_outputs(self, batch: Batch, observe: Observer | None, changed: bool) -> "Outputs":
        """The stated fallback, for observing only: weights as the model itself returns them, all layers at once."""
        model, name = self.model, f"{self.model.name!r} ({type(self.model.module).__name__})"
        if changed:
            raise ModelError(
                f"the heads of {name} cannot be edited or differentiated: the model does not use transformers' "
                "attention interface; its attention can only be observed."
            )
        with torch.inference_mode():
            try:
                output = model.module(**_prepare_inputs(model, batch), output_attentions=True)
            except (TypeError, ValueError):
                output = None
        attentions = getattr(output, "attentions", None)
        length = batch.encoder.length
        if output is None or not attentions or any(a is None or a.shape[-2:] != (length, length) for a in attentions):
            raise ModelError(
                f"the attention of {name} cannot be captured: the model does not use transformers' attention "
                "interface, and does not return its attention in the usual way either."
            )
        attention_type, everything, paths = next(iter(model.layers)), slice(0, length), Counter[tuple[str, int, str]]()
        for layer, weights in enumerate(attentions, start=1):
            # The mask is not shown to us; a masked key has a weight of exactly 0 in every head.
            allowed = (weights > 0).any(dim=1).sum(-1, dtype=torch.float32)
            if observe is not None:
                observe(DenseRows(layer, attention_type, everything, batch, weights.float(), everything, allowed))
            paths[attention_type, layer, "with the matrix: the model returns it and offers no other way"] = len(weights)
        return _gather_outputs(output, {attention_type: len(attentions)}, paths, {})

    @cached_property
    def _configs(self) -> tuple[PreTrainedConfig, ...]:
        return list_configs(self.model.module)


@dataclass(frozen=True, eq=False)
class Outputs:
    """The outputs of a forward pass.

    Attributes:
        layers: the number of layers of each attention type.
        hidden: the model's last hidden state; None where a task head takes it.
        logits: those of the model's task head; None where it has none.
        paths: the way in which each layer was measured.
        gradients: of each layer, by attention type and number, if they were asked for.
    """

    layers: Mapping[str, int]
    hidden: Float[Tensor, "batch token width"] | None
    logits: Float[Tensor, "batch ..."] | None
    paths: Paths
    gradients: Mapping[tuple[str, int], HeadGradient] = field(default_factory=dict)

    @property
    def verified(self) -> Float[Tensor, "batch ..."]:
        """The output that is compared with the untouched model's: logits, or else the last hidden state."""
        output = self.hidden if self.logits is None else self.logits
        if output is None:
            raise ModelError(
                "the model returns neither logits nor a last hidden state, with which the capture would be verified; "
                "load it without its head, or with one of the tasks of `headscope.load`."
            )
        return output


def _gather_outputs(
    output: Any, layers: Mapping[str, int], paths: Paths, gradients: Mapping[tuple[str, int], HeadGradient]
) -> Outputs:
    tensors = (getattr(output, name, None) for name in ("last_hidden_state", "logits"))
    hidden, logits = (None if tensor is None else tensor.detach() for tensor in tensors)
    return Outputs(layers, hidden, logits, paths, gradients)


def _differentiate(run: Pass, output: Any, loss: Loss | None) -> dict[tuple[str, int], HeadGradient]:
    value = getattr(output, "loss", None) if loss is None else loss(output)
    if value is None:
        raise HeadscopeError(
            f"gradients of {run.model.name!r} need a loss, and the model returns none; give `loss`, a function of what "
            "the model returns, or load the model with its task head and put `labels` into the inputs of the batch."
        )
    if not isinstance(value, Tensor) or value.numel() != 1 or not value.requires_grad:
        raise HeadscopeError(
            f"the loss is {value!r}; it must be a tensor of one number, computed from what the model returns."
        )
    by_output = torch.autograd.grad(value, [output for output, _ in run.outputs.values()], materialize_grads=True)
    return {
        layer: HeadGradient(gradient.transpose(1, 2), v)
        for (layer, (_, v)), gradient in zip(run.outputs.items(), by_output, strict=True)
    }


_current: ContextVar[Pass] = ContextVar("the forward pass under observation")


@contextmanager
def _under_observation(run: Pass) -> Iterator[None]:
    token = _current.set(run)
    try:
        yield
    finally:
        _current.reset(token)


def _get_current() -> Pass:
    run = _current.get(None)
    if run is None:
        raise HeadscopeError(
            "a model was run while headscope measures it in another thread; wait for that to end, or run a copy of the "
            "model."
        )
    return run


def _attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **terms: Any
) -> tuple[Tensor, None]:
    """Our attention implementation, chosen for the layer, which shows, edits and holds what the layer does."""
    run = _get_current()
    attention_type = run.get_attention_type(query.shape[2], key.shape[2])
    run.layers[attention_type] += 1
    layer, reach = run.layers[attention_type], run.masks.reach(attention_mask)
    width = torch.promote_types(query.dtype, torch.float32)
    call = Call(
        module, attention_type, layer, query.to(width), key.to(width), value.to(width), attention_mask, reach, terms
    )
    few = f"fewer than {FUSED_FROM:,} keys, for which it is faster" if key.shape[2] < run.fused_from else ""
    attention, output = run.matrix_because or few or fuse(run, call), None
    if isinstance(attention, FusedRows):
        output, because = attend_without_matrix(run, call, attention)
    else:
        because = attention
    way = f"with the matrix: {because}" if because else f"without the matrix: {reach}"
    run.paths[attention_type, layer, way] += len(query)
    if output is None:
        output = attend_with_matrix(run, call)
    return pass_on(run, call, output).to(query.dtype), None


def _keep_mask(batch_size: int, q_length: int, kv_length: int, q_offset: int = 0, **arguments: Any) -> Tensor:
    """Our mask function: keeps the arguments and hands out a ticket for them."""
    sizes = {"batch_size": batch_size, "q_length": q_length, "kv_length": kv_length, "q_offset": q_offset}
    return _get_current().masks.keep(arguments | sizes)


AttentionInterface.register(NAME, _attend)
AttentionMaskInterface.register(NAME, _keep_mask)


_naming = Lock()
"""Held while transformers is quiet, which is so for all threads."""


def _takes_our_name(module: PreTrainedModel, configs: Sequence[PreTrainedConfig]) -> bool:
    # A family without the interface answers with a warning; that it did not take the name is seen.
    with hold(configs), _naming, quiet():
        module.set_attn_implementation(NAME)
        return bool(module.config._attn_implementation == NAME)


def _prepare_inputs(model: Model, batch: Batch) -> dict[str, Any]:
    # Nothing is generated, so keys and values need not be kept.
    return {**batch.inputs, **({"use_cache": False} if hasattr(model.module.config, "use_cache") else {})}


def _run_untouched(model: Model, batch: Batch) -> Float[Tensor, "batch ..."]:
    try:
        with hold(list_configs(model.module)), torch.inference_mode():
            output = model.module(**_prepare_inputs(model, batch))
    except Exception as error:  # what a model raises on input that it cannot take, it alone knows
        raise ModelError(
            f"{model.name!r} ({type(model.module).__name__}) cannot be run on text "
            f"({type(error).__name__}: {first_line(error)}); give a text model and the tokenizer that belongs to it."
        ) from error
    return _gather_outputs(output, {}, Counter(), {}).verified


def is_finite(model: Model, batch: Batch) -> bool:
    """True if what the model returns for a batch is finite.

    Raises:
        ModelError: the model cannot be run on it.
    """
    return bool(are_finite(batch, _run_untouched(model, batch)).all())


def _verify_without_padding(model: Model, batch: Batch, untouched: Tensor) -> None:
    """The shortest text of a batch gives the same outputs alone; some families mix padding into the text."""
    row = int(batch.encoder.real.sum(1).argmin())
    alone = int(batch.encoder.real[row].sum())
    if alone == batch.encoder.length:
        return
    # A decoder reads one token more than its encoder.
    lengths = {name: alone + name.startswith("decoder") for name in batch.inputs if name != "labels"}
    inputs = {name: batch.inputs[name][row : row + 1, :length] for name, length in lengths.items()}
    (output,) = _run_untouched(model, replace(batch, inputs=inputs))
    verify_unpadded(model, untouched[row, : len(output)] if by_token(batch, untouched) else untouched[row], output)


def _list_layers(layers: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {attention_type} layers" for attention_type, count in layers.items()) or "no layers"
