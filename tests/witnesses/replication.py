"""Replication by loops over the links: a head fixed in advance, its rivals chosen on the same links, paired by text."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import scipy.stats
from statsmodels.stats.multitest import multipletests

TEXTS, ITEMS = 20, 20
"""Texts and items that there must be before anything is decided."""


def lift(
    head: Sequence[bool], rival: Sequence[bool], texts: Sequence[int], rivals_texts: Sequence[int]
) -> tuple[float, float, float, float]:
    """The share of links that a head gets right less that of a rival, the ends of its 95 % interval, and p.

    p is that of a share which is no larger than the rival's.

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
        return difference, math.nan, math.nan, math.nan
    error = math.sqrt(count / (count - 1) * sum(value**2 for value in residual.values()))
    # As many texts of one size as would say as much.
    effective = sum(weight.values()) ** 2 / sum(value**2 for value in weight.values())
    half = error * scipy.stats.t.ppf(0.975, effective - 1)
    p = scipy.stats.t.sf(difference / error, effective - 1) if error else float(difference <= 0)
    return difference, max(-1.0, difference - half), min(1.0, difference + half), p


def best(columns: np.ndarray) -> tuple[int, ...]:
    """The first of the columns that hold the most hits; the first axis is that of the links."""
    place: tuple[int, ...] = ()
    most = -1
    for index in np.ndindex(columns.shape[1:]):
        if (hits := sum(bool(hit) for hit in columns[(slice(None), *index)])) > most:
            place, most = index, hits
    return place


def decide(lifts: Mapping[str, tuple[float, float, float, float]], texts: Sequence[int]) -> bool:
    """Whether there is enough to decide about a head, by its lifts over all rivals and the texts of its links."""
    return len(texts) >= ITEMS and len(set(texts)) >= TEXTS and bool(lifts)


def judge(rows: Mapping[str, Mapping[str, tuple[float, float, float, float]]]) -> dict[str, tuple[str, float]]:
    """The verdict on each row that is decided, and its p-value corrected for all of them, from the lifts of each."""
    largest = [max(p for *_, p in lifts.values()) for lifts in rows.values()]
    corrected = multipletests(largest, method="holm")[1]
    above = [all(lower > 0 for _, lower, _, _ in lifts.values()) for lifts in rows.values()]
    verdicts = ["survives" if a and p < 0.05 else "does not survive" for a, p in zip(above, corrected, strict=True)]
    return dict(zip(rows, zip(verdicts, corrected, strict=True), strict=True))
