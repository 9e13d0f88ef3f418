"""Fixed offsets, the simplest baseline of a head: always the word that stands so many words away."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import xarray as xr

from headscope.analyse.uncertainty import Ratio
from headscope.score import Score


class Offset(NamedTuple):
    """A fixed offset in words (-1 is the word before) and its score."""

    offset: int
    value: float


def best_offset(table: xr.Dataset, score: Score, place: Mapping[str, str]) -> Offset | None:
    """The fixed offset with the best score of a row, on all texts; None where no offset scores above 0."""
    rival = next((rival for rival in score.rivals if rival.options == ("offset",) and rival.applies(table)), None)
    if rival is None:
        return None
    values = Ratio.of_rival(table, rival).value.sel(place)
    if not (values > 0).any():
        return None
    best = int(np.nanargmax(values.values))
    return Offset(int(values["offset"].values[best]), float(values.values[best]))


def format_offset(offset: int) -> str:
    """An offset with its sign, as ``+1`` or ``−2``."""
    return f"{offset:+d}".replace("-", "−")
