"""One pass over a layer's rows that answers all that a fused kernel can answer.

Rows go by in short blocks. For a block most keys are far: every row sees them, and has them in the
same bucket of distance as every other row. Of these the kernel averages, in one call a side, the keys
themselves and beside them a column for each bucket. The other keys, about one block for each edge
of a bucket or of the mask, are near, and are worked out weight by weight. Each part knows the
log-sum-exp of its own scores; together they give that of the row, and with it each part's share.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.capture import distance
from headscope.capture.kernel import attend, products
from headscope.capture.mask import Reach

ROWS = 64
"""Rows of a block. More make more keys near; with fewer the kernel is slower."""

LOWEST = -1e30
"""The score of a hidden key: far below any other, and finite, so that nothing is NaN where all are hidden."""

ALIGNED = 16
"""The kernel is fast where the width of its values is a multiple of this."""


@dataclass(frozen=True, eq=False)
class Swept:
    """The answers of a pass for every row.

    Attributes:
        log_sum: the logarithm of the sum of the exponentials of its scores.
        entropy: of its weights, in nats.
        features: the mass in each bucket of distance, and the mean distance (`headscope.capture.distance`).
    """

    log_sum: Float[Tensor, "batch head query"]
    entropy: Float[Tensor, "batch head query"]
    features: Float[Tensor, "batch head query feature"]


def sweep(
    query: Float[Tensor, "batch head query size"],
    key: Float[Tensor, "batch key_head key size"],
    *,
    scale: float,
    reach: Reach,
    first: int,
    edges: tuple[int, ...],
    rulers: distance.Rulers,
) -> Swept:
    """The pass over all rows, of which the first is at the distance `first` from the first key."""
    size, columns = query.shape[-1], 2 + sum(edge >= ROWS for edge in edges)
    width = -(-(size + columns) // ALIGNED) * ALIGNED
    # The kernel wants queries and keys as wide as values; zeros add nothing to a dot product.
    wide_query, wide_key = (torch.nn.functional.pad(side, (0, width - size)) for side in (scale * query, key))
    run = _Sweep(wide_query, wide_key, wide_key.clone(), size, reach, first, edges, rulers)
    starts = range(0, query.shape[2], ROWS)
    blocks = [run.block(slice(start, min(start + ROWS, query.shape[2]))) for start in starts]
    return Swept(*(torch.cat(parts, dim=2) for parts in zip(*blocks, strict=True)))


@dataclass(frozen=True, eq=False)
class _Sweep:
    """The tensors of a pass: scaled queries; behind the keys, `values` has columns that each block writes."""

    query: Float[Tensor, "batch head query width"]
    key: Float[Tensor, "batch key_head key width"]
    values: Float[Tensor, "batch key_head key width"]
    size: int
    reach: Reach
    first: int
    edges: tuple[int, ...]
    rulers: distance.Rulers

    def block(self, rows: slice) -> tuple[Tensor, Tensor, Tensor]:
        """The log-sum-exp, entropy and features of a block of rows."""
        first = self.first - rows.start  # the distance from the first row to the first key
        near, far = self._stretches(rows, first)
        before = [part for part in far if first + part.start < 0]
        sides = [side for side in (before, far[len(before) :]) if side]
        by_kernel = [self._by_kernel(rows, side, first) for side in sides]

        places = torch.cat([torch.arange(part.start, part.stop, device=self.key.device) for part in near])
        scores = products(self.query[:, :, rows, : self.size], self.key[:, :, places, : self.size])
        shown = self.reach.sees(torch.arange(rows.start, rows.stop, device=self.key.device), places)
        scores.masked_fill_(~shown[:, None], LOWEST)
        peak = scores.amax(-1)
        weights = scores.sub_(peak[..., None]).exp()
        # Near keys between far ones were before the kernel too: all that is wanted of them is their distance.
        alone = torch.ones_like(places, dtype=torch.float32)
        for side in sides:
            alone[(places >= side[0].start) & (places < side[-1].stop)] = 0
        mass = weights @ alone
        log_sum = torch.stack([peak + mass.log(), *(part_sum for part_sum, _, _ in by_kernel)]).logsumexp(0)
        # A row's entropy is the sum over its parts of share * (log_sum - mean score).
        above = (peak - log_sum).clamp_min(LOWEST / 2)
        share = above.exp()
        entropy: Tensor = -share * (torch.linalg.vecdot(weights, scores.mul_(alone)) + above * mass)
        stretches = tuple((first + part.start, first + part.stop) for part in near)
        features = share[..., None] * self.rulers.total(weights, stretches, self.edges)
        for part_sum, mean_score, columns in by_kernel:
            share = (part_sum - log_sum).exp_()
            entropy = entropy + share * (log_sum - mean_score)
            features = features + share[..., None] * columns
        return log_sum, entropy, features

    def _stretches(self, rows: slice, first: int) -> tuple[list[slice], list[slice]]:
        """The keys that a block's rows see: those near a cut, on either side of which the rows are, and the others.

        A cut is a distance from which on keys are in another bucket, or are hidden.
        """
        seen = self.reach.keys(rows, self.key.shape[2])
        shift = first + rows.start  # what a distance has over a difference of places
        cuts = [cut for edge in self.edges for cut in (edge, 1 - edge)]
        cuts += [] if self.reach.before is None else [shift - self.reach.before]
        cuts += [] if self.reach.after is None else [shift + self.reach.after + 1]
        near: list[slice] = []
        for cut in sorted(cuts):
            # From the key at which the first row's distances pass the cut to the one at which the last row's do.
            start, stop = max(cut - first, seen.start), min(cut - first + rows.stop - rows.start, seen.stop)
            if stop <= start:
                continue
            if near and start - near[-1].stop < ROWS:
                near[-1] = slice(near[-1].start, max(stop, near[-1].stop))
            else:
                near.append(slice(start, stop))
        borders = [seen.start, *(border for part in near for border in (part.start, part.stop)), seen.stop]
        pairs = zip(borders[::2], borders[1::2], strict=True)
        return near, [slice(start, stop) for start, stop in pairs if stop > start]

    def _by_kernel(self, rows: slice, side: list[slice], first: int) -> tuple[Tensor, Tensor, Tensor]:
        """The log-sum-exp and mean score of the keys from the first of these far ones to the last, and the features.

        Near keys in between are in the sum and in the mean, but not in the features.
        """
        keys, last = slice(side[0].start, side[-1].stop), self.size + len(side)
        away = (first + torch.arange(keys.start, keys.stop, device=self.key.device)).abs().float()
        self.values[:, :, keys, self.size :] = 0
        for index, part in enumerate(side):
            self.values[:, :, part, self.size + index] = 1
            self.values[:, :, part, last] = away[part.start - keys.start : part.stop - keys.start]
        average, log_sum = attend(
            self.query[:, :, rows],
            self.key[:, :, keys],
            self.values[:, :, keys],
            scale=1.0,
            mask=self.reach.hiding(keys, rows.stop - rows.start, torch.float32),
        )
        masses, distances = average[..., self.size : last], average[..., last]
        features = average.new_zeros(*average.shape[:-1], 2 * len(self.edges) + 2)
        firsts = torch.tensor([first + part.start for part in side], device=self.key.device)
        features[..., distance.bucket(firsts, self.edges)] = masses
        # Later rows are further from what stands before the block, and nearer to what stands after it.
        later = torch.arange(rows.stop - rows.start, device=self.key.device) * (1 if first + keys.start < 0 else -1)
        features[..., -1] = distances + later * masses.sum(-1)
        mean_score: Tensor = torch.linalg.vecdot(self.query[:, :, rows, : self.size], average[..., : self.size])
        return log_sum, mean_score, features
