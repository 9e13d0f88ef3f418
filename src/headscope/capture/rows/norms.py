"""The norm view: how much of what a head adds to a token comes from each token (Kobayashi et al. 2020, section 3).

A head adds ``sum_j a[i, j] * (v[j] @ W)`` to token i, where W is its part of the output projection. The norm of what
flows there from token j is ``||a[i, j] * (v[j] @ W)|| = a[i, j] * ||v[j] @ W||``: the weight, times a factor that
depends on the key and the head alone. The shares of these norms in the sum of their row are weights again, so they are
averaged, counted and compared as those of attention are, with the matrix or without it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.capture.rows.shares import share_rows


@dataclass(frozen=True, eq=False)
class Norms:
    """The norms of the values of each head behind the output projection.

    Attributes:
        projections: of each layer, by attention type and number, for each query head a matrix that leaves vectors as
            long as its part of the output projection does.
    """

    projections: Mapping[tuple[str, int], Float[Tensor, "head width size"]]

    def measure(
        self,
        attention_type: str,
        layer: int,
        values: Float[Tensor, "batch key_head key width"],
        real: Bool[Tensor, "batch key"],
    ) -> Float[Tensor, "batch head key"]:
        """``||v[j] @ W||`` by query head; in float32; 1 for padding, which may hold anything."""
        projection = self.projections[attention_type, layer].to(values.dtype)
        heads = values.repeat_interleave(len(projection) // values.shape[1], dim=1)
        norms: Tensor = torch.linalg.vector_norm(heads @ projection, dim=-1)
        return norms.float().masked_fill_(~real[:, None], 1.0)


def make_shares(
    weights: Float[Tensor, "batch head query key"], norms: Float[Tensor, "batch head key"]
) -> Float[Tensor, "batch head query key"]:
    """The weights times the norms of their keys, as shares of the sum of each row; 0 where that is 0."""
    return share_rows(weights * norms[:, :, None])
