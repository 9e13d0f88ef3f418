"""The gradient views: how much the loss depends on each attention weight, as a share of the sum over its row.

One backward pass gives ``g = dL/dz`` and the values v of each layer; the gradient of a weight is ``g[i] . v[j]``. Then
a second forward pass shows the rows, block by block, so that nothing as large as a matrix is kept.
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
    """Return the view of ``|dL/dA[i, j]|`` (if `times_attention`, ``|A[i, j] dL/dA[i, j]|``) as a share of its row."""

    def begin(batch: Batch, loss: Loss | None) -> Turn:
        gradients = capture.run(batch, gradients=True, loss=loss).gradients

        def turn(attention: DenseRows) -> DenseRows:
            gradient = gradients[attention.attention_type, attention.layer]
            rows, columns = attention.rows, attention.columns
            with torch.inference_mode():
                sizes = gradient.by_weight(rows)[..., columns].abs_()
                if times_attention:
                    sizes = sizes * attention.matrix
                # Padding may hold any numbers, even NaN.
                seen = gradient.visible(rows)[..., columns] & attention.queries.real[:, rows, None]
                shares = share_rows(sizes.masked_fill(~seen[:, None], 0.0))
            return replace(attention, matrix=shares.float())

        return turn

    return DenseView(begin, whole=False)
