"""Fixed offsets, the simplest baseline of a head: always the word that stands so many words away."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import xarray as xr

from headscope.analyse.uncertainty import Ratio
from headscope.errors import TableError
from headscope.score import Score


class Offset(NamedTuple):
    """A fixed offset in words (-1 is the word before) and its score."""

    offset: int
    value: float


def best_offset(table: xr.Dataset, score: Score, place: Mapping[str, str]) -> Offset | None:
    """The fixed offset with the best score of a row, on all texts; None where no offset scores above 0."""
    try:
        ratio = Ratio.of_offsets(table, score)
    except TableError:  # a part of a table that has the score and not its sums
        return None
    if ratio is None:
        return None
    values = ratio.value.sel(place)
    if not (values > 0).any():
        return None
    best = int(np.nanargmax(values.values))
    return Offset(int(values["offset"].values[best]), float(values.values[best]))


def format_offset(offset: int) -> str:
    """An offset with its sign, as ``+1`` or ``−2``."""
    return f"{offset:+d}".replace("-", "−")
