"""The views of gradients: how much of what the loss depends on in a row belongs to the weight of each token.

One backward pass gives ``g = dL/dz`` and the values v of each layer; the gradient of a weight is ``g[i] . v[j]``. The
rows are then shown by a second forward pass, a block at a time, so that nothing of the size of a matrix is kept.
"""

from dataclasses import replace

import torch

from headscope.capture.forward.dense_view import DenseView, Turn
from headscope.capture.forward.interface import Capture
from headscope.capture.forward.outputs import Loss
from headscope.capture.rows.dense import DenseRows
from headscope.capture.rows.shares import share_rows
from headscope.capture.tokens.batch import Batch


def view_gradients(capture: Capture, *, times_attention: bool) -> DenseView:
    """``|dL/dA[i, j]|``, or ``|A[i, j] dL/dA[i, j]|``, as a share of its row, in a model that is captured."""

    def begin(batch: Batch, loss: Loss | None) -> Turn:
        gradients = capture.run(batch, gradients=True, loss=loss).gradients

        def turn(attention: DenseRows) -> DenseRows:
            gradient = gradients[attention.attention_type, attention.layer]
            rows, columns = attention.rows, attention.columns
            with torch.inference_mode():
                sizes = gradient.by_weight(rows)[..., columns].abs_()
                if times_attention:
                    sizes = sizes * attention.matrix
                # Padding may hold anything, NaN included.
                seen = gradient.visible(rows)[..., columns] & attention.queries.real[:, rows, None]
                shares = share_rows(sizes.masked_fill(~seen[:, None], 0.0))
            return replace(attention, matrix=shares.float())

        return turn

    return DenseView(begin, whole=False)
