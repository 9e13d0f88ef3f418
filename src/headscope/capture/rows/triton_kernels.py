"""The kernels of `headscope.capture.rows.second_pass`, in Triton.

Each program has a block of rows of one head, and goes over the keys that they see, a block at a time. Products of half
precision numbers are exact in float32; those of float32 numbers are made of three of their parts. Weights and columns
are multiplied in float16, each as a high part and a low part, which is what the rounding of the high part left. The
mass of a whole block of keys goes to one bucket of distance where all of it is in one, and is added up weight by weight
elsewhere.
"""

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit
@no_type_check  # its arguments are what Triton makes of them
def _score(
    query_block, key, stride, hidden, row, seen, row_start, last_row, key_start, keys, scale, before, after,
    has_hidden: tl.constexpr, lowest: tl.constexpr, size: tl.constexpr, size_padded: tl.constexpr,
    keys_block: tl.constexpr,
):  # fmt: skip
    """Return the scores of a block as exponents of 2; `lowest` where a row does not see a key."""
    place = tl.arange(0, size_padded)
    there = seen < keys
    # A block's first key is found in 64 bits, and the others from there in 32, which take half the registers.
    key_block = tl.load(
        key + tl.cast(key_start, tl.int64) * stride + ((seen - key_start) * stride)[:, None] + place,
        mask=there[:, None] & (place < size), other=0.0,
    )  # fmt: skip
    scores = tl.dot(query_block, tl.trans(key_block), input_precision="tf32x3") * scale
    last_key = key_start + keys_block - 1
    if (last_key >= keys) | (last_key - row_start > after) | (key_start - last_row < -before):
        apart = seen[None, :] - row[:, None]
        scores = tl.where(there[None, :] & (apart >= -before) & (apart <= after), scores, lowest)
    if has_hidden:
        covered = tl.load(hidden + seen, mask=there, other=1)
        scores = tl.where((covered == 0)[None, :], scores, lowest)
    return scores


@triton.jit
@no_type_check
def _add(total, lost, summand):
    """Return a sum, and its rounding error so far, for which the next summand makes up (Kahan)."""
    summand -= lost
    higher = total + summand
    return higher, (higher - total) - summand


@triton.jit
@no_type_check
def _find_rows(
    query, text_stride, head_stride, row_stride, heads, queries, size: tl.constexpr, size_padded: tl.constexpr,
    rows_block: tl.constexpr,
):  # fmt: skip
    """Return a program's text, head, first and last row, its rows, and their queries; the longest rows go first."""
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
        seen = key_start + tl.arange(0, keys_block)
        scores = _score(
            query_block, key + text * key_text + (head // groups) * key_head, key_row, hidden + text * keys,
            row, seen, row_start, last_row, key_start, keys, scale, before, after,
            has_hidden, lowest, size, size_padded, keys_block,
        )  # fmt: skip
        higher = tl.maximum(peak, tl.max(scores, 1))
        mass = mass * tl.exp2(peak - higher) + tl.sum(tl.exp2(scores - higher[:, None]), 1)
        peak = higher
    tl.store(log_sums + (text * heads + head) * queries + row, (peak + tl.log2(mass)) * nats, mask=row < queries)


@triton.jit
@no_type_check
def answer(
    query, key, hidden, given_log_sums, high, low, sizes, borders, averages, log_sums, entropies, features,
    query_text, query_head, query_row, key_text, key_head, key_row,
    heads, groups, column_heads, queries, keys, width, first_column, scale, before, after, first,
    buckets: tl.constexpr, parts: tl.constexpr, has_features: tl.constexpr, raised: tl.constexpr, nats: tl.constexpr,
    has_hidden: tl.constexpr, lowest: tl.constexpr, size: tl.constexpr, size_padded: tl.constexpr,
    buckets_padded: tl.constexpr, rows_block: tl.constexpr, keys_block: tl.constexpr, width_block: tl.constexpr,
):  # fmt: skip
    """Write averages of columns in `parts` parts; with features, entropies, masses in buckets and mean distances."""
    text, head, row_start, last_row, row, query_block = _find_rows(
        query, query_text, query_head, query_row, heads, queries, size, size_padded, rows_block
    )
    bucket = tl.arange(0, buckets_padded)
    column = first_column + tl.program_id(1) * width_block + tl.arange(0, width_block)
    rows = (text * heads + head) * queries + row
    given = tl.load(given_log_sums + rows, mask=row < queries, other=0.0)
    log_sum = given / nats
    mass = tl.zeros([rows_block], tl.float32)
    spread, away, lost_mass, lost_spread, lost_away = mass, mass, mass, mass, mass
    in_buckets = tl.zeros([rows_block, buckets_padded], tl.float32)
    average = tl.zeros([rows_block, width_block], tl.float32)
    column_head = text * column_heads + head * column_heads // heads
    cut = tl.load(borders + bucket + 1, mask=bucket < buckets - 1, other=1 << 30)
    row_place = (row - first).to(tl.float32)
    start = tl.maximum(row_start - before, 0) // keys_block * keys_block
    for key_start in range(start, tl.minimum(last_row + after + 1, keys), keys_block):
        seen = key_start + tl.arange(0, keys_block)
        below = _score(
            query_block, key + text * key_text + (head // groups) * key_head, key_row, hidden + text * keys,
            row, seen, row_start, last_row, key_start, keys, scale, before, after,
            has_hidden, lowest, size, size_padded, keys_block,
        ) - log_sum[:, None]  # fmt: skip
        weights = tl.exp2(below)
        here = tl.sum(weights, 1)
        mass, lost_mass = _add(mass, lost_mass, here)
        if has_features:
            spread, lost_spread = _add(spread, lost_spread, tl.sum(weights * below, 1))
            distance = seen.to(tl.float32)[None, :] - row_place[:, None]
            away, lost_away = _add(away, lost_away, tl.sum(weights * tl.abs(distance), 1))
            nearest, furthest = key_start + first - last_row, key_start + keys_block - 1 + first - row_start
            lower, upper = tl.sum((cut <= nearest).to(tl.int32)), tl.sum((cut <= furthest).to(tl.int32))
            if lower == upper:
                in_buckets += tl.where(bucket[None, :] == lower, here[:, None], 0.0)
            else:
                for number in range(lower, upper + 1):
                    held = (distance >= tl.load(borders + number)) & (distance < tl.load(borders + number + 1))
                    held_mass = tl.sum(tl.where(held, weights, 0.0), 1)
                    in_buckets += tl.where(bucket[None, :] == number, held_mass[:, None], 0.0)
        if parts > 0:
            block = (column_head * keys + key_start) * width
            at = (seen - key_start)[:, None] * width + column
            within = (seen < keys)[:, None] & (column < width)
            weights_raised = weights * raised
            weights_high = weights_raised.to(tl.float16)
            weights_low = (weights_raised - weights_high.to(tl.float32)).to(tl.float16)
            columns_high = tl.load(high + block + at, mask=within, other=0.0)
            here_average = tl.dot(weights_low, columns_high)
            if parts > 1:
                here_average = tl.dot(weights_high, tl.load(low + block + at, mask=within, other=0.0), here_average)
            # Tensor cores round each sum down, so that a sum over all keys would be lower the more of them there are.
            average += tl.dot(weights_high, columns_high, here_average)
    # Of padding all weights may be 0.
    mass = tl.where(mass > 0, mass, 1.0)
    if parts > 0:
        unit = tl.load(sizes + column_head * width + column, mask=column < width, other=0.0) / raised
        tl.store(
            averages + rows[:, None] * width + column, average * unit[None, :] / mass[:, None],
            mask=(row < queries)[:, None] & (column < width),
        )  # fmt: skip
    if has_features:
        tl.store(log_sums + rows, given.to(tl.float64) + tl.log(mass).to(tl.float64), mask=row < queries)
        tl.store(entropies + rows, (tl.log2(mass) - spread / mass) * nats, mask=row < queries)
        tl.store(
            features + rows[:, None] * (buckets + 1) + bucket, in_buckets / mass[:, None],
            mask=(row < queries)[:, None] & (bucket < buckets),
        )  # fmt: skip
        tl.store(features + rows * (buckets + 1) + buckets, away / mass, mask=row < queries)
