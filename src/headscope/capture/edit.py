"""Edits change the output of the heads of a layer while the model runs; gradients say what a change would do.

An edit gets and returns z, the output of each query head before the output projection. Only there are the heads still
apart: after the projection a slice of the output is no head.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor

from headscope.capture.batch import Batch
from headscope.errors import HeadscopeError


@dataclass(frozen=True, eq=False)
class EditedLayer:
    """The layer that an edit changes, and what a new z can be made from.

    Attributes:
        attention_type: as in `headscope.capture.attention.Attention`.
        layer: likewise.
        batch: the documents, their tokens and words.
        values: v of each key/value head. Where several query heads share one, ``values.repeat_interleave(heads //
            values.shape[1], dim=1)`` has them by query head.
        visible: the keys that each query of a block of rows may see. Ask block by block: all rows at once are a matrix
            of query x key.
    """

    attention_type: str
    layer: int
    batch: Batch
    values: Float[Tensor, "batch key_head key width"]
    visible: Callable[[slice], Bool[Tensor, "batch query key"]]


@runtime_checkable
class Edit(Protocol):
    """A function that is called once a layer with z, in float32 at least, and returns z as it is to go on."""

    def __call__(
        self, z: Float[Tensor, "batch head query width"], layer: EditedLayer
    ) -> Float[Tensor, "batch head query width"]:
        """The output of each query head that replaces `z`; padding is present and meaningless."""


def apply_edit(
    edit: Edit, z: Float[Tensor, "batch head query width"], layer: EditedLayer
) -> Float[Tensor, "batch head query width"]:
    """The new z that `edit` returns, if it is of the shape and type of `z`."""
    edited: object = edit(z, layer)
    if isinstance(edited, Tensor) and (edited.shape, edited.dtype, edited.device) == (z.shape, z.dtype, z.device):
        return edited
    raise HeadscopeError(
        f"the edit of {layer.attention_type} layer {layer.layer} returned {_describe(edited)}, and {_describe(z)} was "
        "wanted; return a tensor of the shape, type and device of the one that came."
    )


def _describe(value: object) -> str:
    if not isinstance(value, Tensor):
        return f"a {type(value).__name__}"
    return f"a tensor of {tuple(value.shape)} in {str(value.dtype).removeprefix('torch.')} on {value.device}"


@dataclass(frozen=True, eq=False)
class HeadGradient:
    """The gradient of a loss by the heads of a layer.

    The gradient of the weight with which query i attends to key j is ``g[i] . v[j]``, with no matrix of weights in
    memory. Several query heads may share a key/value head: ``v.repeat_interleave(g.shape[1] // v.shape[1], dim=1)``
    has v by query head.

    Attributes:
        g: the gradient of the loss by z, the output of each query head as it went on (edited, if there was an edit).
        v: the values of each key/value head.
    """

    g: Float[Tensor, "batch head query width"]
    v: Float[Tensor, "batch key_head key width"]
