"""The norm view: the share of each token in the vector that a head adds to a token (Kobayashi et al. 2020, section 3).

A head adds ``sum_j a[i, j] * (v[j] @ W)`` to token i, where W is its part of the output projection. The norm of the
part from token j is ``||a[i, j] * (v[j] @ W)|| = a[i, j] * ||v[j] @ W||``: the weight, times a factor that depends only
on the key and the head. As shares of the sum of their row, these norms are weights again. They are averaged, counted
and compared like attention weights, with the matrix or without it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.capture.rows.shares import share_rows


@dataclass(frozen=True, eq=False)
class Norms:
    """A measure of the norms of each head's values after the output projection.

    Attributes:
        projections: A matrix for each query head, by attention type and number of the layer. It gives vectors the same
            length as the head's part of the output projection does.
    """

    projections: Mapping[tuple[str, int], Float[Tensor, "head width size"]]

    def measure(
        self,
        attention_type: str,
        layer: int,
        values: Float[Tensor, "batch key_head key width"],
        real: Bool[Tensor, "batch key"],
    ) -> Float[Tensor, "batch head key"]:
        """Return ``||v[j] @ W||`` by query head, in float32; 1 for padding, which may hold any numbers."""
        projection = self.projections[attention_type, layer].to(values.dtype)
        heads = values.repeat_interleave(len(projection) // values.shape[1], dim=1)
        norms: Tensor = torch.linalg.vector_norm(heads @ projection, dim=-1)
        return norms.float().masked_fill_(~real[:, None], 1.0)


def make_shares(
    weights: Float[Tensor, "batch head query key"], norms: Float[Tensor, "batch head key"]
) -> Float[Tensor, "batch head query key"]:
    """Multiply weights by the norms of their keys, and return them as shares of each row's sum; 0 if the sum is 0."""
    return share_rows(weights * norms[:, :, None])
