"""The distances from query to key, in tokens, and their buckets."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.capture.model.block_sizes import BlockSizes

FAR = 1 << 30
"""A distance beyond any key."""

EDGES = tuple(2**power for power in range(13))
"""The default distances at which a bucket begins."""


def names(edges: tuple[int, ...]) -> tuple[int, ...]:
    """Return the names of the buckets in order: the distance nearest to the query, negative for keys before it.

    With the edges 1, 2, 4 the buckets are -4 and further, -3 to -2, -1, 0 (the token itself), 1, 2 to 3,
    4 and further.
    """
    return (*(-edge for edge in reversed(edges)), 0, *edges)


def bucket(distance: Int[Tensor, "..."], edges: tuple[int, ...]) -> Int[Tensor, "..."]:
    """Return the index of the bucket of each distance (key position minus query position), in the order of `names`."""
    rank = torch.bucketize(distance.abs(), torch.tensor(edges, device=distance.device), right=True)
    return len(edges) + distance.sign() * rank


@dataclass(frozen=True, eq=False)
class _Ruler:
    """The distances of a block of rows, which do not depend on the weights.

    Attributes:
        away: The absolute distance from each query to each key.
        last: The index of the last key up to the end of each bucket; 0 if there is no such key.
        empty: True if there is no such key.
    """

    away: Float[Tensor, "query key"]
    last: Int[Tensor, "query bucket"]
    empty: Bool[Tensor, "query bucket"]


Stretches = tuple[tuple[int, int], ...]
"""Ranges of keys in order, each as distances from the first query: of the first key, and of the key after the last."""


@dataclass(eq=False)
class Rulers:
    """The distances from the queries to the keys of a batch, and sums of weights by bucket of distance.

    Distances are kept while they need little memory, since every layer asks for the same blocks of rows.
    """

    _kept: dict[tuple[Stretches, int, int, tuple[int, ...]], _Ruler] = field(default_factory=dict)

    _borders: dict[tuple[tuple[int, ...], torch.device], Int[Tensor, " border"]] = field(default_factory=dict)

    def lay_borders(self, edges: tuple[int, ...], device: torch.device) -> Int[Tensor, " border"]:
        """Return the distances at which each bucket begins, and then the distance at which the last bucket ends."""
        if (edges, device) not in self._borders:
            borders = [-FAR, *(1 - edge for edge in reversed(edges)), *edges, FAR]
            self._borders[edges, device] = torch.tensor(borders, dtype=torch.int32, device=device)
        return self._borders[edges, device]

    def total(
        self, weights: Float[Tensor, "batch head query key"], keys: Stretches, edges: tuple[int, ...], step: int = 1
    ) -> Float[Tensor, "batch head query feature"]:
        """Sum the weights of each query in each bucket of distance; the last feature is the weighted sum of distances.

        Each query is `step` positions after the query before it. The buckets begin at `edges`.
        """
        block = (keys, weights.shape[2], step, edges)
        if block not in self._kept:
            if sum(ruler.away.numel() for ruler in self._kept.values()) > BlockSizes.measure(weights.device).kept:
                self._kept.clear()
            self._kept[block] = _lay_ruler(*block, weights.device)
        ruler = self._kept[block]
        # The sum of a bucket is the running sum at its last key minus the running sum at the end of the bucket before.
        up_to = weights.cumsum(-1).gather(3, ruler.last.expand(*weights.shape[:2], -1, -1))
        up_to.masked_fill_(ruler.empty, 0.0)
        mean: Tensor = torch.linalg.vecdot(weights, ruler.away)
        return torch.cat([torch.nn.functional.pad(up_to, (1, 0)).diff(), mean[..., None]], dim=-1)


def _lay_ruler(keys: Stretches, queries: int, step: int, edges: tuple[int, ...], device: torch.device) -> _Ruler:
    from_first = torch.cat([torch.arange(*stretch, device=device) for stretch in keys])
    distance = from_first - step * torch.arange(queries, device=device)[:, None]
    borders = torch.tensor([*(1 - edge for edge in reversed(edges)), *edges], device=device)
    inner = torch.searchsorted(distance, borders.expand(queries, -1).contiguous())
    ends = torch.nn.functional.pad(inner, (0, 1), value=distance.shape[1])
    return _Ruler(distance.abs().float(), (ends - 1).clamp_min(0), ends == 0)
