"""Compares layers that are measured without their matrix with the model's own kernel and function.

The results are read at the end of a pass: on a GPU, reading a number earlier would wait for all launched work. Until
then, each layer keeps only a few numbers.
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
"""The largest difference allowed between a log-sum-exp from the model's own kernel and the same one from headscope.

One key more or less makes a larger difference; rounding makes a smaller one, since no log-sum-exp here is large.
"""

Layer = tuple[str, int]
"""The attention type and number of a layer."""

Reasons = Mapping[Layer, str]
"""The reason why a layer needs its attention matrix, by layer."""

R = TypeVar("R")


class LargeScoresError(HeadscopeError):
    """The error for layers whose scores are too large to be measured without the matrix.

    A pass raises it at its end.

    Attributes:
        reasons: The description of the scores of each such layer.
    """

    def __init__(self, model: Model, reasons: Reasons) -> None:
        """Make the error; its message names the first layer of `reasons`."""
        (_, layer), reason = next(iter(reasons.items()))
        super().__init__(f"layer {layer} of {model.name!r} has {reason}; measure it with its matrix.")
        self.reasons = reasons


@dataclass(eq=False)
class Comparisons:
    """The largest differences between numbers of each layer and the model's own numbers.

    They are kept on the device of the layer, with the largest of the numbers themselves.
    """

    _sums: dict[Layer, Float[Tensor, "2"]] = field(default_factory=dict)
    _outputs: dict[Layer, Float[Tensor, "2"]] = field(default_factory=dict)
    _entropies: dict[Layer, Float[Tensor, "3"]] = field(default_factory=dict)

    def note_sums(self, attention: FusedRows, own: Float[Tensor, "batch head query"]) -> None:
        """Note the largest difference between a layer's log-sum-exps and those of the model's own kernel (`own`)."""
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
        """Note the largest difference between some rows of a layer's output and the model's own output (`expected`)."""
        real = attention.queries.real[:, rows, None, None]
        self._outputs[attention.attention_type, attention.layer] = _find_largest(real, expected, expected - output)

    def note_entropies(self, attention: FusedRows, rows: slice, weights: Float[Tensor, "batch head query key"]) -> None:
        """Note the largest difference between the entropies of some rows and those of the model's own weights."""
        real = attention.queries.real[:, None, rows]
        entropy = torch.special.entr(weights.float()).sum(-1)
        ours, log_sum = attention.entropy()[:, :, rows], attention.log_sum[:, :, rows]
        self._entropies[attention.attention_type, attention.layer] = _find_largest(
            real, entropy, entropy - ours, log_sum
        )

    def verify(self, model: Model, is_finite: Callable[[], bool]) -> None:
        """Raise an error if a layer differs from the model's own kernel or function, or its scores are too large.

        Args:
            model: The model that errors name.
            is_finite: Returns whether all outputs of the model are finite. If they are not, the sums need not be
                finite either; the texts are left out, and nothing is raised.

        Raises:
            ModelError: A layer differs from the model's own kernel or function.
            LargeScoresError: Some layers have scores that are too large.
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
            # If these are not finite, neither are the model's outputs, and the text is left out (`are_finite`).
            if math.isfinite(largest) and not difference <= (bound := find_bound(model, largest)):
                raise refuse_difference(model, f"the outputs of layer {layer} without its matrix", difference, bound)
        for (_, layer), (largest, difference, size) in entropies.items():
            # An entropy is the difference of two numbers as large as the log-sum-exp. Queries and keys come from the
            # model itself, so nothing is rounded to its type.
            bound = find_bound(model, size, find_tolerance(torch.float32))
            if math.isfinite(largest) and not difference <= bound:
                raise refuse_difference(model, f"the entropies of layer {layer} without its matrix", difference, bound)


def _find_largest(real: Bool[Tensor, "..."], *numbers: Float[Tensor, "..."]) -> Float[Tensor, " _"]:
    """Return the largest absolute value of each tensor where `real` is True; NaN if there is a NaN."""
    return torch.stack([each.double() for each in numbers]).where(real, 0).abs().flatten(1).amax(1)


def _read(*tables: Mapping[Layer, Float[Tensor, " _"]]) -> Iterator[dict[Layer, list[float]]]:
    """Yield each table with lists in place of its tensors; the tensors of all devices are read at once."""
    tensors = [tensor for table in tables for tensor in table.values()]
    numbers = iter(torch.cat([each.double().to(tensors[0].device) for each in tensors]).tolist() if tensors else ())
    for table in tables:
        yield {layer: [next(numbers) for _ in range(len(tensor))] for layer, tensor in table.items()}


def run_again_with_matrix(run: Callable[[Reasons], R]) -> R:
    """Run a function until no further layer needs its attention matrix, and return the result of the last call.

    Each call gets the layers that are known to need their matrix; a pass finds such layers only at its end. The
    function runs the model, and must keep nothing of a call that fails.
    """
    reasons: dict[Layer, str] = {}
    while True:
        try:
            return run(reasons)
        except LargeScoresError as error:
            reasons |= error.reasons
