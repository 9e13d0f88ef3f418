"""The outputs of a forward pass: hidden states or logits, how each layer was measured, and gradients."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headscope.capture.forward.call import Pass, Paths
from headscope.capture.forward.head_edit import HeadGradient
from headscope.errors import HeadscopeError, ModelError

Loss = Callable[[Any], Tensor]
"""A function that takes the model's output (a ``ModelOutput`` of transformers) and returns a tensor of one number."""


@dataclass(frozen=True, eq=False)
class Outputs:
    """The outputs of a forward pass.

    Attributes:
        layers: The number of layers of each attention type.
        hidden: The model's last hidden state; None if the model has a task head that does not return it.
        logits: The logits of the model's task head; None without a task head.
        paths: The number of measured texts, by layer and measuring path.
        modules: The attention module of each layer, by attention type and number.
        gradients: The gradients of each layer, by attention type and number; empty if they were not computed.
    """

    layers: Mapping[str, int]
    hidden: Float[Tensor, "batch token width"] | None
    logits: Float[Tensor, "batch ..."] | None
    paths: Paths
    modules: Mapping[tuple[str, int], nn.Module] = field(default_factory=dict, repr=False)
    gradients: Mapping[tuple[str, int], HeadGradient] = field(default_factory=dict)

    @property
    def verified(self) -> Float[Tensor, "batch ..."]:
        """The output to compare with the output of the untouched model: logits, or else the last hidden state.

        Raises:
            ModelError: The model returns neither.
        """
        output = self.hidden if self.logits is None else self.logits
        if output is None:
            raise ModelError(
                "the model returns neither logits nor a last hidden state, with which the capture would be verified; "
                "load it without its head, or with one of the tasks of `headscope.load`."
            )
        return output


def gather_outputs(
    output: Any,
    layers: Mapping[str, int],
    paths: Paths,
    modules: Mapping[tuple[str, int], nn.Module],
    gradients: Mapping[tuple[str, int], HeadGradient],
) -> Outputs:
    """Gather the outputs of a forward pass from transformers' `ModelOutput`."""
    tensors = (getattr(output, name, None) for name in ("last_hidden_state", "logits"))
    hidden, logits = (None if tensor is None else tensor.detach() for tensor in tensors)
    return Outputs(layers, hidden, logits, paths, modules, gradients)


def differentiate(run: Pass, output: Any, loss: Loss | None) -> dict[tuple[str, int], HeadGradient]:
    """Compute the gradient of a loss with respect to the heads of each layer, in one backward pass.

    Raises:
        HeadscopeError: There is no loss, or the loss is not a tensor of one number that can be differentiated.
    """
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
    by_output = torch.autograd.grad(value, [output for output, _, _ in run.outputs.values()], materialize_grads=True)
    return {
        layer: HeadGradient(gradient.transpose(1, 2), v, output.detach().transpose(1, 2), visible)
        for (layer, (output, v, visible)), gradient in zip(run.outputs.items(), by_output, strict=True)
    }
