"""Fixed offsets, the simplest baseline of a head: always the word at the same distance."""

from collections.abc import Mapping
from typing import NamedTuple

import xarray as xr

from headscope.analyse.uncertainty import Ratio
from headscope.score import Score


class Offset(NamedTuple):
    """A fixed offset in words (-1 is the word before) and its score."""

    offset: int
    value: float


def best_offset(table: xr.Dataset, score: Score, place: Mapping[str, str]) -> Offset | None:
    """Return the fixed offset with the best score for a row, on all texts; None if no offset scores above 0.

    If each direction has its own items, the best offset is the one that finds most of the items of both directions; its
    score is its share of the items of its own direction.
    """
    rival = next((rival for rival in score.rivals if rival.options == ("offset",) and rival.applies(table)), None)
    if rival is None:
        return None
    ratio = Ratio.of_rival(table, rival)
    values, shares = ratio.value.sel(place), ratio.over_directions().value.sel(place)
    if not (shares > 0).any():
        return None
    best = shares.fillna(-1).argmax(...)
    return Offset(int(values["offset"][best["offset"]]), float(values.isel(best)))


def format_offset(offset: int) -> str:
    """Return an offset with its sign, as ``+1`` or ``−2``."""
    return f"{offset:+d}".replace("-", "−")
