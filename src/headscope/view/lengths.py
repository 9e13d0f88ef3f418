"""The score of a reported head on links of each length."""

from typing import NamedTuple

import numpy as np
import xarray as xr

from headscope.analyse.report import at_reported
from headscope.score import Score


class Part(NamedTuple):
    """The items of one length (or other part of a breakdown): their number, and the score of a head on them."""

    length: int
    items: int
    value: float


def list_parts(table: xr.Dataset, score: Score) -> list[tuple[Part, ...]]:
    """Return the items of each row by length, with the score of its reported head; empty without a breakdown."""
    variable, dim, layer = f"{score.breakdown}_{score.measure}", score.breakdown, f"{score.report_prefix}reported_layer"
    if not dim or variable not in table:
        return []
    by_row = (at_reported(table, variable, score.report_prefix), table[f"{dim}_count"])
    values, counts = (np.atleast_2d(of_parts.transpose(..., dim).values) for of_parts in by_row)
    lengths, has_report = table[dim].values, np.atleast_1d(table[layer].notnull().values)
    # In a decoder, links of a length count in one direction only.
    scored = (counts > 0) & ~np.isnan(values)
    present = [np.flatnonzero(of_row & has_report[row]) for row, of_row in enumerate(scored)]
    return [
        tuple(Part(int(lengths[i]), int(counts[row, i]), float(values[row, i])) for i in places)
        for row, places in enumerate(present)
    ]
