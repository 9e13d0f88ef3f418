"""The log-sum-exps of the model's own kernel, compared with ours in every row of every layer, once a pass.

On a GPU each number that is read in between would wait for all that has been launched, so layers only keep a few
numbers, and all are read at the end.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

import torch
from jaxtyping import Float64
from torch import Tensor

from headscope.capture.forward.path import describe_large_scores
from headscope.capture.forward.verify import refuse_difference
from headscope.capture.model.model import Model
from headscope.capture.rows.fused import FusedRows
from headscope.errors import HeadscopeError

TOLERANCE = 1e-3
"""By how much a log-sum-exp of the model's own kernel may differ from ours; one key more or less would, and rounding
less, as none is large."""

Reasons = Mapping[tuple[str, int], str]
"""Why some layers need their matrix, by attention type and layer."""

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
class OwnSums:
    """The largest log-sum-exp of each layer, and how far ours are from the model's own; not read yet."""

    _largest: dict[tuple[str, int], Float64[Tensor, "2"]] = field(default_factory=dict)

    def note(self, attention: FusedRows, own: Tensor) -> None:
        """Keep both numbers of a layer."""
        ours = attention.log_sum
        sizes = torch.stack([ours, ours - own]).masked_fill_(attention.queries.padding, 0.0)
        self._largest[attention.attention_type, attention.layer] = sizes.abs_().amax((1, 2, 3))

    def verify(self, model: Model, is_finite: Callable[[], bool]) -> None:
        """Compare the sums of all layers.

        Args:
            model: named in errors.
            is_finite: whether all that the model returned is finite. Where it is not, no sum need be, and the texts
                are left out.

        Raises:
            ModelError: ours are others in a layer.
            LargeScoresError: some layers have scores that are too large.
        """
        if not self._largest:
            return
        # A model may lie on several devices.
        of_layers = [*self._largest.values()]
        numbers = torch.stack([each.to(of_layers[0].device) for each in of_layers]).tolist()
        if not all(map(math.isfinite, chain.from_iterable(numbers))) and not is_finite():
            return
        reasons: dict[tuple[str, int], str] = {}
        for (attention_type, layer), (largest, difference) in zip(self._largest, numbers, strict=True):
            if because := describe_large_scores(largest):
                reasons[attention_type, layer] = because
            elif not difference <= TOLERANCE:
                what = f"the sums that the model's own kernel finds in layer {layer}"
                raise refuse_difference(model, what, difference, TOLERANCE)
        if reasons:
            raise LargeScoresError(model, reasons)


def run_again_with_matrix(run: Callable[[Reasons], R]) -> R:
    """Return what a function returns that runs a model, given the layers that need their matrix.

    Which do is known after a pass, so it is called again where there are some; it must keep nothing of a call that
    fails.
    """
    reasons: dict[tuple[str, int], str] = {}
    while True:
        try:
            return run(reasons)
        except LargeScoresError as error:
            reasons |= error.reasons
