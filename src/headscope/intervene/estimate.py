"""First-order estimates: what disabling each head would change, for all heads from one backward pass.

Let g be the gradient of an item's score with respect to z, the output of a head, and z' its replacement. Then the
change is about ``g . (z' - z)``, summed over the tokens (Molchanov et al. 2017; attribution patching, Syed et al.
2023). This holds for small changes; exact runs of some heads show how well.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from headscope.capture.forward.head_edit import EditedLayer
from headscope.capture.forward.interface import Capture
from headscope.capture.passes.blocks import Layer
from headscope.intervene.evaluation import Evaluation, EvaluationBatch, compute_logits, run_batches
from headscope.intervene.replacement import Replacement
from headscope.intervene.ways import Ways


def estimate_changes(
    capture: Capture,
    evaluation: Evaluation,
    how: Sequence[str],
    ways: Ways,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[tuple[str, Layer], Float[np.ndarray, "head item"]]:
    """Estimate how disabling each head changes the first quantity of each item.

    The whole model runs once forward and once backward on each batch, without gradients of its weights. `progress` is
    called with the number of finished batches and the number of all batches.

    Returns:
        The estimates of all heads of a layer, by the way in which they are disabled (one of `how`) and the layer.

    Raises:
        ModelError: The heads of the model cannot be edited.
    """

    def estimate(batch: EvaluationBatch) -> tuple[EvaluationBatch, dict[tuple[str, Layer], Tensor]]:
        watch = _Watch({name: ways.choose(name, batch) for name in how})
        with capture.editing(watch), _without_gradients(capture.model.module), torch.enable_grad():
            logits = compute_logits(capture.model, batch)
            scores = evaluation.quantify(batch, logits, None)[:, 0]
            gradients = torch.autograd.grad(scores.sum(), list(watch.added.values()), materialize_grads=True)
        return batch, {
            (name, layer): (gradient * watch.changes[name, layer]).sum((2, 3)).double()
            for layer, gradient in zip(watch.added, gradients, strict=True)
            for name in how
        }

    changes: dict[tuple[str, Layer], np.ndarray] = {}
    batches = len(evaluation.batches)
    for batch, by_head in run_batches(capture.model, evaluation, estimate, lambda done: progress(done, batches)):
        for key, by_row in by_head.items():
            total = changes.setdefault(key, np.zeros((by_row.shape[1], evaluation.items)))
            batch.add_to(total.T, by_row)
    return changes


class _Watch:
    """An `Edit` that adds a differentiable zero to z, and keeps the change that each replacement would make.

    Attributes:
        replacements: The replacement of z for each way of disabling heads.
        added: The zeros that were added to z, by layer.
        changes: z' - z of all heads of a layer, by the way of disabling them and the layer.
    """

    def __init__(self, replacements: dict[str, Replacement]) -> None:
        """Prepare for one pass of a model."""
        self.replacements = replacements
        self.added: dict[Layer, Tensor] = {}
        self.changes: dict[tuple[str, Layer], Tensor] = {}

    def __call__(self, z: Tensor, layer: EditedLayer) -> Tensor:
        """Keep the changes of a layer, and return z plus the differentiable zero."""
        key, heads = (layer.attention_type, layer.layer), torch.arange(layer.heads, device=z.device)
        with torch.no_grad():
            for name, replacement in self.replacements.items():
                self.changes[name, key] = replacement(z.detach(), layer, heads) - z.detach()
        self.added[key] = torch.zeros_like(z, requires_grad=True)
        return z + self.added[key]


@contextmanager
def _without_gradients(module: nn.Module) -> Iterator[None]:
    """Turn off gradients of weights within a block: only gradients of the heads are needed."""
    trainable = {name for name, weights in module.named_parameters() if weights.requires_grad}
    module.requires_grad_(False)
    try:
        yield
    finally:
        # Offloaded weights are new tensors after a pass, so they are found by name.
        for name, weights in module.named_parameters():
            weights.requires_grad_(name in trainable)
