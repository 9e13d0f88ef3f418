"""Shares of a row, which every view shows in place of the weights."""

import torch
from jaxtyping import Float
from torch import Tensor


def share_rows(sizes: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head query key"]:
    """Divide each size by the sum of its row, in place; a row whose sum is 0 stays 0."""
    return sizes.div_(sizes.sum(-1, keepdim=True).clamp_min_(torch.finfo(sizes.dtype).tiny))
