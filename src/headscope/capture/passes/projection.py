"""The part of each head in the output projection of its layer; the projection is found by its input, not its name."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headscope.capture.forward.head_edit import EditedLayer, Z
from headscope.capture.forward.interface import Capture
from headscope.capture.forward.verify import measure_difference
from headscope.capture.model.model import Model
from headscope.capture.rows.norms import Norms
from headscope.capture.tokens.batch import Batch
from headscope.errors import ModelError


@dataclass(frozen=True, eq=False)
class Projection:
    """The output projection of a layer.

    Attributes:
        parts: The part of its matrix that belongs to each head.
    """

    parts: Float[Tensor, "head width model"]

    def apply(
        self, change: Float[Tensor, "batch chosen query width"], heads: Int[Tensor, " chosen"]
    ) -> Float[Tensor, "batch query model"]:
        """Project a change of the output of some heads, counted from 0; return the change of the layer's output."""
        return change.transpose(1, 2).flatten(2) @ self.parts[heads].flatten(0, 1).to(change.dtype)

    def solve(self, added: Float[Tensor, "batch query model"], heads: int) -> Float[Tensor, "batch head query width"]:
        """Return the smallest change of all heads that adds `added` after the projection, or comes closest to it."""
        flat: Tensor = (added.double() @ self._inverse).to(added.dtype)
        return flat.reshape(*flat.shape[:2], heads, -1).transpose(1, 2)

    @cached_property
    def _inverse(self) -> Float[Tensor, "model all"]:
        """The pseudo-inverse of the matrix of all heads, in float64, since it may be close to singular."""
        inverse: Tensor = torch.linalg.pinv(self.parts.flatten(0, 1).double(), rtol=1e-6)
        return inverse


def find_norms(capture: Capture, batch: Batch) -> Norms:
    """Return an object that measures the norm of each value after the output projection, by layer and head.

    The arguments and errors are as in `find_projections`.
    """
    projections = {}
    for layer, projection in find_projections(capture, batch).items():
        # The triangle of the QR decomposition gives vectors of the same length, and is not wider than a head.
        triangle = torch.linalg.qr(projection.parts.mT.double(), mode="r").R
        projections[layer] = triangle.mT.to(projection.parts.dtype)
    return Norms(projections)


def find_projections(capture: Capture, batch: Batch) -> dict[tuple[str, int], Projection]:
    """Find the output projection of each layer, by attention type and number.

    A run on `batch` verifies that each layer only projects the output of its heads; it may also add a constant.

    Raises:
        ModelError: The model does not use the attention interface, or does more with the output of its heads than
            project it.
    """
    model, name = capture.model, capture.model.title
    if capture.route == "outputs":
        raise ModelError(
            f"what the heads of {name} add cannot be seen, since it does not use transformers' attention interface; "
            "leave out --view to measure its weights."
        )
    watch = _Watch(batch)
    with ExitStack() as hooked:
        for part in model.module.modules():
            hooked.enter_context(part.register_forward_pre_hook(watch.see))
        layers = [*capture.run(batch, edit=watch.start).modules]
    projections = {}
    for layer in layers:
        with torch.no_grad():
            parts = _read_projection(model, *watch.projected[layer]) if layer in watch.projected else None
        if parts is None:
            raise ModelError(
                f"what the heads of {name} add cannot be seen: no module of {layer[0]} layer {layer[1]} takes the "
                "output of the heads and only projects it; leave out --view to measure the weights, or disable heads "
                "with --placebos 0."
            )
        projections[layer] = Projection(parts)
    return projections


@dataclass(eq=False)
class _Watch:
    """The hooks of a forward pass that find, for each layer, the module that takes the output of the heads.

    Attributes:
        batch: The batch that the model reads.
        projected: The module of each layer, and its input: the concatenated output of the heads.
    """

    batch: Batch
    projected: dict[tuple[str, int], tuple[nn.Module, Float[Tensor, "1 query head width"]]] = field(
        default_factory=dict
    )
    _layer: tuple[str, int] | None = None
    _z: Tensor | None = None

    def start(self, z: Z, layer: EditedLayer) -> Z:
        """Return z unchanged, as an edit, and begin to look for the module that takes it."""
        self._layer, self._z = (layer.attention_type, layer.layer), z
        return z

    def see(self, module: nn.Module, arguments: tuple[Any, ...]) -> None:
        """Note the module if it takes the output of the heads and nothing else.

        A module without weights, such as dropout, only passes the output on. A module with further inputs, such as the
        stream that the output is added to, contains the projection.
        """
        if self._layer is None or self._z is None or len(arguments) != 1 or not isinstance(arguments[0], Tensor):
            return
        given, z = arguments[0], self._z.transpose(1, 2)
        if given.numel() != z.numel() or next(module.parameters(), None) is None:
            return
        # Padding may hold any numbers, even NaN.
        real = self.batch.on(given.device).queries(self._layer[0]).real
        z = z.to(given)[real]
        if torch.equal(given.reshape(*real.shape, *z.shape[1:])[real], z):
            self.projected[self._layer] = module, z[None]
            self._layer = self._z = None


def _read_projection(
    model: Model, module: nn.Module, z: Float[Tensor, "1 query head width"]
) -> Float[Tensor, "head width model"] | None:
    """Find each head's part of the matrix by which a module multiplies z, before it may add a constant.

    The result is None if the module does more than that, or passes no gradient on. The module is run, and its weights
    are not read: adapters may add to weights, and families store them in different ways.
    """
    heads, width = z.shape[2:]
    zero = z.new_zeros(1, 1, heads * width)
    offset = module(zero)
    try:
        # The gradient is exact; a difference of outputs would include the rounding of the bias in half precision.
        with torch.enable_grad():
            inputs = zero.repeat(1, offset.shape[-1], 1).requires_grad_()
            (gradient,) = torch.autograd.grad(module(inputs).diagonal(dim1=1, dim2=2).sum(), inputs)
    except RuntimeError:  # no gradient passes through some weights, such as packed ones
        return None
    projection = gradient.reshape(-1, heads, width).permute(1, 2, 0).float()
    expected = torch.einsum("bqhw,hwm->bqm", z.float(), projection) + offset.float()
    difference, bound = measure_difference(model, expected, module(z.flatten(2)).float(), expected.abs().max())
    return projection if difference <= bound else None
