"""Attention rollout: the attention of a head carried down to the input tokens (Abnar and Zuidema 2020, section 3).

The vector of a token in a layer is a mixture of all tokens below. With w as the share that the residual stream keeps,

    R[0] = I,    R[l] = (w I + (1 - w) mean_h A[l, h]) R[l - 1]

is the share of each input token in each token of layer l, and ``A[l, h] R[l - 1]`` is the share of each input token in
what head h of layer l reads. The paper has the map R[l] of a whole layer. Here each head has its own rows, and they are
not mixed with the residual stream.
"""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.capture.forward.dense_view import DenseView, Turn
from headscope.capture.forward.outputs import Loss
from headscope.capture.passes.views import RESIDUAL
from headscope.capture.rows.dense import DenseRows
from headscope.capture.rows.shares import share_rows
from headscope.capture.tokens.assign import SPECIAL
from headscope.capture.tokens.batch import Batch, Tokens


def view_rollout(*, sink: bool) -> DenseView:
    """Return the view of ``A[l, h] R[l - 1]``, with or without the sink of each text.

    A decoder's own attention is carried down to the input of the decoder, and cross attention to the input of the
    encoder.

    Args:
        sink: Count attention to the sink: to the first token in a decoder, to special tokens elsewhere. If False, the
            sink's column of each matrix A is 0, and the rest of the row is scaled to sum to 1.
    """

    def begin(batch: Batch, loss: Loss | None) -> Turn:
        # The map R of the layers until now, by attention type.
        carried: dict[str, Float[Tensor, "batch query key"]] = {}

        def turn(attention: DenseRows) -> DenseRows:
            own = attention.attention_type
            with torch.inference_mode():
                weights = _read_weights(attention, sink)
                below = carried.get("encoder" if own == "cross" else own)
                if below is None:
                    below = torch.eye(weights.shape[-1]).expand(len(weights), -1, -1)
                below = below.to(weights.device)
                rows = weights @ below[:, None]
                if own != "cross":
                    carried[own] = RESIDUAL * below + (1 - RESIDUAL) * rows.mean(1)
            # A key that the window of this layer hides may still have a share, from the layers below.
            return replace(attention, matrix=rows, allowed=(rows > 0).any(1).sum(-1, dtype=torch.float32))

        return turn

    return DenseView(begin, whole=True)


def _read_weights(attention: DenseRows, sink: bool) -> Float[Tensor, "batch head query key"]:
    """Return the weights with 0 for padding, which may hold any numbers; without the sink unless it counts."""
    queries, keys = attention.queries, attention.keys
    left_out = ~(queries.real[:, :, None] & keys.real[:, None])
    if sink:
        return attention.matrix.masked_fill(left_out[:, None], 0.0)
    is_sink = _is_first(keys) if attention.attention_type == "decoder" else keys.real & (keys.word == SPECIAL)
    return share_rows(attention.matrix.masked_fill((left_out | is_sink[:, None])[:, None], 0.0))


def _is_first(tokens: Tokens) -> Bool[Tensor, "batch token"]:
    first = torch.zeros_like(tokens.real)
    first[:, 0] = True
    return first
