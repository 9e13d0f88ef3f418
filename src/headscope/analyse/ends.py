"""A number and the ends of its interval, as variables of a head table."""

from collections.abc import Iterable, Sequence

import numpy as np
import xarray as xr

from headscope.heads import describe

ENDS = ("", "_lower", "_upper")
"""The endings of three variables' names: of a number, and of the lower and the upper end of its interval."""

INTERVAL = "the 95 % interval"

BY_TEXT = f"{INTERVAL}, paired and clustered by text"


def describe_ends(what: str, interval: str = INTERVAL, begin: str = "") -> dict[str, str]:
    """Return the descriptions of a number and of the ends of its interval, by the names of their variables.

    Args:
        what: The description of the number.
        interval: The description of the interval.
        begin: The beginning of the names, before each of `ENDS`.
    """
    texts = (what, f"{what}: lower end of {interval}", f"{what}: upper end of {interval}")
    return {f"{begin}{end}": text for end, text in zip(ENDS, texts, strict=True)}


def make_ends(
    name: str, values: Iterable[np.ndarray], dims: Sequence[str], *, what: str, units: str, source: str,
    interval: str = INTERVAL,
) -> dict[str, xr.Variable]:  # fmt: skip
    """Make the variables of a number and of the lower and the upper end of its interval; `values` has these three."""
    texts = describe_ends(what, interval, name).items()
    return describe({end: (each, dims, text, units) for each, (end, text) in zip(values, texts, strict=True)}, source)
