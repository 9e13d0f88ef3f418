"""Runs a model while its heads are observed, edited and differentiated.

Only this module knows how transformers calls attention. A model runs under headscope's attention implementation. There,
the model's own ``eager_attention_forward`` (defined in the Python module of its attention class) computes attention, or
is compared with a fused kernel that computes it (`headscope.capture.forward.layer`).

This module handles two surprises of transformers 5.23 (the folder ``findings`` shows each):

- An attention module does not tell its layer (``layers-without-number``), so calls are counted.
- Families without the attention interface accept the name of the implementation, and never call it
  (``attention-name-not-taken``). They are observed through ``output_attentions=True``, or refused.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import eager_mask, sdpa_mask

from headscope.capture.forward.call import Call, Observer, Pass, find_eager
from headscope.capture.forward.comparisons import Reasons
from headscope.capture.forward.dense_view import DenseView, turn_rows
from headscope.capture.forward.head_edit import Edit, refuse_changes
from headscope.capture.forward.installed import attend_edited, find_edits, install, suspend_edits
from headscope.capture.forward.layer import attend_with_all_rows, attend_with_chosen_rows, pass_on
from headscope.capture.forward.outputs import Loss, Outputs, differentiate, gather_outputs
from headscope.capture.forward.unembedding import Unembedding
from headscope.capture.forward.untouched import prepare_noise, run_untouched, verify_without_padding
from headscope.capture.forward.verify import are_finite, verify_numbers, verify_rows, verify_same
from headscope.capture.model.forward import run_model
from headscope.capture.model.implementation import EDITED, EDITED_PREFIX, NAME, register
from headscope.capture.model.model import Model
from headscope.capture.model.turns import hold, list_configs
from headscope.capture.model.weights import quiet
from headscope.capture.rows.attention import Attention
from headscope.capture.rows.dense import DenseRows
from headscope.capture.rows.gpu import Kernels
from headscope.capture.rows.norms import Norms
from headscope.capture.tokens.batch import Batch
from headscope.errors import HeadscopeError, ModelError, first_line

FUSED_FROM = 1536
"""The number of keys from which on attention is measured without its matrix; for fewer keys, the matrix is faster."""

VERIFIED_BLOCKS = 2
"""The number of blocks into which the rows of a text are divided to verify the capture."""


@dataclass(frozen=True, eq=False)
class Capture:
    """A model whose captured attention is verified to be what the model computes.

    Attributes:
        model: The model.
        route: ``interface`` if attention passes through headscope's implementation, ``outputs`` if only the model's own
            ``output_attentions=True`` returns it.
        modules: The attention module of each layer, by attention type and number; empty on route ``outputs``.
        norms: The measure of norms for the norm view, which `run` shows in place of the weights; None without it.
        view: Another view that `run` shows in place of the weights; None without one.
        unembedding: The map from values to the logits that they raise; None if no reducer reads logits.
        kernels: The kernels that measure attention without the matrix on a GPU.
        turns: The counter of the passes.
    """

    model: Model
    route: str
    modules: Mapping[tuple[str, int], nn.Module] = field(default_factory=dict, repr=False)
    norms: Norms | None = field(default=None, repr=False)
    view: DenseView | None = field(default=None, repr=False)
    unembedding: Unembedding | None = field(default=None, repr=False)
    kernels: Kernels = field(default_factory=Kernels, repr=False)
    turns: Iterator[int] = field(default_factory=count, repr=False)

    @classmethod
    def verified(cls, model: Model, batch: Batch) -> "Capture":
        """Find the route to the attention of `model`, verify it on `batch`, and return the capture.

        The checks: The model's outputs (its logits, if it has a task head) are the same as those of the untouched
        model, and do not change with padding next to a text. The number of layers is the model's. Every row sums to 1
        (at most 1 if the model has sinks). The average of the values is what the attention function returned.

        Raises:
            ModelError: The attention cannot be reached, or a check fails.
        """
        if model.module.training:
            raise ModelError(
                f"{model.name!r} is in training mode, where dropout changes attention; call `.eval()` on it first."
            )
        # The result of an edit may depend on the other texts of the batch; the route to the attention does not.
        with suspend_edits():
            return cls._verify(model, batch)

    @classmethod
    def _verify(cls, model: Model, batch: Batch) -> "Capture":
        untouched = run_untouched(model, batch)
        noise = prepare_noise(model, batch)
        verify_without_padding(model, batch, untouched, noise)
        capture = cls(model, "interface")
        if not _takes_our_name(model.module, capture._configs):
            capture = cls(model, "outputs")

        def check(attention: Attention) -> None:
            verify_rows(model, attention)

        # Several blocks of rows are checked, since long texts are shown in many.
        how: dict[str, Any] = {"rows": -(-batch.encoder.length // VERIFIED_BLOCKS), "verify": True}
        outputs = capture.run(batch, check, **how)
        if capture.route == "interface" and not outputs.layers:
            capture = cls(model, "outputs")
            outputs = capture.run(batch, check, **how)
        expected = {attention_type: len(numbers) for attention_type, numbers in model.attention_layers.items()}
        if dict(outputs.layers) != expected:
            raise ModelError(
                f"the attention of {model.name!r} cannot be captured: {_list_layers(expected)} were expected and "
                f"{_list_layers(outputs.layers)} seen. The model mixes attention with other layers, or computes it "
                "apart."
            )
        verify_numbers(model, outputs.modules)
        verify_same(model, batch, untouched, outputs.verified, noise)
        return replace(capture, modules=outputs.modules)

    def verify_companions(self, batch: Batch) -> None:
        """Raise an error if the outputs for the shortest text of a batch depend on the longer texts."""
        with suspend_edits():
            untouched = run_untouched(self.model, batch)
            verify_without_padding(self.model, batch, untouched, prepare_noise(self.model, batch))

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
        chosen_rows: Mapping[str, Sequence[slice]] | None = None,
        with_matrix: Reasons | None = None,
    ) -> Outputs:
        """Run the model on `batch`, and observe, edit and differentiate its heads on the way.

        Args:
            batch: Documents as tokens.
            observe: Called with blocks of rows, layer by layer.
            edit: Called with the output of each layer's heads; returns the output that replaces it.
            gradients: Also find the gradient of `loss` with respect to each head's output, in one backward pass. The
                `.grad` of parameters is not touched. Layers with their matrix keep it until the backward pass.
            loss: The loss, as a function of the model's output. It is differentiated for `gradients` and for a view of
                gradients. Default: the model's own loss, for which the inputs of the batch must hold ``labels``.
            rows: The number of query rows of a block. Default: as many as the device allows.
            whole: Gather the blocks, so that `observe` gets all rows of a layer at once, with their matrix.
            fused: Do without the matrix if a layer allows it; False never does. Default: from `FUSED_FROM` keys on.
            verify: Check that the average of the values under the weights is what the layer returns.
            chosen_rows: The blocks of rows to show, by attention type. Default: all rows. Route ``outputs`` always
                shows all.
            with_matrix: The reason for each layer to measure with its matrix (`comparisons.run_again_with_matrix`).

        Raises:
            LargeScoresError: Some layers need their matrix, as the pass has now shown. The attention that `observe` got
                is not valid.
            ModelError: A layer differs from the model's own kernel or function. Or the model does not use the attention
                interface, so it cannot be edited or differentiated.
            HeadscopeError: An edit does not return a new z, or there is no loss.
        """
        if self.view is not None and observe is not None:
            observe, whole = turn_rows(self.view.begin(batch, loss), observe), whole or self.view.whole
        if self.route == "outputs":
            return self._run_for_outputs(batch, observe, edit is not None or gradients)
        reasons = {"the view needs it": self.view is not None, "a reducer needs it": whole, "it is checked": verify}
        reasons |= {"it was asked for": fused is False}
        because = next((reason for reason, holds in reasons.items() if holds), "")
        fused_from = FUSED_FROM if fused is None else 0
        run = Pass(
            self.model, batch, observe, edit, gradients, rows, whole, verify, because, fused_from, self.norms,
            self.unembedding, chosen_rows or {}, self.kernels, with_matrix or {},
            0 if verify else next(self.turns),
        )  # fmt: skip
        with (
            hold(self._configs),
            torch.inference_mode(not gradients),
            torch.set_grad_enabled(gradients),
            _under_observation(run),
        ):
            for config in self._configs:
                config._attn_implementation = NAME
            try:
                output = run_model(self.model, batch.inputs)
            except HeadscopeError:
                raise
            except Exception as error:
                if not verify:
                    raise
                # The untouched model ran on the same input.
                raise ModelError(
                    f"the attention of {self.model.title} cannot be captured: it "
                    f"fails under observation ({type(error).__name__}: {first_line(error)})."
                ) from error
            by_layer = differentiate(run, output, loss) if gradients else {}
        outputs = gather_outputs(output, run.layers, run.paths, run.modules, by_layer)
        run.comparisons.verify(self.model, lambda: bool(are_finite(batch, outputs.verified).all()))
        return outputs

    @contextmanager
    def editing(self, edit: Edit) -> Iterator[None]:
        """Edit every forward pass of the model inside the ``with`` block, also if it trains or generates text.

        The model keeps its attention implementation, ``eager`` or ``sdpa``. Edits of nested blocks act one after the
        other. They also change the attention that is measured inside. After the ``with`` block, even after an error,
        the model is as before.

        Raises:
            ModelError: The model does not use the attention interface, or uses another implementation.
        """
        if self.route == "outputs":
            raise refuse_changes(self.model)
        names = [_edited_name(self.model, config) for config in self._configs]
        try:
            with hold(self._configs), install(self.model.module, self.modules, edit, (NAME, *EDITED.values())):
                for config, name in zip(self._configs, names, strict=True):
                    config._attn_implementation = name
                yield
        finally:
            self._leave_names(names)

    def _leave_names(self, edited: Sequence[str]) -> None:
        """Set the edited names of the implementations if edits are left, or else the usual names.

        The blocks of several edits may end in any order.
        """
        has_edits = any(find_edits(module) for module in self.modules.values())
        for config, name in zip(self._configs, edited, strict=True):
            if (config._attn_implementation in EDITED.values()) != has_edits:
                config._attn_implementation = name if has_edits else name.removeprefix(EDITED_PREFIX)

    def _run_for_outputs(self, batch: Batch, observe: Observer | None, changed: bool) -> Outputs:
        """Run a model that returns its weights itself, and show them to the observer; raise an error if `changed`."""
        model = self.model
        if changed:
            raise refuse_changes(model)
        with torch.inference_mode():
            try:
                output = run_model(model, batch.inputs, output_attentions=True)
            except (TypeError, ValueError):
                output = None
        attentions = getattr(output, "attentions", None)
        length = batch.encoder.length
        if output is None or not attentions or any(a is None or a.shape[-2:] != (length, length) for a in attentions):
            raise ModelError(
                f"the attention of {model.title} cannot be captured: the model does not use transformers' attention "
                "interface, and does not return its attention in the usual way either."
            )
        attention_type, everything, paths = next(iter(model.layers)), slice(0, length), Counter[tuple[str, int, str]]()
        for layer, weights in enumerate(attentions, start=1):
            # The mask is not known here, but a masked key has a weight of exactly 0 in every head.
            allowed = (weights > 0).any(dim=1).sum(-1, dtype=torch.float32)
            if observe is not None:
                there = batch.on(weights.device)
                observe(DenseRows(layer, attention_type, everything, there, weights.float(), everything, allowed))
            paths[attention_type, layer, "with the matrix: the model returns it and offers no other way"] = len(weights)
        return gather_outputs(output, {attention_type: len(attentions)}, paths, {}, {})

    @cached_property
    def _configs(self) -> tuple[PreTrainedConfig, ...]:
        return list_configs(self.model.module)


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
    """Run one call of attention for transformers, with or without the matrix; show the attention, edit the output."""
    run = _get_current()
    attention_type = run.get_attention_type(query.shape[2], key.shape[2])
    layer, reach = run.number_layer(attention_type), run.masks.reach(attention_mask, query.device)
    run.modules[attention_type, layer] = module
    call = Call(module, attention_type, layer, (query, key, value), attention_mask, reach, terms)
    if (chosen := run.chosen_rows.get(attention_type)) is not None:
        output, way = attend_with_chosen_rows(run, call, chosen)
    else:
        output, way = attend_with_all_rows(run, call)
    run.paths[attention_type, layer, way] += len(query)
    edits = (*find_edits(module), *([run.edit] if run.edit else []))
    output = pass_on(run, call, output, edits)
    return output if output.dtype == query.dtype else output.to(query.dtype), None


def _keep_mask(batch_size: int, q_length: int, kv_length: int, q_offset: int = 0, **arguments: Any) -> Tensor:
    """Keep the arguments by which transformers would make a mask, and return a ticket in place of the mask."""
    sizes = {"batch_size": batch_size, "q_length": q_length, "kv_length": kv_length, "q_offset": q_offset}
    return _get_current().masks.keep(arguments | sizes)


def _attend_edited(module: nn.Module, *arguments: Any, **terms: Any) -> tuple[Tensor, Tensor | None]:
    return attend_edited(False, find_eager(module), module, *arguments, **terms)


register(NAME, _attend, _keep_mask)
register(EDITED["eager"], _attend_edited, eager_mask)
register(EDITED["sdpa"], partial(attend_edited, True, sdpa_attention_forward), sdpa_mask)


_naming = Lock()
"""The lock that is held while transformers logs only errors, a setting that all threads share."""


def _takes_our_name(module: PreTrainedModel, configs: Sequence[PreTrainedConfig]) -> bool:
    # A family without the interface logs a line and keeps the name of its implementation.
    with hold(configs), _naming, quiet():
        module.set_attn_implementation(NAME)
        return bool(module.config._attn_implementation == NAME)


def _edited_name(model: Model, config: PreTrainedConfig) -> str:
    """Return the name of the edited form of a configuration's attention implementation.

    Raises:
        ModelError: The implementation has no edited form.
    """
    name = config._attn_implementation or "eager"
    if name in EDITED.values():
        return str(name)
    if name not in EDITED:
        raise ModelError(
            f"{model.name!r} computes attention by {name!r}, whose heads cannot be edited; load the model with "
            "attn_implementation='sdpa' or 'eager'."
        )
    return EDITED[name]


def _list_layers(layers: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {attention_type} layers" for attention_type, count in layers.items()) or "no layers"
