"""Jensen-Shannon divergences between the rows of attention maps, pair by pair, in blocks that stay in cache.

With s = a + b, JS(a, b) = H(s / 2) - (H(a) + H(b)) / 2 = (sum a ln a + sum b ln b + ln 2 sum s - sum s ln s) / 2,
so each pair needs only one logarithm per weight: that of s. If two heads are nearly equal, the sums nearly cancel, so
everything is in float64. The rows need not sum to 1: if both are scaled by a number, so is the divergence.
"""

import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Float64

BLOCK_WEIGHTS = 1 << 16
"""The number of weights of one side that are compared at once, in float64: with two buffers they fit into a cache.

The arrays are numpy's, whose logarithm of float64 takes a third of the time of torch's.
"""


def compare_rows(
    maps: Float[np.ndarray, "head row key"], others: Float[np.ndarray, "other row key"] | None = None
) -> Iterator[Float64[np.ndarray, "head other part"]]:
    """Yield the divergence (in nats) of the rows of each pair of heads, one part of the rows after another.

    Args:
        maps: The weights of each head, in the same rows.
        others: The weights of the heads to compare with; by default `maps` itself, each pair once.
    """
    heads, rows, keys = maps.shape
    size = max(1, BLOCK_WEIGHTS // ((heads if others is None else len(others)) * keys))
    for start in range(0, rows, size):
        part = slice(start, start + size)
        sides = [side[:, part] for side in (maps, others) if side is not None]
        # Leave out keys that no head attends to in any row; a mask hides many of them.
        attended = np.maximum.reduce([side.max((0, 1)) for side in sides]) > 0
        ours, *theirs = (_lift_zeros(side[..., attended]) for side in sides)
        yield _compare_all(ours, *theirs) if theirs else _compare_each(ours)


def _lift_zeros(maps: Float[np.ndarray, "head row key"]) -> Float64[np.ndarray, "head row key"]:
    """Return the weights, with 0 replaced by the least positive number, whose x ln x is practically 0."""
    # The result of a mask lies in memory with its last axis first, which is slow; so ask for C order.
    return np.asarray(np.maximum(maps, np.finfo(np.float64).tiny, dtype=np.float64, order="C"))


def _compare_each(maps: Float64[np.ndarray, "head row key"]) -> Float64[np.ndarray, "head head row"]:
    both, logarithms = np.empty_like(maps), np.empty_like(maps)
    together = np.zeros((len(maps), *maps.shape[:2]))
    for head in range(len(maps) - 1):
        beyond = slice(head + 1, None)
        _sum_products(maps[head], maps[beyond], both[beyond], logarithms[beyond], together[head, beyond])
    alone = _sum_entropies(maps)
    above = np.triu(np.ones((len(maps), len(maps))), 1)[..., None]
    upper = above * (alone[:, None] + alone - together) / 2
    return np.asarray(upper + upper.swapaxes(0, 1))


def _compare_all(
    maps: Float64[np.ndarray, "head row key"], others: Float64[np.ndarray, "other row key"]
) -> Float64[np.ndarray, "head other row"]:
    both, logarithms = np.empty_like(others), np.empty_like(others)
    together = np.empty((len(maps), *others.shape[:2]))
    for head, ours in enumerate(maps):
        _sum_products(ours, others, both, logarithms, together[head])
    return np.asarray((_sum_entropies(maps)[:, None] + _sum_entropies(others) - together) / 2)


def _sum_products(
    weights: Float64[np.ndarray, "row key"], others: Float64[np.ndarray, "other row key"],
    both: Float64[np.ndarray, "other row key"], logarithms: Float64[np.ndarray, "other row key"],
    out: Float64[np.ndarray, "other row"],
) -> None:  # fmt: skip
    """Write the sum of s ln s over keys, with s = `weights` + `others`, to `out`; overwrite the two buffers."""
    np.add(others, weights, out=both)
    np.log(both, out=logarithms)
    np.vecdot(both, logarithms, out=out)


def _sum_entropies(maps: Float64[np.ndarray, "head row key"]) -> Float64[np.ndarray, "head row"]:
    """Return the sum over the keys of a ln a + a ln 2, for each row."""
    return np.asarray(np.vecdot(maps, np.log(maps) + math.log(2)))
