"""How one speaks of a comparison: its groups and runs, its numbers, and what so few runs can show.

The figures, the terminal and the page use the same words; they come from here.
"""

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from headscope.view.reported import LEVEL

BIAS = (
    "The published τ ranks heads by their score before and by their own change. What is chance in the score before is "
    "in its change with the opposite sign, so that this τ is below 0 where nothing changes (about −0.5 if scores are "
    "chance alone). The corrected τ takes the score before from one half of the documents, the change from the other."
)
"""Zhao and Bethard 2020, section 5, on whether the rich get richer."""

INDEPENDENT = "The p-values of Kendall's τ take heads as independent, which they are not."


def groups_of(comparison: xr.Dataset) -> list[str]:
    """``task``, and ``control`` where there is one."""
    return [str(group) for group in comparison["group"].values]


def called(comparison: xr.Dataset, group: str) -> str:
    """What the runs of a group were tuned on: the name of the task, or that it is the control."""
    return str(comparison.attrs.get("task") or "task") if group == "task" else group


def runs_of(comparison: xr.Dataset, group: str) -> int:
    """How many runs a group has."""
    return int(comparison["average"].sel(group=group).notnull().sum())


def counted(comparison: xr.Dataset, group: str) -> str:
    """A group and its runs in words: ``negation, 10 runs``."""
    runs = runs_of(comparison, group)
    return f"{called(comparison, group)}, {runs} run{'' if runs == 1 else 's'}"


def spoken(variable: str) -> str:
    """The name of a variable in words: ``scope_f1`` is the scope F1."""
    return variable.replace("_", " ").replace(" f1", " F1")


def factor(comparison: xr.Dataset) -> int:
    """100 where the variable is a share, which is told in percent; else 1."""
    return 100 if str(comparison["before"].attrs["units"]).startswith("share") else 1


def number(value: float, scale: int = 1, *, sign: bool = False) -> str:
    """A value with three significant digits or, of a share, in percent with one decimal; empty where there is none."""
    if math.isnan(value):
        return ""
    digits = 1 if scale == 100 else 3
    rounded = round(scale * value, digits) + 0.0  # so that none is "-0.0"
    return f"{rounded:{'+' if sign else ''}.{digits}f}".replace("-", "−")


def spread(values: xr.DataArray, scale: int = 1) -> str:
    """Mean and standard deviation over runs (of these runs, as the paper has it: ddof 0); of one run, its value."""
    known = values.values[np.isfinite(values.values)]
    if not len(known):
        return ""
    mean = number(float(known.mean()), scale)
    return mean if len(known) == 1 else f"{mean} ± {number(float(known.std()), scale)}"


def interval(value: float, lower: float, upper: float, scale: int = 1) -> str:
    """A change and its 95 % interval, where there is one."""
    ends = "" if math.isnan(lower) else f" [{number(lower, scale, sign=True)}, {number(upper, scale, sign=True)}]"
    return f"{number(value, scale, sign=True)}{ends}"


def probability(p: float) -> str:
    """A p-value with the digits that papers print; empty where there is none."""
    if math.isnan(p):
        return ""
    return f"{p:.3e}" if p < 0.001 else f"{p:.4g}"


def smallest_rank_sum(one: int, other: int) -> float:
    """The smallest p that the exact two-sided rank-sum test can give for so many runs against so many.

    >>> smallest_rank_sum(3, 3)
    0.1
    """
    return min(1.0, 2 / math.comb(one + other, one))


def smallest_signed_rank(runs: int) -> float:
    """The smallest p that the exact two-sided signed-rank test can give for so many runs (or pairs of them).

    >>> smallest_signed_rank(5)
    0.0625
    """
    return min(1.0, 2.0 ** (1 - runs))


def head_test(comparison: xr.Dataset) -> tuple[str, str]:
    """The variable with the q of each head's change, and the test in words: against the control where there is one."""
    if "control" in groups_of(comparison):
        return "q", f"{_against(comparison)}, rank-sum"
    return "before_q", "after against before, signed-rank"


def smallest(comparison: xr.Dataset) -> float:
    """The smallest p that the test of each head's change can give for the runs that there are."""
    runs = [runs_of(comparison, group) for group in groups_of(comparison)]
    return smallest_rank_sum(*runs) if len(runs) == 2 else smallest_signed_rank(runs[0])


def too_few(comparison: xr.Dataset) -> str:
    """What so few runs cannot show, in a sentence; empty where they are enough for a p of 0.05."""
    least = smallest(comparison)
    if least <= LEVEL:
        return ""
    if len(groups_of(comparison)) == 2:
        one, other = (runs_of(comparison, group) for group in groups_of(comparison))
        return (
            f"With {one} against {other} runs, p is {least:.2g} at least: whether a change is more than the control's "
            "cannot be told by this test; tune more seeds."
        )
    runs = runs_of(comparison, "task")
    return (
        f"With {runs} run{'' if runs == 1 else 's'}, p is {least:.2g} at least: whether a score changes at all cannot "
        "be told by this test; tune more seeds."
    )


def layer_values(comparison: xr.Dataset, group: str) -> Iterator[tuple[int, np.ndarray]]:
    """Each layer with the mean change of its heads, one value for each run that has one."""
    changes = comparison["layer_change"].sel(group=group).transpose("layer", "run")
    for layer, values in zip(changes["layer"].values, changes.values, strict=True):
        yield int(layer), values[np.isfinite(values)]


def _against(comparison: xr.Dataset) -> str:
    return f"{called(comparison, 'task')} against control"
