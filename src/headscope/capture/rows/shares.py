"""Shares of a row: what every view shows in place of the weights, which are shares themselves."""

import torch
from jaxtyping import Float
from torch import Tensor


def share_rows(sizes: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head query key"]:
    """Each size as a share of the sum of its row, 0 where that is 0; the sizes themselves are overwritten."""
    return sizes.div_(sizes.sum(-1, keepdim=True).clamp_min_(torch.finfo(sizes.dtype).tiny))
