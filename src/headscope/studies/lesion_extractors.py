"""Extractors for tables of lesions: what a model loses without a set of heads, in points of accuracy.

A drop is above 0 where the model is worse without the heads.
"""

import math

import xarray as xr

from headscope.corpora.text import format_count
from headscope.studies.extractors import PERCENT
from headscope.studies.study import Extractor, NotMeasuredError, Value

ACCURACY = "lesion_accuracy"


def drop(name: str) -> Extractor:
    """The drop without a set, with its interval by text."""

    def read(lesions: xr.Dataset) -> Value:
        row = _select(lesions, name)
        return Value(
            -PERCENT * float(row[ACCURACY]), format_count(int(row["set_member"].sum()), "head"),
            -PERCENT * float(row[f"{ACCURACY}_upper"]), -PERCENT * float(row[f"{ACCURACY}_lower"]),
        )  # fmt: skip

    return read


def drop_beyond_random(name: str) -> Extractor:
    """The drop without a set less the mean drop without its random sets, with its interval by how much these differ."""

    def read(lesions: xr.Dataset) -> Value:
        row = _select(lesions, name)
        random = -PERCENT * float(row[f"{ACCURACY}_random"]) + 0.0  # so that none is "-0.00"
        return Value(
            -PERCENT * float(row[f"{ACCURACY}_excess"]), f"random sets {random:.2f}",
            -PERCENT * float(row[f"{ACCURACY}_excess_upper"]), -PERCENT * float(row[f"{ACCURACY}_excess_lower"]),
        )  # fmt: skip

    return read


def drop_beyond_set(name: str, *others: str) -> Extractor:
    """The drop without a set less the largest drop without some others.

    Its interval takes the drops as independent. They are of the same examples, so it is mostly too wide. It reaches at
    least as far as it would if no example had changed: what happens in none of n examples may happen in 3 of n (the
    rule of three, Hanley and Lippman-Hand 1983).
    """

    def read(lesions: xr.Dataset) -> Value:
        own = drop(name)(lesions)
        largest = max((drop(other)(lesions) for other in others), key=lambda value: value.number)
        difference = own.number - largest.number
        half = math.hypot(*((value.upper - value.lower) / 2 for value in (own, largest)))
        half = max(half, PERCENT * 3 / int(lesions["examples"].isel(subset=0)))
        return Value(difference, "", difference - half, difference + half)

    return read


def _select(lesions: xr.Dataset, name: str) -> xr.Dataset:
    if ACCURACY not in lesions or name not in lesions["set"].values:
        raise NotMeasuredError(f"the table has no lesion of {name}")
    return lesions.sel(set=name).isel(subset=0)
