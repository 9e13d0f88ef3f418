"""Value zeroing: the change of a token if a head does not get the value of another token (Mohebbi et al. 2023).

If ``z[i] - A[i, j] v[j]`` replaces z[i], the output of one head, the block of its layer returns another vector for
token i. The view shows the cosine distance of the two vectors. So it includes the effect of the residual stream, the
norms and the feed-forward part on the head's output. Mohebbi et al. (section 3) zero a value in all heads of a layer at
once, and have one map for each layer; here each head has its own map.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.capture.forward.dense_view import DenseView, Turn
from headscope.capture.forward.head_edit import Edit, EditedLayer
from headscope.capture.forward.interface import Capture
from headscope.capture.forward.outputs import Loss
from headscope.capture.forward.verify import is_same
from headscope.capture.model.model import Model
from headscope.capture.passes.blocks import Layer, Recorded, get_first, record_pass
from headscope.capture.passes.projection import Projection, find_projections
from headscope.capture.rows.attention import Attention
from headscope.capture.rows.dense import DenseRows
from headscope.capture.rows.shares import share_rows
from headscope.capture.tokens.batch import Batch
from headscope.errors import ModelError


def prepare_value_zeroing(capture: Capture, batch: Batch) -> DenseView:
    """Return the view of the cosine distance between a block's outputs with and without a value, as a share of its row.

    A run on `batch` verifies that a block with edited heads returns what the model itself computes.

    Raises:
        ModelError: The model has no blocks, or does more with the output of its heads than project it.
    """
    projections = find_projections(capture, batch)
    recorded = record_pass(capture, batch.inputs)
    for layer in capture.modules:
        edit = _zero_first(layer)
        with capture.editing(edit):
            edited = record_pass(capture, batch.inputs)
        expected = get_first(edited.outputs[edited.starts[layer]])
        with torch.inference_mode():
            if not is_same(capture.model, expected, recorded.run_block(layer, edit, projections)):
                raise _refuse(capture.model, layer)
    return DenseView(partial(_begin, capture, projections), whole=True)


def _begin(capture: Capture, projections: Mapping[Layer, Projection], batch: Batch, loss: Loss | None) -> Turn:
    """Measure a batch by running each block without each value; return the function that returns the view's rows."""
    recorded, seen = record_pass(capture, batch.inputs), list[DenseRows]()

    def see(attention: Attention) -> None:
        assert isinstance(attention, DenseRows)
        seen.append(attention)

    # Blocks run after this pass, since inside it they would count as further layers.
    capture.run(batch, see, whole=True)
    shares = {}
    for attention in seen:
        layer = attention.attention_type, attention.layer
        shares[layer] = _measure_shares(recorded, layer, attention, projections)
    return lambda attention: replace(attention, matrix=shares[attention.attention_type, attention.layer])


@torch.inference_mode()
def _measure_shares(
    recorded: Recorded, layer: Layer, attention: DenseRows, projections: Mapping[Layer, Projection]
) -> Float[Tensor, "batch head query held"]:
    """Measure the cosine distances as shares of their rows; 0 where the weight is 0, and for padding."""
    weights, keys = attention.matrix, torch.arange(attention.keys.length)[attention.columns]
    real = attention.queries.real[:, :, None] & attention.keys.real[:, None, attention.columns]
    distances = torch.zeros_like(weights)
    expected = get_first(recorded.outputs[recorded.starts[layer]]).double()
    for head in range(weights.shape[1]):
        for place, key in enumerate(keys.tolist()):
            without = _take_value(head, key, weights[:, head, :, place])
            actual = recorded.run_block(layer, without, projections).double()
            distances[:, head, :, place] = 1 - torch.cosine_similarity(expected, actual, dim=-1)
    # Rounding may give numbers a little below 0.
    return share_rows(distances.clamp_min_(0).masked_fill_(~real[:, None] | (weights == 0), 0.0))


def _take_value(head: int, key: int, weights: Float[Tensor, "batch query"]) -> Edit:
    """Return an edit that subtracts the value of the token `key`, times its weights, from the output of a head."""

    def edit(z: Tensor, layer: EditedLayer) -> Tensor:
        edited = z.clone()
        heads: Int[Tensor, " head"] = torch.tensor([head], device=z.device)
        value = layer.values_of(heads)[:, 0, key].to(z.dtype)
        edited[:, head] -= weights[..., None].to(z.dtype) * value[:, None]
        return edited

    return edit


def _zero_first(chosen: Layer) -> Edit:
    """Return an edit that sets the first head of a layer to 0."""

    def edit(z: Tensor, layer: EditedLayer) -> Tensor:
        if (layer.attention_type, layer.layer) != chosen:
            return z
        edited = z.clone()
        edited[:, 0] = 0
        return edited

    return edit


def _refuse(model: Model, layer: Layer) -> ModelError:
    return ModelError(
        f"{model.title} cannot be seen through the view `value-zeroing`: {layer[0]} "
        f"layer {layer[1]} does more than to add the projected output of its heads; leave out --view, or take another."
    )
