"""Edits change the output of the heads of a layer while the model runs; gradients say what a change would do.

An edit gets and returns z, the output of each query head before the output projection. Only there the heads are
separate: after the projection, no slice of the output belongs to one head.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.capture.model.model import Model
from headscope.capture.rows.kernel import products
from headscope.errors import HeadscopeError, ModelError

Z = Float[Tensor, "batch head query width"]
"""The output of each query head before the output projection."""

Visible = Callable[[slice], Bool[Tensor, "batch query key"]]
"""A function that takes a block of rows, and returns True where a query may see a key; padding is hidden."""


@dataclass(frozen=True, eq=False)
class EditedLayer:
    """A layer whose heads are edited, with the tensors from which an edit can compute a new output.

    Attributes:
        attention_type: ``encoder``, ``decoder`` or ``cross``, as in `headscope.capture.rows.attention.Attention`.
        layer: The number of the layer, counted from 1.
        heads: The number of query heads.
        queries: q of each query head, after any rotation.
        keys: k of each key/value head, after any rotation.
        scale: The factor by which the products of queries and keys are multiplied.
        values: v of each key/value head. Several query heads may share one; `values_of` returns v by query head.
        positions: The position of each query in its text, counting any padding before the text. While text is
            generated, the first query is not the first token.
        key_positions: The position of each key. A window keeps only the last keys.
        visible: A function that returns which keys each query of a block of rows may see. Call it block by block,
            since all rows at once are a matrix of query x key.
        attend_without: A function that returns z with keys hidden from queries (where its argument is True), so that
            their weight goes to the other keys. If a query sees no other key, its z is 0.
    """

    attention_type: str
    layer: int
    heads: int
    queries: Float[Tensor, "batch head query size"]
    keys: Float[Tensor, "batch key_head key size"]
    scale: float
    values: Float[Tensor, "batch key_head key width"]
    positions: Int[Tensor, " query"]
    key_positions: Int[Tensor, " key"]
    visible: Visible
    attend_without: Callable[[Bool[Tensor, "#batch #head query key"]], Float[Tensor, "batch head query width"]]

    def keys_of(self, heads: Int[Tensor, " head"]) -> Float[Tensor, "batch head key size"]:
        """Return the keys that each of these query heads (counted from 0) attends to."""
        return self.keys[:, heads // (self.heads // self.keys.shape[1])]

    def values_of(self, heads: Int[Tensor, " head"]) -> Float[Tensor, "batch head key width"]:
        """Return the values that each of these query heads (counted from 0) averages."""
        return self.values[:, heads // (self.heads // self.values.shape[1])]


@runtime_checkable
class Edit(Protocol):
    """A function that takes the output of a layer's heads (in float32 at least), and returns the new output.

    It is called once for each layer.
    """

    def __call__(
        self, z: Float[Tensor, "batch head query width"], layer: EditedLayer
    ) -> Float[Tensor, "batch head query width"]:
        """Return the output of each query head that replaces `z`; rows of padding are included, and mean nothing."""


def apply_edits(edits: Sequence[Edit], z: Z, layer: EditedLayer) -> Z:
    """Apply edits to z, one after the other.

    Raises:
        HeadscopeError: An edit does not return a tensor of the shape, type and device of z.
    """
    for edit in edits:
        z = _apply(edit, z, layer)
    return z


def _apply(edit: Edit, z: Tensor, layer: EditedLayer) -> Tensor:
    edited: object = edit(z, layer)
    if isinstance(edited, Tensor) and (edited.shape, edited.dtype, edited.device) == (z.shape, z.dtype, z.device):
        return edited
    raise HeadscopeError(
        f"the edit of {layer.attention_type} layer {layer.layer} returned {_describe(edited)}, and {_describe(z)} was "
        "wanted; return a tensor of the shape, type and device of the one that came."
    )


def silence(z: Z, visible: Bool[Tensor, "batch query key"], hidden: Bool[Tensor, "#batch #head query key"]) -> Z:
    """Return z with 0 for each query whose visible keys are all hidden; a softmax would weight its keys equally."""
    nothing = ~(visible[:, None] & ~hidden).any(-1)
    return z.masked_fill(nothing[..., None], 0)


def _describe(value: object) -> str:
    if not isinstance(value, Tensor):
        return f"a {type(value).__name__}"
    return f"a tensor of {tuple(value.shape)} in {str(value.dtype).removeprefix('torch.')} on {value.device}"


@dataclass(frozen=True, eq=False)
class HeadGradient:
    """The gradient of a loss with respect to the heads of a layer.

    The gradient of the weight with which query i attends to key j is ``g[i] . v[j]``, with no matrix of weights in
    memory. Several query heads may share a key/value head: ``v.repeat_interleave(g.shape[1] // v.shape[1], dim=1)``
    is v by query head.

    Attributes:
        g: The gradient of the loss with respect to z.
        v: The values of each key/value head.
        z: The output of each query head after all edits.
        visible: A function that returns which keys each query of a block of rows may see, as in `EditedLayer`. A key
            that the mask hides has no weight that could change.
    """

    g: Float[Tensor, "batch head query width"]
    v: Float[Tensor, "batch key_head key width"]
    z: Float[Tensor, "batch head query width"]
    visible: Visible

    def by_weight(self, rows: slice) -> Float[Tensor, "batch head query key"]:
        """Return the gradient of the loss with respect to each weight of a block of query rows.

        The numbers for hidden keys mean nothing.
        """
        return products(self.g[:, :, rows], self.v)


def refuse_changes(model: Model) -> ModelError:
    """Make the error for a model whose heads can only be observed."""
    return ModelError(
        f"the heads of {model.title} cannot be edited or differentiated: the model "
        "does not use transformers' attention interface; its attention can only be observed."
    )
