"""Fixed offsets, the simplest baseline of a head: always the word that stands so many words away."""

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
    """The fixed offset with the best score of a row, on all texts; None where no offset scores above 0.

    Where each direction has items of its own, it is the offset that finds most of all of them, and its score is that in
    its direction.
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
    """An offset with its sign, as ``+1`` or ``−2``."""
    return f"{offset:+d}".replace("-", "−")
