"""Edits change the output of the heads of a layer while the model runs; gradients say what a change would do.

An edit gets and returns z, the output of each query head before the output projection. Only there are the heads still
apart: after the projection a slice of the output is no head.
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
"""True where a query of a block of rows may see a key; keys of padding are hidden."""


@dataclass(frozen=True, eq=False)
class EditedLayer:
    """The layer that an edit changes, and what a new z can be made from.

    Attributes:
        attention_type: as in `headscope.capture.rows.attention.Attention`.
        layer: likewise.
        heads: the number of query heads.
        queries: q of each query head, behind any rotation.
        keys: k of each key/value head, likewise.
        scale: by which the products of queries and keys are multiplied.
        values: v of each key/value head, which several query heads may share: `values_of` has them by query head.
        positions: the place of each query in its text, padding before it included: while text is generated, the first
            query is not the first token.
        key_positions: the place of each key: a window keeps the last keys alone.
        visible: the keys that each query of a block of rows may see. Ask block by block: all rows at once are a matrix
            of query x key.
        attend_without: z with some keys out of sight of some queries (True where a key is), so that their weight goes
            to the other keys; of a query that sees no other key, z is 0.
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
        """The keys that some query heads attend to, these counted from 0."""
        return self.keys[:, heads // (self.heads // self.keys.shape[1])]

    def values_of(self, heads: Int[Tensor, " head"]) -> Float[Tensor, "batch head key width"]:
        """The values that some query heads average, these counted from 0."""
        return self.values[:, heads // (self.heads // self.values.shape[1])]


@runtime_checkable
class Edit(Protocol):
    """A function that is called once a layer with z, in float32 at least, and returns z as it is to go on."""

    def __call__(
        self, z: Float[Tensor, "batch head query width"], layer: EditedLayer
    ) -> Float[Tensor, "batch head query width"]:
        """The output of each query head that replaces `z`; padding is present and meaningless."""


def apply_edits(edits: Sequence[Edit], z: Z, layer: EditedLayer) -> Z:
    """Z as the edits leave it, one after the other.

    Raises:
        HeadscopeError: one of them returns something else than a new z.
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
    """z, and 0 where all that a query sees is hidden from it: a softmax over nothing would be even."""
    nothing = ~(visible[:, None] & ~hidden).any(-1)
    return z.masked_fill(nothing[..., None], 0)


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
        g: the gradient of the loss by z.
        v: the values of each key/value head.
        z: the output of each query head as it went on (edited, if there was an edit).
        visible: the keys that each query of a block of rows may see, as in `EditedLayer`; what the mask hides has no
            weight that could change.
    """

    g: Float[Tensor, "batch head query width"]
    v: Float[Tensor, "batch key_head key width"]
    z: Float[Tensor, "batch head query width"]
    visible: Visible

    def by_weight(self, rows: slice) -> Float[Tensor, "batch head query key"]:
        """The gradient of the loss by each weight of a block of query rows; of hidden keys it means nothing."""
        return products(self.g[:, :, rows], self.v)


def refuse_changes(model: Model) -> ModelError:
    """The error for a model whose heads can only be observed."""
    return ModelError(
        f"the heads of {model.title} cannot be edited or differentiated: the model "
        "does not use transformers' attention interface; its attention can only be observed."
    )
