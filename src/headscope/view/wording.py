"""How one speaks of a comparison: its groups and runs, its numbers, and what so few runs can show.

The figures, the terminal and the page use the same words; they come from here.
"""

import json
import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from headscope.errors import TableError
from headscope.view.reported import LEVEL

NO_SCORES = ("token_class_mass",)
"""Variables by which no head is good."""


def checked(comparison: xr.Dataset) -> xr.Dataset:
    """The comparison itself.

    Raises:
        TableError: it is none, or it is of a model with several attention types.
    """
    if not {"before", "change", "best_head"} <= {*comparison.data_vars, *comparison.attrs}:
        raise TableError("the table is not a comparison; `headscope compare` makes one of tables before and after.")
    if "attention_type" in comparison.dims:
        attention_types = ", ".join(map(str, comparison["attention_type"].values))
        raise TableError(
            f"the comparison is of a model with the attention types {attention_types}, and what is shown has one; "
            "compare the tables of one attention type."
        )
    return comparison


def groups_of(comparison: xr.Dataset) -> list[str]:
    """``task``, and ``control`` where there is one."""
    return [str(group) for group in comparison["group"].values]


def called(comparison: xr.Dataset, group: str) -> str:
    """What the runs of a group were tuned on: the name of the task, or that it is the control."""
    return str(comparison.attrs.get("task") or "task") if group == "task" else group


def counted(comparison: xr.Dataset, group: str) -> str:
    """A group and its runs in words: ``negation, 10 runs``."""
    return f"{called(comparison, group)}, {of_runs(int(comparison['runs'].sel(group=group)))}"


def of_runs(count: int) -> str:
    """So many runs in words."""
    return f"{count} run{'' if count == 1 else 's'}"


def named(variable: str) -> str:
    """A variable in words: ``scope_f1`` is the scope F1."""
    return variable.replace("_", " ").replace(" f1", " F1")


def spoken(comparison: xr.Dataset) -> str:
    """What is compared, in words, with its place along other dimensions."""
    places = json.loads(comparison.attrs.get("where", "{}")).values()
    return ", ".join([named(comparison.attrs["variable"]), *(str(place).replace("_", " ") for place in places)])


def factor(comparison: xr.Dataset) -> int:
    """100 where the variable is a share, which is told in percent; else 1."""
    return 100 if str(comparison["before"].attrs["units"]).startswith("share") else 1


def unit(comparison: xr.Dataset) -> str:
    """In which unit the numbers of `factor` are."""
    units = str(comparison["before"].attrs["units"])
    return units.replace("share", "%", 1) if factor(comparison) == 100 else units


def scored(comparison: xr.Dataset) -> bool:
    """Whether it is of a score; where attention goes is none, and none of its heads are rich."""
    return str(comparison.attrs["variable"]) not in NO_SCORES


def number(value: float, scale: int = 1, *, sign: bool = False) -> str:
    """A value with three decimals or, of a share, in percent with one; empty where there is none."""
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


def gain(change: xr.DataArray, lower: xr.DataArray, upper: xr.DataArray, scale: int = 1) -> str:
    """A mean change over runs with its 95 % interval, where there is one."""
    ends = [number(float(end), scale, sign=True) for end in (lower, upper)]
    return number(float(change), scale, sign=True) + (f" [{ends[0]}, {ends[1]}]" if all(ends) else "")


def probability(p: float) -> str:
    """A p-value with the digits that papers print; empty where there is none."""
    if math.isnan(p):
        return ""
    return f"{p:.3e}" if p < 0.001 else f"{p:.4g}"


def against(comparison: xr.Dataset) -> tuple[str, str]:
    """The test of a change, as names of variables begin and in words: against the control where there is one."""
    if "control" in groups_of(comparison):
        return "", f"{called(comparison, 'task')} against control, rank-sum"
    return "before_", "after against before, signed-rank"


def outcome(comparison: xr.Dataset, found: str, of: str = "") -> xr.DataArray:
    """What the test of `against` found of the task.

    Args:
        comparison: of which.
        found: ``p``, ``q`` or ``p_least``.
        of: nothing for each head; else ``layer_``, ``average_`` or ``best_``.
    """
    values = comparison[f"{of}{against(comparison)[0]}{found}"]
    return values.sel(group="task") if "group" in values.dims else values


def sides(comparison: xr.Dataset) -> tuple[int, int]:
    """Of the heads with a q of at most `LEVEL`, those above the control (or above before), and those below."""
    change = comparison["change"].sel(group="task")
    if "control" in groups_of(comparison):
        change = change - comparison["change"].sel(group="control")
    found = outcome(comparison, "q") <= LEVEL
    return int((found & (change > 0)).sum()), int((found & (change < 0)).sum())


def left_out(comparison: xr.Dataset) -> str:
    """How many heads are not compared, and why; empty where all are."""
    count = int(comparison.attrs["heads_left_out"])
    return f", {count} left out, which lack a value before or in a run" if count else ""


def too_few(comparison: xr.Dataset) -> str:
    """What so few runs cannot show, in a sentence; empty where they are enough for a p of 0.05."""
    least = float(outcome(comparison, "p_least"))
    if least <= LEVEL:
        return ""
    runs = [int(count) for count in comparison["runs"].values]
    told = f"{runs[0]} against {runs[1]} runs" if len(runs) == 2 else of_runs(runs[0])
    asked = "whether the task changes more than its control" if len(runs) == 2 else "whether tuning changes anything"
    return f"With {told}, p is {least:.3g} at least: {asked} cannot be told by this test; tune more seeds."


def layer_values(comparison: xr.Dataset, group: str) -> Iterator[tuple[int, np.ndarray]]:
    """Each layer with the mean change of its heads, one value for each run that has one."""
    changes = comparison["layer_change"].sel(group=group).transpose("layer", "run")
    for layer, values in zip(changes["layer"].values, changes.values, strict=True):
        yield int(layer), values[np.isfinite(values)]
