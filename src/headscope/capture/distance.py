"""How far attention reaches: distances from query to key, in tokens, and their buckets."""

from functools import lru_cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

EDGES = tuple(2**power for power in range(13))
"""Distances at which a bucket begins, if nobody asks for others."""


def names(edges: tuple[int, ...]) -> tuple[int, ...]:
    """The buckets in order, each by its distance nearest to the query; keys before the query are negative.

    With the edges 1, 2, 4 the buckets are -4 and further, -3 to -2, -1, 0 (the token itself), 1, 2 to 3,
    4 and further.
    """
    return (*(-edge for edge in reversed(edges)), 0, *edges)


def bucket(distance: Int[Tensor, "..."], edges: tuple[int, ...]) -> Int[Tensor, "..."]:
    """The place of each distance (key minus query) among `names`."""
    rank = torch.bucketize(distance.abs(), torch.tensor(edges, device=distance.device), right=True)
    return len(edges) + distance.sign() * rank


def total(
    weights: Float[Tensor, "batch head query key"], keys: tuple[tuple[int, int], ...], edges: tuple[int, ...]
) -> Float[Tensor, "batch head query feature"]:
    """The weight of each query's keys in each bucket of distance; last, their distances, weighted and added up.

    Args:
        weights: of queries that follow each other.
        keys: the keys in order, in stretches: the distance from the first query to a stretch's first key and past
            its last.
        edges: of the buckets.
    """
    distance = _distances(keys, weights.shape[2], weights.device)
    ends = _ends(keys, weights.shape[2], edges, weights.device)
    # A bucket is what adds up to its last key, less what adds up to the one before its first.
    up_to = weights.cumsum(-1).gather(3, (ends - 1).clamp_min(0).expand(*weights.shape[:2], -1, -1))
    up_to.masked_fill_(ends == 0, 0.0)
    mean: Tensor = torch.linalg.vecdot(weights, distance.abs().float())
    return torch.cat([up_to.diff(dim=-1, prepend=torch.zeros_like(up_to[..., :1])), mean[..., None]], dim=-1)


def _distances(keys: tuple[tuple[int, int], ...], queries: int, device: torch.device) -> Int[Tensor, "query key"]:
    from_first = torch.cat([torch.arange(*stretch, device=device) for stretch in keys])
    return from_first - torch.arange(queries, device=device)[:, None]


@lru_cache(maxsize=8)
def _ends(
    keys: tuple[tuple[int, int], ...], queries: int, edges: tuple[int, ...], device: torch.device
) -> Int[Tensor, "query bucket"]:
    """For each query the number of keys up to the end of each bucket."""
    distance = _distances(keys, queries, device)
    borders = torch.tensor([*(1 - edge for edge in reversed(edges)), *edges], device=device)
    inner = torch.searchsorted(distance, borders.expand(queries, -1).contiguous())
    return torch.nn.functional.pad(inner, (0, 1), value=distance.shape[1])
