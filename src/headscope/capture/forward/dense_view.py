"""Views whose rows are made from those of attention, with their matrix."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

from headscope.capture.forward.call import Observer
from headscope.capture.forward.outputs import Loss
from headscope.capture.rows.dense import DenseRows
from headscope.capture.tokens.batch import Batch

Turn = Callable[[DenseRows], DenseRows]
"""What turns rows of attention into those of a view, which have the same queries and keys."""


@dataclass(frozen=True, eq=False)
class DenseView:
    """What is shown in place of the weights.

    Attributes:
        begin: of a batch and its loss, which only views of gradients need, gives what is then called with the rows of
            each layer, in the order of the forward pass.
        whole: True if it needs all rows of a layer at once.
    """

    begin: Callable[[Batch, Loss | None], Turn]
    whole: bool


def turn_rows(turn: Turn, observe: Observer) -> Observer:
    """Return an observer of attention with its matrix, which turns it into the view and hands that on."""
    # The values are averaged by the attention, not by the rows of a view.
    return lambda attention: observe(replace(turn(cast(DenseRows, attention)), value=None))
