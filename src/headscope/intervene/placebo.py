"""A unit of a model that is disabled while the model runs, or a placebo in its place.

A *placebo* changes the output of a layer by the same amount as disabling a unit does, token by token, but in another
direction: the output that is taken from the unit goes through a random linear map into the outputs of all heads of the
layer. An effect that is no larger than the effects of its placebos shows how sensitive the model is to the layer, and
says nothing about the unit.

The output of a unit is a part of the residual stream, so disabling the unit makes the stream shorter, while a change in
a random direction turns it. So a placebo shortens the stream by the same amount as the unit does, and only the rest of
its change is random. If a norm scales the output of a layer, this holds for the layer's output instead of the stream.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.capture.forward.head_edit import EditedLayer, Z
from headscope.capture.passes.blocks import Layer
from headscope.capture.passes.projection import Projection
from headscope.intervene.ablation import Ablation
from headscope.intervene.replacement import Replacement

Heads = Int[Tensor, " chosen"]
"""Numbers of heads of a layer, counted from 0."""

Stream = Float[Tensor, "batch query model"]
"""The residual stream, or a change of it, at each token."""

ACROSS = 1e-4
"""The share of a change's squared size that has to lie across the stream; with less, placebos are entirely random."""


@dataclass(eq=False)
class DisabledUnit:
    """An `Edit` that disables a unit, or runs a placebo of it, and measures the size of the change.

    Attributes:
        ablation: The unit and the placebo.
        replacement: The replacement of the unit's output.
        projections: The output projection of each layer; without one, changes are compared before the projection.
        streams: The residual stream that the output of each layer is added to; without it, the whole change of a
            placebo is random.
        seed: The seed of the directions of placebos.
        norms: The norm of the change at each token; each pass of the model appends an array for each layer of the unit.
    """

    ablation: Ablation
    replacement: Replacement
    projections: Mapping[Layer, Projection]
    streams: Mapping[Layer, Stream]
    seed: int
    norms: list[Float[Tensor, "batch query"]] = field(default_factory=list)

    def __call__(self, z: Z, layer: EditedLayer) -> Z:
        """Return the output z of a layer with the unit disabled, or with its placebo; z itself in other layers."""
        chosen = self.ablation.unit.selection.get((layer.attention_type, layer.layer))
        if chosen is None:
            return z
        heads = torch.tensor(chosen, device=z.device)
        change = self.replacement(z[:, heads], layer, heads) - z[:, heads]
        self.norms.append(self.project(change, heads, layer).norm(dim=-1))
        if self.ablation.placebo:
            return z + self._match(change, heads, z, layer)
        edited = z.clone()
        edited[:, heads] += change
        return edited

    def project(self, change: Z, heads: Heads, layer: EditedLayer) -> Stream:
        """Project a change of some heads to the residual stream; without a projection, return the change itself."""
        projection = self.projections.get((layer.attention_type, layer.layer))
        return projection.apply(change, heads) if projection else change.transpose(1, 2).flatten(2)

    def _match(self, change: Z, heads: Heads, z: Z, layer: EditedLayer) -> Z:
        """Return a random change of all heads, with the size that `change` has along the stream and across it.

        If the stream is unknown, or hardly any of `change` lies across it, only the total sizes are equal.
        """
        key, every = (layer.attention_type, layer.layer), torch.arange(layer.heads, device=z.device)
        added, turned = self.project(change, heads, layer), self._turn(change, layer)
        across, along = self.project(turned, every, layer), torch.zeros_like(turned)
        left, rest = added.square().sum(-1), turned
        read, tiny = self.streams.get(key), torch.finfo(z.dtype).tiny
        if read is not None and key in self.projections and read.shape == added.shape:
            stream = read.to(z.dtype) + self.projections[key].apply(z, every)
            toward = self.projections[key].solve(stream, layer.heads)
            reached = self.project(toward, every, layer)
            size = reached.square().sum(-1).clamp_min(tiny)
            kept, surplus = ((part * reached).sum(-1) / size for part in (added, across))
            # If a norm scales the output of a layer, setting the output to zero only changes its length: the change has
            # no part across the output, and its placebos are entirely random.
            has_rest = (left - kept.square() * size) > ACROSS * left
            kept, surplus = (part * has_rest for part in (kept, surplus))
            left = (left - kept.square() * size).clamp_min(0)
            along = kept[:, None, :, None] * toward
            rest = turned - surplus[:, None, :, None] * toward
            across = across - surplus[..., None] * reached
        length = (left / across.square().sum(-1).clamp_min(tiny)).sqrt()
        return along + length[:, None, :, None] * rest

    def _turn(self, change: Tensor, layer: EditedLayer) -> Z:
        """Map a change of some heads to a change of all heads of the layer, by a random matrix."""
        width, name = change.shape[-1], f"{self.seed} {self.ablation.unit.name} {self.ablation.placebo} {layer.layer}"
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:7])
        generator = torch.Generator().manual_seed(number)
        directions = torch.randn(change.shape[1] * width, layer.heads * width, generator=generator)
        turned = change.transpose(1, 2).flatten(2) @ directions.to(change)
        return turned.reshape(*turned.shape[:2], layer.heads, width).transpose(1, 2)
