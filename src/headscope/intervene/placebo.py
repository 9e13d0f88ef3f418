"""A unit of a model disabled while the model runs, or a placebo of it in its place.

A *placebo* changes the output of a layer as much as disabling a unit of it does, token by token, but in another
direction: what is taken from the unit goes through a random linear map into the outputs of all heads of the layer. An
effect that is no larger than that of its placebos says how much the layer bears, and nothing of the unit.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.capture.forward.head_edit import EditedLayer, Z
from headscope.capture.passes.projection import Projection
from headscope.intervene.ablation import Ablation
from headscope.intervene.replacement import Replacement

Heads = Int[Tensor, " chosen"]
"""Numbers of heads of a layer, counted from 0."""

MeasureNorm = Callable[[Float[Tensor, "batch chosen query width"], Heads, EditedLayer], Float[Tensor, "batch query"]]
"""The norm of what a change of the outputs of some heads adds to the residual stream, for each token."""


@dataclass(eq=False)
class DisabledUnit:
    """An `Edit` that disables a unit, or runs a placebo of it, and measures how much is taken away.

    Attributes:
        ablation: the unit and the placebo.
        replacement: what takes the place of the unit's output.
        measure_norm: the norm of a change.
        seed: of the directions of placebos.
        norms: of the change of each layer, for each token, as measured in the last pass.
    """

    ablation: Ablation
    replacement: Replacement
    measure_norm: MeasureNorm
    seed: int
    norms: list[Float[Tensor, "batch query"]]

    def __call__(self, z: Z, layer: EditedLayer) -> Z:
        """Z without the unit, or with its placebo."""
        chosen = self.ablation.unit.selection.get((layer.attention_type, layer.layer))
        if chosen is None:
            return z
        heads = torch.tensor(chosen, device=z.device)
        change = self.replacement(z[:, heads], layer, heads) - z[:, heads]
        norm = self.measure_norm(change, heads, layer)
        self.norms.append(norm)
        edited = z.clone()
        if not self.ablation.placebo:
            edited[:, heads] += change
            return edited
        elsewhere = self._turn(change, layer)
        size = self.measure_norm(elsewhere, torch.arange(layer.heads, device=z.device), layer)
        return edited.add_(elsewhere * (norm / size.clamp_min(torch.finfo(z.dtype).tiny))[:, None, :, None])

    def _turn(self, change: Tensor, layer: EditedLayer) -> Z:
        """The change of some heads in a random direction among the outputs of all heads of the layer."""
        width, name = change.shape[-1], f"{self.seed} {self.ablation.unit.name} {self.ablation.placebo} {layer.layer}"
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:7])
        generator = torch.Generator().manual_seed(number)
        directions = torch.randn(change.shape[1] * width, layer.heads * width, generator=generator)
        turned = change.transpose(1, 2).flatten(2) @ directions.to(change)
        return turned.reshape(*turned.shape[:2], layer.heads, width).transpose(1, 2)


def prepare_norm(projections: Mapping[tuple[str, int], Projection]) -> MeasureNorm:
    """The norm of what a change adds to the residual stream, behind the output projection of its layer.

    Without projections it is the norm before it.
    """

    def measure_norm(
        change: Float[Tensor, "batch chosen query width"], heads: Heads, layer: EditedLayer
    ) -> Float[Tensor, "batch query"]:
        projection = projections.get((layer.attention_type, layer.layer))
        added = projection.apply(change, heads) if projection else change.transpose(1, 2).flatten(2)
        norm: Tensor = added.norm(dim=-1)
        return norm

    return measure_norm
