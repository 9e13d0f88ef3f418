"""The kernels of `headscope.capture.rows.second_pass`, in Triton.

Each program has a block of rows of one head, and goes through the keys that they see, block by block. Products of half
precision numbers are exact in float32; products of float32 numbers are made from three products of their parts. Weights
and columns are multiplied in float16, each as a high part and a low part, which is the rounding error of the high part.

The second pass is fast because it needs few instructions for each weight. Most blocks of keys lie in one bucket of
distance and on one side of the rows, so they need only a sum for each row. The others go through the borders that they
cross.
"""

from typing import no_type_check

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
@no_type_check  # Triton decides the types of the arguments
def _raise_two(exponents):
    """Return powers of 2; on a GPU, powers below 2^-126 are 0, which saves three instructions for each number."""
    return tl.exp2(exponents) if INTERPRETED else libdevice.exp2(exponents)


INTERPRETED = tl.constexpr(not isinstance(_raise_two, triton.runtime.JITFunction))
"""True if Triton's interpreter runs the kernels; it lacks the functions of a GPU."""


@triton.jit
@no_type_check
def _find_within(key_start, keys, keys_block: tl.constexpr):
    """Return the index of each key within its block; beyond the last key, which no row sees, the index of the last key.

    A mask would take more instructions.
    """
    return tl.minimum(tl.arange(0, keys_block), keys - 1 - key_start)


@triton.jit
@no_type_check
def _score(
    query_block, key, stride, hidden, row, row_start, last_row, key_start, keys, scale, before, after, log_sum,
    has_hidden: tl.constexpr, lowest: tl.constexpr, size: tl.constexpr, size_padded: tl.constexpr,
    keys_block: tl.constexpr,
):  # fmt: skip
    """Return the scores of a block as exponents of 2, minus `log_sum`; `lowest` where a row does not see a key."""
    place = tl.arange(0, size_padded)
    within = _find_within(key_start, keys, keys_block)
    # The address of a block's first key has 64 bits; the other keys are 32-bit offsets, which take half the registers.
    key_block = key + tl.cast(key_start, tl.int64) * stride + (within * stride)[:, None] + place
    key_block = tl.load(key_block) if size == size_padded else tl.load(key_block, mask=place < size, other=0.0)
    scores = tl.dot(query_block, tl.trans(key_block), input_precision="tf32x3") * scale - log_sum[:, None]
    seen, last_key = key_start + tl.arange(0, keys_block), key_start + keys_block - 1
    if (last_key >= keys) | (last_key - row_start > after) | (key_start - last_row < -before):
        least, most = row - before, tl.minimum(row + after, keys - 1)
        scores = tl.where((seen[None, :] >= least[:, None]) & (seen[None, :] <= most[:, None]), scores, lowest)
    if has_hidden:
        covered = tl.load(hidden + key_start + within)
        scores = tl.where((covered == 0)[None, :], scores, lowest)
    return scores


@triton.jit
@no_type_check
def _add(total, lost, summand):
    """Return the sum of `total` and `summand`, and its rounding error, which corrects the next summand (Kahan)."""
    summand -= lost
    higher = total + summand
    return higher, (higher - total) - summand


@triton.jit
@no_type_check
def _sum_in_threads(numbers):
    """Return four sums of each row, one for each of the four threads that tensor cores give a row to.

    Each thread gets two numbers in turn. It adds up its own numbers, and waits for the others only at the end.
    """
    return tl.sum(tl.sum(tl.reshape(numbers, [numbers.shape[0], numbers.shape[1] // 8, 4, 2]), 1), 2)


@triton.jit
@no_type_check
def _find_rows(
    query, text_stride, head_stride, row_stride, heads, queries, size: tl.constexpr, size_padded: tl.constexpr,
    rows_block: tl.constexpr,
):  # fmt: skip
    """Return the text, the head, the rows and the queries of this Triton program; the first programs get the last rows.

    The result is the text, the head, the first row, the last row, all rows, and the queries.
    """
    row_blocks = tl.cdiv(queries, rows_block)
    pair = (tl.program_id(0) // row_blocks).to(tl.int64)
    text, head = pair // heads, pair % heads
    row_start = (row_blocks - 1 - tl.program_id(0) % row_blocks) * rows_block
    last_row = tl.minimum(row_start + rows_block, queries) - 1
    row, place = row_start + tl.arange(0, rows_block), tl.arange(0, size_padded)
    query_block = tl.load(
        query + text * text_stride + head * head_stride + row.to(tl.int64)[:, None] * row_stride + place,
        mask=(row < queries)[:, None] & (place < size), other=0.0,
    )  # fmt: skip
    return text, head, row_start, last_row, row, query_block


@triton.jit
@no_type_check
def add_up(
    query, key, hidden, log_sums,
    query_text, query_head, query_row, key_text, key_head, key_row,
    heads, groups, queries, keys, scale, before, after,
    nats: tl.constexpr, has_hidden: tl.constexpr, lowest: tl.constexpr, size: tl.constexpr, size_padded: tl.constexpr,
    rows_block: tl.constexpr, keys_block: tl.constexpr,
):  # fmt: skip
    """Write the log-sum-exp of each row's scores."""
    text, head, row_start, last_row, row, query_block = _find_rows(
        query, query_text, query_head, query_row, heads, queries, size, size_padded, rows_block
    )
    peak = tl.full([rows_block], lowest, tl.float32)
    mass = tl.zeros([rows_block], tl.float32)
    start = tl.maximum(row_start - before, 0) // keys_block * keys_block
    for key_start in range(start, tl.minimum(last_row + after + 1, keys), keys_block):
        scores = _score(
            query_block, key + text * key_text + (head // groups) * key_head, key_row, hidden + text * keys,
            row, row_start, last_row, key_start, keys, scale, before, after, tl.zeros_like(peak),
            has_hidden, lowest, size, size_padded, keys_block,
        )  # fmt: skip
        higher = tl.maximum(peak, tl.max(scores, 1))
        mass = mass * _raise_two(peak - higher) + tl.sum(_raise_two(scores - higher[:, None]), 1)
        peak = higher
    tl.store(log_sums + (text * heads + head) * queries + row, (peak + tl.log2(mass)) * nats, mask=row < queries)


@triton.jit
@no_type_check
def answer(
    query, key, hidden, given_log_sums, high, low, sizes, borders, averages, log_sums, entropies, features,
    query_text, query_head, query_row, key_text, key_head, key_row,
    heads, groups, column_heads, queries, keys, width, length, first_column, scale, before, after, first,
    buckets: tl.constexpr, parts: tl.constexpr, has_features: tl.constexpr, raised: tl.constexpr, nats: tl.constexpr,
    has_hidden: tl.constexpr, lowest: tl.constexpr, size: tl.constexpr, size_padded: tl.constexpr,
    buckets_padded: tl.constexpr, rows_block: tl.constexpr, keys_block: tl.constexpr, width_block: tl.constexpr,
):  # fmt: skip
    """Write the averages of columns; if `has_features`, also log-sum-exps, entropies, buckets and mean distances.

    The columns come in `parts` parts: high, or high and low.
    """
    text, head, row_start, last_row, row, query_block = _find_rows(
        query, query_text, query_head, query_row, heads, queries, size, size_padded, rows_block
    )
    bucket = tl.arange(0, buckets_padded)
    column = first_column + tl.program_id(1) * width_block + tl.arange(0, width_block)
    rows = (text * heads + head) * queries + row
    given = tl.load(given_log_sums + rows, mask=row < queries, other=0.0)
    # All weights are scaled by 2^raised, so that small weights keep their digits in float16; quotients do not change.
    log_sum = given / nats - raised
    mass = tl.zeros([rows_block, 4], tl.float32)
    spread, away, since, lost_mass, lost_spread, lost_away, lost_since = mass, mass, mass, mass, mass, mass, mass
    in_buckets = tl.zeros([rows_block, buckets_padded], tl.float32)
    average = tl.zeros([rows_block, width_block], tl.float32)
    column_head = text * column_heads + head * column_heads // heads
    column_row, real_column = ((column_head * width + column) * length)[:, None], (column < width)[:, None]
    cut = tl.load(borders + bucket + 1, mask=bucket < buckets - 1, other=1 << 30)
    # `number` is the bucket of the latest keys, and `since` their mass in it. The bucket begins and ends at these
    # distances; at first it is empty, so that the first block of keys finds its own.
    number, begins, ends = 0, 0, 0
    place = tl.arange(0, keys_block).to(tl.float32)
    start = tl.maximum(row_start - before, 0) // keys_block * keys_block
    for key_start in range(start, tl.minimum(last_row + after + 1, keys), keys_block):
        below = _score(
            query_block, key + text * key_text + (head // groups) * key_head, key_row, hidden + text * keys,
            row, row_start, last_row, key_start, keys, scale, before, after, log_sum,
            has_hidden, lowest, size, size_padded, keys_block,
        )  # fmt: skip
        weights = _raise_two(below)
        here = _sum_in_threads(weights)
        mass, lost_mass = _add(mass, lost_mass, here)
        if has_features:
            spread, lost_spread = _add(spread, lost_spread, _sum_in_threads(weights * below))
            # The distance to the block's first key, and the distances to the nearest and furthest key that a row sees.
            offset = (key_start + first - row).to(tl.float32)
            nearest = tl.maximum(key_start - last_row, -before) + first
            furthest = tl.minimum(tl.minimum(key_start + keys_block, keys) - 1 - row_start, after) + first
            here_away = _sum_in_threads(weights * place[None, :]) + here * offset[:, None]
            if (begins <= nearest) & (furthest < ends) & ((furthest <= 0) | (nearest >= 0)):
                since, lost_since = _add(since, lost_since, here)
                here_away = tl.where(furthest <= 0, -here_away, here_away)
            else:
                here_away = _sum_in_threads(weights * tl.abs(place[None, :] + offset[:, None]))
                in_buckets += tl.where(bucket[None, :] == number, tl.sum(since, 1)[:, None], 0.0)
                lower, number = tl.sum((cut <= nearest).to(tl.int32)), tl.sum((cut <= furthest).to(tl.int32))
                since = tl.zeros_like(here)
                for crossed in range(lower, number):
                    ends = tl.load(borders + crossed + 1)
                    before_end = place[None, :] < (ends - offset)[:, None]
                    up_to = _sum_in_threads(tl.where(before_end, weights, 0.0))
                    in_buckets += tl.where(bucket[None, :] == crossed, tl.sum(up_to - since, 1)[:, None], 0.0)
                    since = up_to
                since, lost_since = here - since, tl.zeros_like(here)
                begins, ends = tl.load(borders + number), tl.load(borders + number + 1)
            away, lost_away = _add(away, lost_away, here_away)
        if parts > 0:
            at = column_row + key_start + tl.arange(0, keys_block)
            # Keep the digits that float16 has; cutting off the others takes fewer instructions than rounding.
            cut_off = (weights.to(tl.int32, bitcast=True) & -(1 << 13)).to(tl.float32, bitcast=True)
            weights_high, weights_low = cut_off.to(tl.float16), (weights - cut_off).to(tl.float16)
            columns_high = tl.trans(tl.load(high + at, mask=real_column, other=0.0))
            here_average = tl.dot(weights_low, columns_high)
            if parts > 1:
                columns_low = tl.trans(tl.load(low + at, mask=real_column, other=0.0))
                here_average = tl.dot(weights_high, columns_low, here_average)
            # Tensor cores round each sum down, so a sum over all keys in them would be too low, more so with more keys.
            average += tl.dot(weights_high, columns_high, here_average)
    mass, spread, away = tl.sum(mass, 1), tl.sum(spread, 1), tl.sum(away, 1)
    # All weights of padding may be 0.
    mass = tl.where(mass > 0, mass, 1.0)
    if parts > 0:
        unit = tl.load(sizes + column_head * width + column, mask=column < width, other=0.0)
        tl.store(
            averages + rows[:, None] * width + column, average * unit[None, :] / mass[:, None],
            mask=(row < queries)[:, None] & (column < width),
        )  # fmt: skip
    if has_features:
        bits = tl.log2(mass / (1 << raised))
        in_buckets += tl.where(bucket[None, :] == number, tl.sum(since, 1)[:, None], 0.0)
        tl.store(log_sums + rows, given.to(tl.float64) + (bits * nats).to(tl.float64), mask=row < queries)
        tl.store(entropies + rows, (bits - (spread - mass * raised) / mass) * nats, mask=row < queries)
        # If no row sees a key after itself, only the buckets before it have registers; the others are empty.
        for first_bucket in tl.static_range(0, buckets, buckets_padded):
            tl.store(
                features + rows[:, None] * (buckets + 1) + bucket + first_bucket,
                in_buckets / mass[:, None] if first_bucket == 0 else tl.zeros_like(in_buckets),
                mask=(row < queries)[:, None] & (bucket + first_bucket < buckets),
            )  # fmt: skip
        tl.store(features + rows * (buckets + 1) + buckets, away / mass, mask=row < queries)
