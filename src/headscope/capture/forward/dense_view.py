"""Views that are computed from the attention matrix."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

from headscope.capture.forward.call import Observer
from headscope.capture.forward.outputs import Loss
from headscope.capture.rows.dense import DenseRows
from headscope.capture.tokens.batch import Batch

Turn = Callable[[DenseRows], DenseRows]
"""A function that takes rows of attention, and returns the rows of a view for the same queries and keys."""


@dataclass(frozen=True, eq=False)
class DenseView:
    """A view that is computed from the attention matrix, and shown in place of the weights.

    Attributes:
        begin: Takes a batch and its loss, and returns the function that is then called with the rows of each layer, in
            the order of the forward pass. Only views of gradients need the loss.
        whole: True if the view needs all rows of a layer at once.
    """

    begin: Callable[[Batch, Loss | None], Turn]
    whole: bool


def turn_rows(turn: Turn, observe: Observer) -> Observer:
    """Return an observer that turns each attention that it gets into a view, and passes the view to `observe`."""
    # The model averages the values by its attention, not by the rows of a view.
    return lambda attention: observe(replace(turn(cast(DenseRows, attention)), value=None))
