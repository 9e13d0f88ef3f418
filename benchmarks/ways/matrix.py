"""The statistics of attention matrices, in torch: for the ways that hold the matrix.

A block of query rows at a time, small enough for a processor's cache, which is several times faster than whole
matrices and needs no second one of their size.
"""

from collections.abc import Iterable

import numpy as np
import torch
from shapes import Text
from torch import Tensor

BLOCK_WEIGHTS = 1 << 20
"""Attention weights of a block (4 MiB)."""

EDGES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""The nearest distance of each bucket; a query's own place is a bucket too, and the last is open."""


def statistics(layers: Iterable[Tensor], text: Text) -> dict[str, np.ndarray]:
    """Every statistic of every layer and head; `layers` are matrices with the axes head, query, key."""
    by_layer = [of_layer(weights, text) for weights in layers]
    return {name: np.stack([layer[name] for layer in by_layer]) for name in by_layer[0]}


def of_layer(weights: Tensor, text: Text) -> dict[str, np.ndarray]:
    """Every statistic of one layer; `weights` have the axes head, query, key, and a statistic has head first."""
    heads, length, _ = weights.shape
    first = torch.arange(length) == 0
    columns = torch.stack([text.cls, text.sep, text.punctuation, first], dim=-1).float()
    blocks = torch.arange(length).split(max(1, BLOCK_WEIGHTS // (heads * length)))
    # The statistics of each query come first, and their means last: they are small beside the matrix.
    rows = [_of_rows(weights[:, queries[0] : queries[-1] + 1], queries, columns) for queries in blocks]
    mass, near, entropy, distance, buckets = (torch.cat(parts, dim=1).double() for parts in zip(*rows, strict=True))
    cls, sep, punctuation, first_key = mass.unbind(-1)
    every = torch.ones(length, dtype=torch.bool)
    uniform = torch.from_numpy(np.log(text.allowed())).expand(heads, -1)
    values = {
        "mass_self": near[:, :, 1].mean(1),
        "mass_previous": near[:, 1:, 0].mean(1),
        "mass_next": near[:, :-1, 2].mean(1),
        "mass_cls": _mean(cls, every & text.cls.any()),
        "mass_sep": _mean(sep, every & text.sep.any()),
        "mass_sep_from_sep": _mean(sep, text.sep),
        "mass_sep_from_other": _mean(sep, ~text.sep & text.sep.any()),
        "mass_punctuation": punctuation.mean(1),
        "mass_first": first_key.mean(1),
        "entropy": entropy.mean(1),
        "entropy_from_cls": _mean(entropy, text.cls),
        "entropy_uniform": uniform.mean(1),
        "mean_distance": distance.mean(1),
        "mass_distance": buckets.mean(1),
    }
    return {name: value.numpy() for name, value in values.items()}


def _of_rows(weights: Tensor, queries: Tensor, columns: Tensor) -> tuple[Tensor, ...]:
    """The attention of the queries of a block of rows: columns, neighbours, entropy, distance, buckets of distance."""
    keys = weights.shape[-1]
    distance = torch.arange(keys) - queries[:, None]
    upto = weights.cumsum(-1)
    # A bucket is what is summed up to its last key, less what is summed up to the key before its first.
    starts = torch.tensor([-keys, *(1 - edge for edge in EDGES[:0:-1]), 0, *EDGES, keys])
    ends = (queries[:, None] + starts).clamp(0, keys)
    summed = _at(upto, (ends - 1).clamp_min(0)) * (ends > 0)
    tiny = torch.finfo(weights.dtype).tiny
    return (
        weights @ columns,
        _at(weights, (queries[:, None] + torch.tensor([-1, 0, 1])).clamp(0, keys - 1)),
        -torch.linalg.vecdot(weights, weights.clamp_min(tiny).log_()),
        torch.linalg.vecdot(weights, distance.abs().float()),
        summed.diff(dim=-1),
    )


def _at(rows: Tensor, keys: Tensor) -> Tensor:
    return rows.gather(-1, keys.expand(len(rows), -1, -1))


def _mean(values: Tensor, queries: Tensor) -> Tensor:
    """The mean over some queries; NaN if there are none."""
    return values[:, queries].mean(1)
