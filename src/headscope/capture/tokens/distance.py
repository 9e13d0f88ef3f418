"""How far attention reaches: distances from query to key, in tokens, and their buckets."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.capture.model.block_sizes import BlockSizes

FAR = 1 << 30
"""Further than any key."""

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


@dataclass(frozen=True, eq=False)
class _Ruler:
    """The distances of a block of rows, the same whatever the weights.

    Attributes:
        away: the distance from each query to each key, either way.
        last: the place of the last key up to the end of each bucket; 0 where there is none.
        empty: true where there is none.
    """

    away: Float[Tensor, "query key"]
    last: Int[Tensor, "query bucket"]
    empty: Bool[Tensor, "query bucket"]


Stretches = tuple[tuple[int, int], ...]
"""Keys in order: the distance from the first of some queries to each stretch's first key and past its last."""


@dataclass(eq=False)
class Rulers:
    """The rulers of a batch: every layer asks for the same blocks of rows, which are kept while they are small."""

    _kept: dict[tuple[Stretches, int, int, tuple[int, ...]], _Ruler] = field(default_factory=dict)

    _borders: dict[tuple[tuple[int, ...], torch.device], Int[Tensor, " border"]] = field(default_factory=dict)

    def lay_borders(self, edges: tuple[int, ...], device: torch.device) -> Int[Tensor, " border"]:
        """Return the distances at which each bucket begins, and behind them the one at which the last ends."""
        if (edges, device) not in self._borders:
            borders = [-FAR, *(1 - edge for edge in reversed(edges)), *edges, FAR]
            self._borders[edges, device] = torch.tensor(borders, dtype=torch.int32, device=device)
        return self._borders[edges, device]

    def total(
        self, weights: Float[Tensor, "batch head query key"], keys: Stretches, edges: tuple[int, ...], step: int = 1
    ) -> Float[Tensor, "batch head query feature"]:
        """The weight of each query's keys in each bucket of distance; last, their distances, weighted and added up.

        Each query stands `step` places behind the one before, and the buckets begin at the edges.
        """
        block = (keys, weights.shape[2], step, edges)
        if block not in self._kept:
            if sum(ruler.away.numel() for ruler in self._kept.values()) > BlockSizes.measure(weights.device).kept:
                self._kept.clear()
            self._kept[block] = _lay_ruler(*block, weights.device)
        ruler = self._kept[block]
        # A bucket is what adds up to its last key, less what adds up to the one before its first.
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
