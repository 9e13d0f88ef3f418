"""Fixed offsets, the simplest baseline of a head: always the word that stands so many words away."""

from typing import NamedTuple

import numpy as np
import xarray as xr


class Offset(NamedTuple):
    """A fixed offset in words (-1 is the word before) and its accuracy."""

    offset: int
    accuracy: float


def best_offset(table: xr.Dataset, row: str, variable: str = "offset_accuracy", dim: str = "relation") -> Offset | None:
    """The fixed offset with the highest accuracy on a relation, or another row; None where the table has none."""
    if variable not in table:
        return None
    accuracy = table[variable].sel({dim: row})
    if not accuracy.notnull().any():
        return None
    best = int(np.nanargmax(accuracy.values))
    return Offset(int(accuracy["offset"].values[best]), float(accuracy.values[best]))


def signed(offset: int) -> str:
    """An offset with its sign, as ``+1`` or ``−2``."""
    return f"{offset:+d}".replace("-", "−")
