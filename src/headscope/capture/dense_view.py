"""Views whose rows are made from those of attention, with their matrix."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, cast, runtime_checkable

from headscope.capture.attention import Attention
from headscope.capture.batch import Batch
from headscope.capture.call import Observer
from headscope.capture.dense import DenseRows
from headscope.capture.outputs import Loss

Turn = Callable[[DenseRows], DenseRows]
"""What turns rows of attention into those of a view, which have the same queries and keys."""


@runtime_checkable
class DenseView(Protocol):
    """What is shown in place of the weights."""

    @property
    def whole(self) -> bool:
        """True if it needs all rows of a layer at once."""

    def begin(self, batch: Batch, loss: Loss | None) -> Turn:
        """What is then called with the rows of each layer, in the order of the forward pass.

        Args:
            batch: what the model is run on.
            loss: that of the batch; views that are not of gradients do without.
        """


def turn_rows(turn: Turn, observe: Observer) -> Observer:
    """An observer of attention with its matrix, who shows another one what it is turned into."""

    def observe_rows(attention: Attention) -> None:
        # A view shows what its rows are shares of, and the values are averaged by none of that.
        observe(replace(turn(cast(DenseRows, attention)), value=None))

    return observe_rows
