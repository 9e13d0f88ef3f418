"""Attention by a fused kernel, with the logarithm of each row's sum of exponentials."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from headscope.capture.model.block_sizes import BlockSizes

ALIGNED = 16
"""Products and kernels are fast if the width of the values is a multiple of this number."""

Attended = tuple[Float[Tensor, "batch head query size"], Float[Tensor, "batch head query"]]


def attend(
    query: Float[Tensor, "batch head query size"],
    key: Float[Tensor, "batch key_head key size"],
    values: Float[Tensor, "batch key_head key size"],
    *,
    scale: float,
    causal: bool = False,
    mask: Float[Tensor, "texts 1 rows key"] | None = None,
) -> Attended:
    """Return the average of `values` under ``softmax(scale * q . k + mask)``, and the log-sum-exp of the scores.

    If `causal` is True, query number n sees the keys up to number n.
    """
    if query.device.type == "cpu":
        output, log_sum = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            query, key, values, 0.0, causal, attn_mask=mask, scale=scale
        )
        return output, log_sum
    return in_blocks(query, key, values, scale=scale, causal=causal, mask=mask)


def in_blocks(
    query: Tensor, key: Tensor, values: Tensor, *, scale: float, causal: bool = False, mask: Tensor | None = None
) -> Attended:
    """Compute the result of `attend` on any device, by plain products of one block of rows at a time."""
    batch, heads, queries, _ = query.shape
    step = max(1, BlockSizes.measure(query.device).held // (batch * heads * key.shape[2]))
    parts = []
    for start in range(0, queries, step):
        rows = slice(start, min(start + step, queries))
        block = (query[:, :, rows], key, values, mask if mask is None or mask.shape[-2] == 1 else mask[:, :, rows])
        first = start if causal else None
        if torch.is_grad_enabled():
            # The backward pass computes the weights of a block again, so that only one block's weights exist at once.
            parts.append(checkpoint(_attend_in_block, *block, scale, first, use_reentrant=False))
        else:
            parts.append(_attend_in_block(*block, scale, first))
    output, log_sum = (torch.cat(side, dim=2) for side in zip(*parts, strict=True))
    return output, log_sum


def _attend_in_block(
    query: Tensor, key: Tensor, values: Tensor, mask: Tensor | None, scale: float, first: int | None
) -> Attended:
    """Compute the result of `attend` for a block of rows; for causal attention, `first` is the first row's number."""
    scores = products(query.float(), key.float()).mul_(scale)
    if mask is not None:
        scores = scores + mask
    if first is not None:
        columns, rows = (torch.arange(side.shape[2], device=key.device) for side in (key, query))
        scores = scores.masked_fill_(columns > first + rows[:, None], -torch.inf)
    log_sum = scores.logsumexp(-1)
    return average_values((scores - log_sum[..., None]).exp_().to(values.dtype), values), log_sum


def products(
    query: Float[Tensor, "batch head query size"], key: Float[Tensor, "batch key_head key size"]
) -> Float[Tensor, "batch head query key"]:
    """Return the dot product of each query with each key of its key head."""
    batch, heads, queries, size = query.shape
    grouped = query.reshape(batch, key.shape[1], heads // key.shape[1] * queries, size)
    return (grouped @ key.transpose(-1, -2)).view(batch, heads, queries, key.shape[2])


def average_values(
    weights: Float[Tensor, "batch head query key"], values: Float[Tensor, "batch key_head key width"]
) -> Float[Tensor, "batch head query width"]:
    """Return the sum of the values of each head's key/value head, weighted by the weights of the head."""
    batch, heads, queries, keys = weights.shape
    grouped = weights.reshape(batch, values.shape[1], heads // values.shape[1] * queries, keys)
    return (grouped @ values).view(batch, heads, queries, values.shape[-1])
