"""Comparisons of a layer without its matrix with the model's own kernel and function, all read at the end of a pass.

On a GPU each number that is read in between would wait for all that has been launched, so layers only keep a few
numbers.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.capture.forward.path import describe_large_scores
from headscope.capture.forward.verify import find_bound, find_tolerance, refuse_difference
from headscope.capture.model.model import Model
from headscope.capture.rows.fused import FusedRows
from headscope.errors import HeadscopeError

TOLERANCE = 1e-3
"""By how much a log-sum-exp of the model's own kernel may differ from ours; one key more or less would, and rounding
less, as none is large."""

Layer = tuple[str, int]
"""The attention type and number of a layer."""

Reasons = Mapping[Layer, str]
"""Why some layers need their matrix."""

R = TypeVar("R")


class LargeScoresError(HeadscopeError):
    """Some layers have scores too large to do without the matrix, as a pass has found at its end.

    Attributes:
        reasons: these layers.
    """

    def __init__(self, model: Model, reasons: Reasons) -> None:
        """Name the first of these layers."""
        (_, layer), reason = next(iter(reasons.items()))
        super().__init__(f"layer {layer} of {model.name!r} has {reason}; measure it with its matrix.")
        self.reasons = reasons


@dataclass(eq=False)
class Comparisons:
    """The largest numbers of each layer and the largest differences from the model's own, on the layer's device."""

    _sums: dict[Layer, Float[Tensor, "2"]] = field(default_factory=dict)
    _outputs: dict[Layer, Float[Tensor, "2"]] = field(default_factory=dict)
    _entropies: dict[Layer, Float[Tensor, "3"]] = field(default_factory=dict)

    def note_sums(self, attention: FusedRows, own: Float[Tensor, "batch head query"]) -> None:
        """Compare the log-sum-exps of all rows with those of the model's own kernel."""
        ours = attention.log_sum
        sizes = torch.stack([ours, ours - own])
        if attention.queries.is_padded:
            sizes.masked_fill_(attention.queries.padding, 0.0)
        self._sums[attention.attention_type, attention.layer] = sizes.abs_().amax((1, 2, 3))

    def note_outputs(
        self,
        attention: FusedRows,
        rows: slice,
        output: Float[Tensor, "batch query head size"],
        expected: Float[Tensor, "batch query head size"],
    ) -> None:
        """Compare some rows of what a layer returns with what the model's own function returns."""
        real = attention.queries.real[:, rows, None, None]
        self._outputs[attention.attention_type, attention.layer] = _find_largest(real, expected, expected - output)

    def note_entropies(self, attention: FusedRows, rows: slice, weights: Float[Tensor, "batch head query key"]) -> None:
        """Compare the entropies of some rows with those of the weights of the model's own function."""
        real = attention.queries.real[:, None, rows]
        entropy = torch.special.entr(weights.float()).sum(-1)
        ours, log_sum = attention.entropy()[:, :, rows], attention.log_sum[:, :, rows]
        self._entropies[attention.attention_type, attention.layer] = _find_largest(
            real, entropy, entropy - ours, log_sum
        )

    def verify(self, model: Model, is_finite: Callable[[], bool]) -> None:
        """Read all that was compared.

        Args:
            model: named in errors.
            is_finite: whether all that the model returned is finite. Where it is not, no sum need be, and the texts
                are left out.

        Raises:
            ModelError: a layer differs from the model's own kernel or function.
            LargeScoresError: some layers have scores that are too large.
        """
        sums, outputs, entropies = _read(self._sums, self._outputs, self._entropies)
        if not all(math.isfinite(number) for numbers in sums.values() for number in numbers) and not is_finite():
            return
        reasons: dict[Layer, str] = {}
        for (attention_type, layer), (largest, difference) in sums.items():
            if because := describe_large_scores(largest):
                reasons[attention_type, layer] = because
            elif not difference <= TOLERANCE:
                what = f"the sums that the model's own kernel finds in layer {layer}"
                raise refuse_difference(model, what, difference, TOLERANCE)
        if reasons:
            raise LargeScoresError(model, reasons)
        self._verify_rows(model, outputs, entropies)

    @staticmethod
    def _verify_rows(
        model: Model, outputs: Mapping[Layer, list[float]], entropies: Mapping[Layer, list[float]]
    ) -> None:
        for (_, layer), (largest, difference) in outputs.items():
            # Where they are not finite, neither are the model's outputs, and the text is left out (`are_finite`).
            if math.isfinite(largest) and not difference <= (bound := find_bound(model, largest)):
                raise refuse_difference(model, f"the outputs of layer {layer} without its matrix", difference, bound)
        for (_, layer), (largest, difference, size) in entropies.items():
            # An entropy is the difference of two numbers of the size of the log-sum-exp. The queries and keys are the
            # model's, so nothing is rounded in its type.
            bound = find_bound(model, size, find_tolerance(torch.float32))
            if math.isfinite(largest) and not difference <= bound:
                raise refuse_difference(model, f"the entropies of layer {layer} without its matrix", difference, bound)


def _find_largest(real: Bool[Tensor, "..."], *numbers: Float[Tensor, "..."]) -> Float[Tensor, " _"]:
    """Return the largest of some numbers either way, padding left out; NaN where one is."""
    return torch.stack([each.double() for each in numbers]).where(real, 0).abs().flatten(1).amax(1)


def _read(*tables: Mapping[Layer, Float[Tensor, " _"]]) -> Iterator[dict[Layer, list[float]]]:
    """Yield the numbers of some tables, all of them read at once; a model may lie on several devices."""
    tensors = [tensor for table in tables for tensor in table.values()]
    numbers = iter(torch.cat([each.double().to(tensors[0].device) for each in tensors]).tolist() if tensors else ())
    for table in tables:
        yield {layer: [next(numbers) for _ in range(len(tensor))] for layer, tensor in table.items()}


def run_again_with_matrix(run: Callable[[Reasons], R]) -> R:
    """Return what a function returns that runs a model, given the layers that need their matrix.

    Which do is known after a pass, so it is called again where there are some; it must keep nothing of a call that
    fails.
    """
    reasons: dict[Layer, str] = {}
    while True:
        try:
            return run(reasons)
        except LargeScoresError as error:
            reasons |= error.reasons
