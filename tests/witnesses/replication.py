"""Replication by loops over the links: a head fixed in advance, its rivals chosen on the same links, paired by text."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import scipy.stats

TEXTS, ITEMS = 20, 20
"""Texts and items that there must be before anything is decided."""


def lift(
    head: Sequence[bool], rival: Sequence[bool], texts: Sequence[int], rivals_texts: Sequence[int]
) -> tuple[float, float, float]:
    """The share of links that a head gets right less that of a rival, with the ends of its interval of 95 %.

    Each sums up what every text has beyond its share, for the head less for the rival.
    """
    shares = [sum(hits) / len(hits) for hits in (head, rival)]
    residual: dict[int, float] = {}
    weight: dict[int, float] = {}
    for sign, hits, share, places in ((1, head, shares[0], texts), (-1, rival, shares[1], rivals_texts)):
        for hit, text in zip(hits, places, strict=True):
            residual[text] = residual.get(text, 0.0) + sign * (float(hit) - share) / len(hits)
            weight[text] = weight.get(text, 0.0) + 1 / len(hits)
    count = len(residual)
    difference = shares[0] - shares[1]
    if count < 2:
        return difference, math.nan, math.nan
    error = math.sqrt(count / (count - 1) * sum(value**2 for value in residual.values()))
    # As many texts of one size as would say as much.
    effective = sum(weight.values()) ** 2 / sum(value**2 for value in weight.values())
    half = error * scipy.stats.t.ppf(0.975, effective - 1)
    return difference, max(-1.0, difference - half), min(1.0, difference + half)


def best(columns: np.ndarray) -> tuple[int, ...]:
    """The first of the columns that hold the most hits; the first axis is that of the links."""
    place: tuple[int, ...] = ()
    most = -1
    for index in np.ndindex(columns.shape[1:]):
        if (hits := sum(bool(hit) for hit in columns[(slice(None), *index)])) > most:
            place, most = index, hits
    return place


def verdict(lower: Mapping[str, float], texts: Sequence[int]) -> str:
    """The verdict on a head that has a reported place, from the lower ends of its lifts over all rivals."""
    if len(texts) < ITEMS or len(set(texts)) < TEXTS or not lower:
        return "cannot decide"
    return "survives" if all(end > 0 for end in lower.values()) else "does not survive"
