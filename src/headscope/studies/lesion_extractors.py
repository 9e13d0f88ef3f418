"""Extractors for tables of lesions: what a model loses without a set of heads, in points of accuracy.

A drop is above 0 if the model is worse without the heads.
"""

import math

import xarray as xr

from headscope.corpora.text import format_count
from headscope.studies.extractors import PERCENT, make_extractor
from headscope.studies.study import NotMeasuredError, Value

ACCURACY = "lesion_accuracy"


@make_extractor
def drop(lesions: xr.Dataset, name: str) -> Value:
    """Return the drop in accuracy without a set of heads, with its interval over texts."""
    row = _select(lesions, name)
    return Value(
        -PERCENT * float(row[ACCURACY]), format_count(int(row["set_member"].sum()), "head"),
        -PERCENT * float(row[f"{ACCURACY}_upper"]), -PERCENT * float(row[f"{ACCURACY}_lower"]),
    )  # fmt: skip


@make_extractor
def drop_beyond_random(lesions: xr.Dataset, name: str) -> Value:
    """Return the drop without a set of heads minus the mean drop without its random sets.

    Its interval comes from the spread of the random sets. The p-value of a positive difference is the one of the
    lesion: exact, and corrected for all sets, metrics and subsets of the table (`headscope.analyse.rank_test`).
    """
    row = _select(lesions, name)
    excess = -PERCENT * float(row[f"{ACCURACY}_excess"])
    random = -PERCENT * float(row[f"{ACCURACY}_random"]) + 0.0  # so that it is not "-0.00"
    return Value(
        excess, f"random sets {random:.2f}",
        -PERCENT * float(row[f"{ACCURACY}_excess_upper"]), -PERCENT * float(row[f"{ACCURACY}_excess_lower"]),
        float(row[f"{ACCURACY}_p"]) if excess > 0 else math.nan,
    )  # fmt: skip


@make_extractor
def drop_beyond_set(lesions: xr.Dataset, name: str, *others: str) -> Value:
    """Return the drop without a set of heads minus the largest drop without one of the `others`, with its interval.

    Both drops are measured on the same examples, so the interval is paired. It reaches at least as far as it would if
    no example had changed: an event that occurs in none of n examples may occur in 3 of n (the rule of three, Hanley
    and Lippman-Hand 1983).
    """
    own, drops = _select(lesions, name), {other: drop(other)(lesions).number for other in others}
    if f"{ACCURACY}_less" not in own:
        raise NotMeasuredError("the table does not compare sets of heads with each other")
    less = own.sel(set_other=max(drops, key=lambda other: drops[other]))
    difference = -PERCENT * float(less[f"{ACCURACY}_less"]) + 0.0  # so that it is not "-0.00"
    upper, lower = (-PERCENT * float(less[f"{ACCURACY}_less_{end}"]) for end in ("lower", "upper"))
    least = PERCENT * 3 / int(own["examples"])
    return Value(difference, "", min(lower, difference - least), max(upper, difference + least))


def _select(lesions: xr.Dataset, name: str) -> xr.Dataset:
    if ACCURACY not in lesions or name not in lesions["set"].values:
        raise NotMeasuredError(f"the table has no lesion of {name}")
    return lesions.sel(set=name).isel(subset=0)
