"""The pass of `headscope.capture.rows.sweep` as one kernel for GPUs, in Triton, which comes with torch for GPUs.

Each program has a block of rows of one head, and goes over the keys that they see, a block at a time. No score leaves
it: the sums so far are those under the largest score so far, and shrink when that grows, as in Dao et al. (2022),
"FlashAttention", section 3.1. So do the sums of the other answers: the scores below the peak, for the entropy; the
distances; and the mass in each bucket, which is that of a whole block of keys where all of it is in one bucket, and is
added up weight by weight elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from subprocess import CalledProcessError
from typing import no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Float64
from torch import Tensor
from triton.errors import TritonError

from headscope.capture.model.mask import Reach
from headscope.capture.rows.kernel import Attended
from headscope.capture.rows.sweep import LOWEST, NATS, Swept, join_columns

FAILURES = (TritonError, RuntimeError, OSError, CalledProcessError)
"""What is raised where the kernel cannot run: for an unknown GPU, too little room on it, a compiler that is missing."""

ROWS, KEYS = 32, 32
"""Rows and keys of a block. With more, a program's numbers no longer fit into the registers."""

WIDTH = 64
"""Columns of values that a program averages; the next ones are for another program, which finds the weights anew."""

STAGES = 2
"""Blocks of keys that are in a program's memory at once: while one is worked on, the next is fetched."""

SMALLEST = 16
"""No side of a product may be shorter."""

FAR = 1 << 30
"""Further than any key."""


@triton.jit
@no_type_check  # its arguments are what Triton makes of them
def _sweep(
    query, key, values, hidden, borders, averages, peaks, masses, spreads, features,
    heads, groups, queries, keys, width, scale, before, after, first,
    buckets: tl.constexpr, has_hidden: tl.constexpr, lowest: tl.constexpr, size: tl.constexpr,
    size_padded: tl.constexpr, buckets_padded: tl.constexpr, rows_block: tl.constexpr, keys_block: tl.constexpr,
    width_block: tl.constexpr,
):  # fmt: skip
    """Tensors lie in memory without gaps. `features` are the masses in buckets, and last the mean distance."""
    row_start, pair, part = tl.program_id(0) * rows_block, tl.program_id(1), tl.program_id(2)
    text, key_pair = pair // heads, pair // groups
    row, column = row_start + tl.arange(0, rows_block), part * width_block + tl.arange(0, width_block)
    place, bucket = tl.arange(0, size_padded), tl.arange(0, buckets_padded)
    within = (row < queries)[:, None]
    query_block = tl.load(
        query + (pair.to(tl.int64) * queries + row[:, None]) * size + place, mask=within & (place < size), other=0.0
    )
    peak = tl.full([rows_block], lowest, tl.float32)
    mass, spread, away = peak * 0, peak * 0, peak * 0
    average = tl.zeros([rows_block, width_block], tl.float32)
    in_buckets = tl.zeros([rows_block, buckets_padded], tl.float32)
    cut = tl.load(borders + bucket + 1, mask=bucket < buckets - 1, other=1 << 30)
    last_row = tl.minimum(row_start + rows_block, queries) - 1
    start = tl.maximum(row_start - before, 0) // keys_block * keys_block
    for key_start in range(start, tl.minimum(last_row + after + 1, keys), keys_block):
        seen = key_start + tl.arange(0, keys_block)
        key_rows = key_pair.to(tl.int64) * keys + seen
        key_block = tl.load(
            key + key_rows[:, None] * size + place, mask=(seen < keys)[:, None] & (place < size), other=0.0
        )
        scores = tl.dot(query_block, tl.trans(key_block), input_precision="ieee") * scale
        apart = seen[None, :] - row[:, None]
        visible = (seen < keys)[None, :] & (apart >= -before) & (apart <= after)
        if has_hidden:
            covered = tl.load(hidden + text.to(tl.int64) * keys + seen, mask=seen < keys, other=1)
            visible = visible & (covered == 0)[None, :]
        scores = tl.where(visible, scores, lowest)
        higher = tl.maximum(peak, tl.max(scores, 1))
        shrunk, below = tl.exp2(peak - higher), scores - higher[:, None]
        weights = tl.exp2(below)
        here = tl.sum(weights, 1)
        # What was below the old peak is as much further below the new one.
        spread = shrunk * (spread + (peak - higher) * mass) + tl.sum(weights * below, 1)
        mass, peak = shrunk * mass + here, higher
        value_block = tl.load(
            values + key_rows[:, None] * width + column, mask=(seen < keys)[:, None] & (column < width), other=0.0
        )
        average = shrunk[:, None] * average + tl.dot(weights, value_block, input_precision="ieee")
        if part == 0:
            distance = apart + first
            away = shrunk * away + tl.sum(weights * tl.abs(distance).to(tl.float32), 1)
            nearest, furthest = key_start + first - last_row, key_start + keys_block - 1 + first - row_start
            lower, upper = tl.sum((cut <= nearest).to(tl.int32)), tl.sum((cut <= furthest).to(tl.int32))
            in_buckets = shrunk[:, None] * in_buckets
            if lower == upper:
                in_buckets += tl.where(bucket[None, :] == lower, here[:, None], 0.0)
            else:
                for number in range(lower, upper + 1):
                    held = (distance >= tl.load(borders + number)) & (distance < tl.load(borders + number + 1))
                    held_mass = tl.sum(tl.where(held, weights, 0.0), 1)
                    in_buckets += tl.where(bucket[None, :] == number, held_mass[:, None], 0.0)
    rows = pair.to(tl.int64) * queries + row
    tl.store(averages + rows[:, None] * width + column, average / mass[:, None], mask=within & (column < width))
    if part == 0:
        tl.store(peaks + rows, peak, mask=row < queries)
        tl.store(masses + rows, mass, mask=row < queries)
        tl.store(spreads + rows, spread, mask=row < queries)
        tl.store(
            features + rows[:, None] * (buckets + 1) + bucket, in_buckets / mass[:, None],
            mask=within & (bucket < buckets),
        )  # fmt: skip
        tl.store(features + rows * (buckets + 1) + buckets, away / mass, mask=row < queries)


def sweep_by_triton(
    query: Float[Tensor, "batch head query size"],
    key: Float[Tensor, "batch key_head key size"],
    value: Float[Tensor, "batch key_head key width"] | None,
    columns: Sequence[Float[Tensor, "batch key _"]] = (),
    *,
    scale: float,
    reach: Reach,
    first: int,
    edges: tuple[int, ...],
) -> Swept:
    """The pass over all rows; the arguments are those of `headscope.capture.rows.sweep.sweep`, without its rulers."""
    together = join_columns(key, value, columns)
    sums = _run(query, key, torch.cat(together, dim=-1), scale=scale, reach=reach, first=first, edges=edges)
    entropy = (sums.mass.log2() - sums.spread / sums.mass) * NATS
    output, *averages = torch.split(sums.averages, [each.shape[-1] for each in together], dim=-1)
    return Swept(sums.log_sum, entropy, sums.features, output, tuple(averages))


def attend_by_triton(
    query: Float[Tensor, "batch head query size"],
    key: Float[Tensor, "batch key_head key size"],
    values: Float[Tensor, "batch key_head key width"],
    *,
    scale: float,
    reach: Reach,
) -> Attended:
    """The average of `values` under the attention, and the log-sum-exp of the scores."""
    sums = _run(query, key, values, scale=scale, reach=reach, first=0, edges=())
    return sums.averages, sums.log_sum.float()


@dataclass(frozen=True, eq=False)
class _Sums:
    """What the kernel writes for each row.

    Attributes:
        averages: those of the values.
        peak: the largest score, as an exponent of 2.
        mass: the sum of the powers of 2 of what the scores are above the peak.
        spread: the same sum, of which each is multiplied with what its score is above the peak.
        features: the mass in each bucket of distance, and the mean distance.
    """

    averages: Float[Tensor, "batch head query width"]
    peak: Float[Tensor, "batch head query"]
    mass: Float[Tensor, "batch head query"]
    spread: Float[Tensor, "batch head query"]
    features: Float[Tensor, "batch head query feature"]

    @property
    def log_sum(self) -> Float64[Tensor, "batch head query"]:
        """The logarithm of the sum of the exponentials of the scores."""
        return (self.peak.double() + self.mass.double().log2()) * NATS


def _run(
    query: Float[Tensor, "batch head query size"],
    key: Float[Tensor, "batch key_head key size"],
    values: Float[Tensor, "batch key_head key width"],
    *,
    scale: float,
    reach: Reach,
    first: int,
    edges: tuple[int, ...],
) -> _Sums:
    batch, heads, queries, size = query.shape
    key_heads, keys, width, buckets = key.shape[1], key.shape[2], values.shape[-1], 2 * len(edges) + 1
    borders = [-FAR, *(1 - edge for edge in reversed(edges)), *edges, FAR]
    rows = (batch, heads, queries)
    averages, features = query.new_empty(*rows, width), query.new_empty(*rows, buckets + 1)
    peak, mass, spread = (query.new_empty(rows) for _ in range(3))
    hidden = reach.hidden
    # Triton launches on the current GPU.
    with torch.cuda.device(query.get_device()):
        _sweep[triton.cdiv(queries, ROWS), batch * heads, max(1, triton.cdiv(width, WIDTH))](
            query.contiguous(), key.contiguous(), values.contiguous(),
            query if hidden is None else hidden.to(torch.int8).contiguous(),
            torch.tensor(borders, dtype=torch.int32, device=query.device),
            averages, peak, mass, spread, features,
            heads, heads // key_heads, queries, keys, width, scale / NATS,
            FAR if reach.before is None else reach.before, FAR if reach.after is None else reach.after, first,
            **choose_settings(size=size, width=width, buckets=buckets, has_hidden=hidden is not None),
        )  # fmt: skip
    return _Sums(averages, peak, mass, spread, features)


def choose_settings(*, size: int, width: int, buckets: int, has_hidden: bool) -> dict[str, int | float | bool]:
    """With what the kernel is compiled for heads of a size, values of a width, and a number of buckets."""
    return {
        "size": size, "buckets": buckets, "has_hidden": has_hidden, "lowest": LOWEST,
        "size_padded": _pad(size), "buckets_padded": _pad(buckets), "width_block": min(WIDTH, _pad(width)),
        "rows_block": ROWS, "keys_block": KEYS, "num_stages": STAGES,
    }  # fmt: skip


def _pad(length: int) -> int:
    """The length of a side of a block, which is a power of 2."""
    return max(SMALLEST, 1 << (length - 1).bit_length())
