"""One pass over a layer's rows that computes all statistics of every row, and the layer's output.

The pass goes through short blocks of rows, some heads at a time, so that the weights of a block stay in a processor's
cache; they are not kept. One product of these weights gives the average of the values, and the average of columns that
say in which bucket of distance a key is. Most keys are far: every row of a block has them in the same bucket. About one
block of keys for each edge of a bucket is near: there rows differ, and buckets are found weight by weight.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from headscope.capture.model.block_sizes import BlockSizes
from headscope.capture.model.mask import Reach, count_rows
from headscope.capture.rows.kernel import ALIGNED, average_values
from headscope.capture.tokens import distance

NATS = math.log(2)
"""The nats in a bit. Scores are exponents of 2, since powers of 2 take half the time of powers of e."""

LOWEST = -1e30
"""The score of a hidden key: far below any other, but finite, so that rows with all keys hidden give no NaN."""


@dataclass(frozen=True, eq=False)
class Swept:
    """The statistics of every row, as one pass computes them.

    Attributes:
        log_sum: The logarithm of the sum of the exponentials of the row's scores. It is in float64, since a weight is
            the exponential of the difference of a score and this number.
        entropy: The entropy of the row's weights, in nats.
        features: The attention to each bucket of distance, and the mean distance (`headscope.capture.tokens.distance`).
        output: The average of the values; of width 0 without values.
        averages: The averages of columns, one tensor for each tensor of columns.
    """

    log_sum: Float64[Tensor, "batch head query"]
    entropy: Float[Tensor, "batch head query"]
    features: Float[Tensor, "batch head query feature"]
    output: Float[Tensor, "batch head query width"]
    averages: tuple[Float[Tensor, "batch head query _"], ...]


def sweep(
    query: Float[Tensor, "batch head query size"],
    key: Float[Tensor, "batch key_head key size"],
    value: Float[Tensor, "batch key_head key width"] | None,
    columns: Sequence[Float[Tensor, "batch key _"]] = (),
    *,
    scale: float,
    reach: Reach,
    first: int,
    edges: tuple[int, ...],
    rulers: distance.Rulers,
    sizes: BlockSizes,
) -> Swept:
    """Compute all statistics of every row in one pass; `first` is the distance from the first row to the first key."""
    batch, heads, queries, _ = query.shape
    together = _join_columns(key, value, columns)
    width, *widths = (each.shape[-1] for each in together)
    length = min(sizes.rows, max(BlockSizes.rows, sizes.swept // (batch * heads * key.shape[2])))
    blocks = [
        _Block.cut(slice(start, min(start + length, queries)), length, key.shape[2], reach, first, edges)
        for start in range(0, queries, length)
    ]
    swept = Swept(
        query.new_empty(batch, heads, queries, dtype=torch.float64),
        query.new_empty(batch, heads, queries),
        query.new_empty(batch, heads, queries, 2 * len(edges) + 2),
        # The order of axes in memory is that in which the layer uses its output.
        query.new_empty(batch, queries, heads, width).transpose(1, 2),
        torch.split(query.new_empty(batch, heads, queries, sum(widths)), widths, dim=-1),
    )
    kept, written = width + sum(widths), 1 + max(len(block.far) for block in blocks)
    most = max(block.seen.stop - block.seen.start for block in blocks) * batch * length
    room = min(max(sizes.swept, most), most * heads)
    run = _Sweep(
        query,
        key,
        scale / NATS,
        torch.nn.functional.pad(torch.cat(together, dim=-1), (0, written + -(kept + written) % ALIGNED)),
        kept,
        reach,
        edges,
        rulers,
        sizes.swept,
        (query.new_empty(room), query.new_empty(room)),
        swept,
    )
    for block in blocks:
        run.answer(block)
    return swept


def _join_columns(
    key: Float[Tensor, "batch key_head key size"],
    value: Float[Tensor, "batch key_head key width"] | None,
    columns: Sequence[Float[Tensor, "batch key _"]],
) -> list[Float[Tensor, "batch key_head key _"]]:
    """List the tensors that a pass averages: the values (of width 0 without any), and the columns for each key head."""
    values = key[..., :0] if value is None else value
    return [values, *(each.float()[:, None].expand(-1, key.shape[1], -1, -1) for each in columns)]


@dataclass(frozen=True)
class _Block:
    """A block of rows, and the keys that it sees.

    Attributes:
        rows: The rows.
        seen: The range of keys that any of the rows sees.
        near: The ranges of keys near a cut, where the rows of the block lie on both sides of it. A cut is a distance
            from which on keys are in another bucket, or are hidden.
        far: The ranges of the other keys.
        first: The distance from the first row to the first of all keys.
    """

    rows: slice
    seen: slice
    near: tuple[slice, ...]
    far: tuple[slice, ...]
    first: int

    @classmethod
    def cut(cls, rows: slice, length: int, keys: int, reach: Reach, first: int, edges: tuple[int, ...]) -> "_Block":
        """Return the block of the query rows `rows`, with its near and far ranges of keys.

        `length` is the most rows of a block, and `keys` the number of keys. The other arguments are as in `sweep`.
        """
        seen = reach.keys(rows, keys)
        # Cuts at 0 and 1 keep the rows' own keys out of the far ranges, since distances count in both directions.
        cuts = [0, 1, *(cut for edge in edges for cut in (edge, 1 - edge))]
        # A distance is the difference of positions plus `first`.
        cuts += [] if reach.before is None else [first - reach.before]
        cuts += [] if reach.after is None else [first + reach.after + 1]
        near: list[slice] = []
        for cut in sorted(cuts):
            # The range begins where the distances of the first row pass the cut, and ends where the last row's do.
            start = max(cut - first + rows.start, seen.start)
            stop = min(cut - first + rows.stop, seen.stop)
            if stop <= start:
                continue
            if near and start - near[-1].stop < length:
                near[-1] = slice(near[-1].start, max(stop, near[-1].stop))
            else:
                near.append(slice(start, stop))
        borders = [seen.start, *(border for part in near for border in (part.start, part.stop)), seen.stop]
        pairs = zip(borders[::2], borders[1::2], strict=True)
        far = tuple(slice(start, stop) for start, stop in pairs if stop > start)
        return cls(rows, seen, tuple(near), far, first - rows.start)

    @property
    def count(self) -> int:
        """The number of rows."""
        return count_rows(self.rows)


@dataclass(frozen=True, eq=False)
class _Sweep:
    """The inputs, the working memory and the results of a pass over all rows.

    Attributes:
        query, key: The queries and keys.
        scale: The factor of their products.
        values: The values and columns to average; after them come columns that each block writes.
        kept: The number of values and columns that no block writes.
        reach, edges, rulers: As in `sweep`.
        most: The most weights that exist at once, but at least the weights of one head of each text.
        rooms: The memory for the scores and the weights of a block; allocating it for each block would take long.
        swept: The statistics, which are written block by block.
    """

    query: Float[Tensor, "batch head query size"]
    key: Float[Tensor, "batch key_head key size"]
    scale: float
    values: Float[Tensor, "batch key_head key width"]
    kept: int
    reach: Reach
    edges: tuple[int, ...]
    rulers: distance.Rulers
    most: int
    rooms: tuple[Float[Tensor, " weight"], Float[Tensor, " weight"]]
    swept: Swept

    def answer(self, block: _Block) -> None:
        """Compute the statistics of a block of rows, and write them to `swept`."""
        column_features = self._write_columns(block)
        for heads in self._split_heads(block):
            self._answer_for_heads(block, heads, column_features)

    def _answer_for_heads(self, block: _Block, heads: slice, column_features: Float[Tensor, "column feature"]) -> None:
        """Compute the statistics of a block for heads of one key head, or for all heads of several key heads."""
        rows, groups = block.rows, self.query.shape[1] // self.key.shape[1]
        key_heads = slice(heads.start // groups, -(-heads.stop // groups))
        scores, weights = self._score(block, self.query[:, heads, rows], self.key[:, key_heads, block.seen])
        peak = scores.amax(-1)
        torch.exp2(scores.sub_(peak[..., None]), out=weights)
        mass = weights.sum(-1)
        # This is -sum_k a_k ln a_k, where ln a_k is the score minus the peak, minus the logarithm of the sum.
        log_mass = mass.double().log()
        self.swept.log_sum[:, heads, rows] = log_mass.add(peak.double(), alpha=NATS)
        self.swept.entropy[:, heads, rows] = log_mass.sub(scores.mul_(weights).sum(-1) / mass, alpha=NATS)
        averages = average_values(weights, self.values[:, key_heads, block.seen]).div_(mass[..., None])
        features = self._add_features(block, averages[..., self.kept :] @ column_features)
        if block.near:
            features += self._measure_near(block, weights) / mass[..., None]
        self.swept.features[:, heads, rows] = features
        answers = (self.swept.output, *self.swept.averages)
        widths = [answer.shape[-1] for answer in answers]
        for answer, average in zip(answers, torch.split(averages[..., : self.kept], widths, dim=-1), strict=True):
            answer[:, heads, rows] = average

    def _score(
        self,
        block: _Block,
        query: Float[Tensor, "batch head row size"],
        key: Float[Tensor, "batch key_head seen size"],
    ) -> tuple[Float[Tensor, "batch head row seen"], Float[Tensor, "batch head row seen"]]:
        """Compute the scores of a block; return them and memory for its weights. The next block overwrites both."""
        size = (*query.shape[:3], key.shape[2])
        scores, weights = (room[: math.prod(size)].view(size) for room in self.rooms)
        by_key_head = (len(query) * key.shape[1], -1)
        torch.baddbmm(
            query.new_zeros(()),
            query.reshape(*by_key_head, query.shape[-1]),
            key.flatten(0, 1).transpose(-1, -2),
            beta=0,
            alpha=self.scale,
            out=scores.view(*by_key_head, key.shape[2]),
        )
        self._hide(scores, block)
        return scores, weights

    def _add_features(
        self, block: _Block, features: Float[Tensor, "batch head row _"]
    ) -> Float[Tensor, "batch head row feature"]:
        """Return the features of far keys, from the averages of the columns that `_write_columns` wrote.

        `features` has the features and, as the last entry, the change of the mean distance from row to row.
        """
        # Later rows are further from keys before the block, and nearer to keys after it.
        later = torch.arange(block.count, device=features.device)
        features[..., -2] += later * features[..., -1]
        return features[..., :-1]

    def _measure_near(
        self, block: _Block, weights: Float[Tensor, "batch head row seen"]
    ) -> Float[Tensor, "batch head row feature"]:
        """Return the features of near keys, computed weight by weight."""
        first = block.seen.start
        close = torch.cat([weights[..., part.start - first : part.stop - first] for part in block.near], dim=-1)
        stretches = tuple((block.first + part.start, block.first + part.stop) for part in block.near)
        return self.rulers.total(close, stretches, self.edges)

    def _split_heads(self, block: _Block) -> Iterator[slice]:
        """Yield the heads to compute together: all heads of some key heads, or an equal part of one key head's."""
        heads, groups = self.query.shape[1], self.query.shape[1] // self.key.shape[1]
        weights = len(self.query) * block.count * (block.seen.stop - block.seen.start)
        most = max(1, self.most // weights)
        step = most - most % groups or max(part for part in range(1, most + 1) if groups % part == 0)
        for start in range(0, heads, step):
            yield slice(start, min(start + step, heads))

    def _hide(self, scores: Float[Tensor, "batch head row key"], block: _Block) -> None:
        """Set the scores of keys that a row does not see to `LOWEST`."""
        rows, seen, reach = block.rows, block.seen, self.reach
        parts = []
        if reach.before is not None:
            parts.append(slice(seen.start, min(rows.stop - 1 - reach.before, seen.stop)))
        if reach.after is not None:
            parts.append(slice(max(rows.start + reach.after + 1, seen.start), seen.stop))
        for part in (part for part in parts if part.stop > part.start):
            places, keys = (torch.arange(each.start, each.stop, device=scores.device) for each in (rows, part))
            hidden = ~reach.within(keys - places[:, None])
            scores[..., part.start - seen.start : part.stop - seen.start].masked_fill_(hidden, LOWEST)
        if reach.hidden is not None:
            scores.masked_fill_(reach.hidden[:, None, None, seen], LOWEST)

    def _write_columns(self, block: _Block) -> Float[Tensor, "column feature"]:
        """Append columns to the values, so that one product also sums the attention to ranges of far keys.

        A column is 1 for the keys of its range and 0 for others. The last column has the distances of the far keys.

        Returns:
            The weight of each column in each feature. The last feature is 1 if the distances of a range grow from row
            to row, -1 if they shrink, and 0 for the column of distances.
        """
        columns = self.values[:, :, block.seen, self.kept :]
        device, width = columns.device, columns.shape[-1]
        parts = sorted([*block.near, *block.far], key=lambda part: part.start)
        places = [block.far.index(part) if part in block.far else -1 for part in parts]
        lengths = torch.tensor([part.stop - part.start for part in parts], device=device)
        # The index of the far range that each key is in; -1 for near keys.
        stretch = torch.tensor(places, dtype=torch.int16, device=device)
        stretch = stretch.repeat_interleave(lengths, output_size=block.seen.stop - block.seen.start)
        away = torch.arange(block.first + block.seen.start, block.first + block.seen.stop, device=device).float()
        same = (stretch[:, None] == torch.arange(width, dtype=torch.int16, device=device)).float()
        same[:, -1] = away.abs_().mul_(stretch >= 0)
        columns.copy_(same)
        features = columns.new_zeros(width, 2 * len(self.edges) + 3)
        far = torch.arange(len(block.far), device=device)
        first = torch.tensor([block.first + part.start for part in block.far], dtype=torch.long, device=device)
        features[far, distance.bucket(first, self.edges)] = 1
        features[far, -1] = 1 - 2 * (first >= 0).float()
        features[-1, -2] = 1
        return features
