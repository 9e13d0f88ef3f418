"""A comparison in words: the names of its groups and runs, its numbers, and the limits of few runs.

The figures, the terminal and the page all take their words from here.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from headscope.errors import TableError
from headscope.identity import DIFFERS_IN
from headscope.predictions import SingleLabel
from headscope.score import find_score
from headscope.view.reports import LEVEL

UNEQUAL = 2
"""The ratio of spreads (or its reciprocal) above which the rank-sum test alone is not taken as a test of means.

In simulations of 10 against 10 normal runs with equal means and 72 heads, some head has a q of at most 0.05 in 7 of 100
simulations at a ratio of 2, and in 12 of 100 at a ratio of 4 (docs/howto/compare.md).
"""


def check_comparison(comparison: xr.Dataset) -> xr.Dataset:
    """Return a comparison unchanged if it can be shown; otherwise raise an error.

    Raises:
        TableError: the table is not a comparison, or its model has several attention types.
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


def list_groups(comparison: xr.Dataset) -> list[str]:
    """Return the names of the groups: ``task`` and, if the comparison has one, ``control``."""
    return [str(group) for group in comparison["group"].values]


def name_group(comparison: xr.Dataset, group: str) -> str:
    """Return the name of the task that the runs of a group were tuned on, or ``control``."""
    return str(comparison.attrs.get("task") or "task") if group == "task" else group


def describe_group(comparison: xr.Dataset, group: str) -> str:
    """Return the name of a group with its number of runs: ``negation, 10 runs``."""
    return f"{name_group(comparison, group)}, {format_runs(int(comparison['runs'].sel(group=group)))}"


def format_runs(count: int) -> str:
    """Return a number of runs in words: ``1 run``, ``10 runs``."""
    return f"{count} run{'' if count == 1 else 's'}"


def name_variable(variable: str) -> str:
    """Return a variable in words, with a capital for a letter before a digit: ``scope F1``."""
    return re.sub(r"\b[a-z](?=\d+\b)", lambda match: match[0].upper(), variable.replace("_", " "))


def describe_comparison(comparison: xr.Dataset) -> str:
    """Return the compared variable in words, with its labels along other dimensions."""
    places = json.loads(comparison.attrs.get("where", "{}")).values()
    return ", ".join([name_variable(comparison.attrs["variable"]), *(str(place).replace("_", " ") for place in places)])


def describe_single_labels(models: Iterable[SingleLabel]) -> list[str]:
    """Return a sentence about each set of models that predict one label for all texts."""
    return [_describe_single_label(each) for each in models]


def _describe_single_label(models: SingleLabel) -> str:
    *first, last = models.runs or ("",)
    names = f"{', '.join(first)} and {last}" if first else last
    subject = f"The runs {names} name" if first else f"The run {names} names" if names else "The model names"
    whom, them = "all words of" if models.is_of_words else "all", "them" if first else "it"
    apart = "they tell" if first else "it tells"
    return (
        f"{subject} one label ({models.label!r}) for {whom} {models.texts:,} texts: {apart} no labels apart, and what "
        f"disabling a head changes cannot be seen in {them}."
    )


def in_percent(comparison: xr.Dataset) -> xr.Dataset:
    """Return a comparison with its shares in percent; a comparison of another unit stays as it is."""
    units = str(comparison["before"].attrs["units"])
    if not units.startswith("share"):
        return comparison
    shares = comparison[[name for name, values in comparison.items() if values.attrs["units"] == units]]
    percent = {"units": units.replace("share", "%", 1)}
    return comparison.assign({name: (100 * v).assign_attrs(v.attrs | percent) for name, v in shares.items()})


def name_unit(comparison: xr.Dataset) -> str:
    """Return the unit of the compared variable."""
    return str(comparison["before"].attrs["units"])


def count_digits(comparison: xr.Dataset) -> int:
    """Return the number of decimals to show: 1 for percent, else 3."""
    return 1 if name_unit(comparison).startswith("%") else 3


def is_of_score(comparison: xr.Dataset) -> bool:
    """Return False if the compared variable only describes where attention goes; True for any other variable."""
    score = find_score(comparison, str(comparison.attrs["variable"]))
    return score is None or score.is_ratio


def format_number(value: float, digits: int = 3, *, sign: bool = False) -> str:
    """Return a value rounded to `digits` decimals; an empty string for NaN."""
    return "" if math.isnan(value) else f"{value:{'+' if sign else ''}z.{digits}f}".replace("-", "−")


def format_ends(lower: float, upper: float, *, digits: int = 3, sign: bool = False) -> str:
    """Return the ends of an interval in brackets; an empty string if an end is missing."""
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return ""
    return f"[{format_number(lower, digits, sign=sign)}, {format_number(upper, digits, sign=sign)}]"


def format_interval(value: float, lower: float, upper: float, *, digits: int = 3, sign: bool = False) -> str:
    """Return a value followed by its 95 % interval if it has one; an empty string if both are missing."""
    return f"{format_number(value, digits, sign=sign)} {format_ends(lower, upper, digits=digits, sign=sign)}".strip()


def format_spread(values: ArrayLike, digits: int = 3) -> str:
    """Return mean ± standard deviation over runs (ddof 0, as in the paper); for a single run, its value."""
    of_runs = np.asarray(values, dtype=float)
    known = of_runs[np.isfinite(of_runs)]
    if not len(known):
        return ""
    mean = format_number(float(known.mean()), digits)
    return mean if len(known) == 1 else f"{mean} ± {format_number(float(known.std()), digits)}"


def format_ratio(ratio: float) -> str:
    """Return a ratio with two significant digits; an empty string for NaN."""
    return "" if math.isnan(ratio) else "∞" if math.isinf(ratio) else f"{ratio:.2g}"


def format_p(p: float) -> str:
    """Return a p-value with four significant digits, as papers print it; an empty string for NaN."""
    if math.isnan(p):
        return ""
    return f"{p:.3e}" if p < 0.001 else f"{p:.4g}"


def format_brief_p(p: float) -> str:
    """Return a p-value with three decimals; an empty string for NaN."""
    return "" if math.isnan(p) else "<.001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def describe_test(comparison: xr.Dataset) -> tuple[str, str]:
    """Return the test of a change: the prefix of its variables, and its name in words.

    With a control, the test compares the task with it; otherwise it compares after with before.
    """
    if "control" in list_groups(comparison):
        return "", f"{name_group(comparison, 'task')} against control, rank-sum"
    return "before_", "after against before, signed-rank"


def select_outcome(comparison: xr.Dataset, name: str, prefix: str = "") -> xr.DataArray:
    """Return a result of the test of the task, such as ``p``, ``q`` or ``p_least`` (`describe_test` names the test).

    The prefix ``layer_``, ``average_`` or ``best_`` selects layers, the average head or the best head; by default, the
    result has a value for each head.
    """
    values = comparison[f"{prefix}{describe_test(comparison)[0]}{name}"]
    return values.sel(group="task") if "group" in values.dims else values


def name_outcome(comparison: xr.Dataset, name: str, prefix: str = "") -> str:
    """Return the name of the column with the values of `select_outcome` in `headscope.view.comparison_frames`."""
    test, _ = describe_test(comparison)
    return f"{prefix}{test}{name}" + ("_task" if test else "")


def count_sides(comparison: xr.Dataset) -> tuple[int, int]:
    """Return the numbers of surely changed heads (`select_standing`) that lie above and below the reference.

    The reference is the control or, without a control, the model before.
    """
    change = comparison["change"].sel(group="task")
    if "control" in list_groups(comparison):
        change = change - comparison["change"].sel(group="control")
    standing = select_standing(comparison)
    return int((standing & (change > 0)).sum()), int((standing & (change < 0)).sum())


def select_standing(comparison: xr.Dataset, prefix: str = "") -> xr.DataArray:
    """Return True where the means surely differ: q and, with a control, Welch's q are at most `LEVEL`.

    There is a value for each head or, with the prefix ``layer_``, for each layer.
    """
    small = select_outcome(comparison, "q", prefix) <= LEVEL
    return small & (comparison[f"{prefix}welch_q"] <= LEVEL) if "welch_q" in comparison else small


def describe_left_out(comparison: xr.Dataset) -> str:
    """Return a phrase with the number of heads that are not compared, and why; empty if all are compared."""
    count = int(comparison.attrs["heads_left_out"])
    return f", {count} left out, which lack a value before or in a run" if count else ""


def describe_differences(comparison: xr.Dataset) -> str:
    """Return a sentence on parts of the models, other than weights, that differ; empty if no other part differs."""
    differences = comparison.attrs.get(DIFFERS_IN, "")  # older comparisons lack the attribute
    if differences in {"", "weights"}:
        return ""
    return f"The models before and after differ in {differences}: a change need not come from the weights."


def describe_too_few(comparison: xr.Dataset) -> str:
    """Return a sentence on the question that too few runs cannot answer; empty if p can be as low as `LEVEL`."""
    least = float(select_outcome(comparison, "p_least"))
    if least <= LEVEL:
        return ""
    with_control = "control" in list_groups(comparison)
    question = "whether the task changes more than its control" if with_control else "whether tuning changes anything"
    return (
        f"With {_count_runs(comparison)}, p is {least:.3g} at least: this test cannot show {question}; tune more seeds."
    )


def _count_runs(comparison: xr.Dataset) -> str:
    """Return the numbers of runs in words: ``5 against 5 runs``, or ``5 runs`` without a control."""
    first, *other = (int(count) for count in comparison["runs"].values)
    return f"{first} against {other[0]} runs" if other else format_runs(first)


def describe_needed(comparison: xr.Dataset) -> str:
    """Return a sentence on the number of heads that must have the smallest p before any head has a small q.

    It is empty if the runs are too few for a small q.
    """
    needed, heads = float(select_outcome(comparison, "heads_needed")), comparison.attrs["heads"]
    if math.isnan(needed):
        return ""
    least = f"With {_count_runs(comparison)}, p is {float(select_outcome(comparison, 'p_least')):.3g} at least"
    if needed == 1:
        return f"{least}: one head of {heads} with that p has q ≤ {LEVEL}."
    return f"{least}: no head has q ≤ {LEVEL} unless at least {needed:.0f} of {heads} heads have it."


def describe_null(comparison: xr.Dataset) -> str:
    """Return a sentence about the null hypothesis of the exact test."""
    task = name_group(comparison, "task")
    if "control" in list_groups(comparison):
        same = f"the runs of {task} and of the control have one distribution"
        return f"Null of p and q: {same}, so unequal spreads alone can make them small."
    return f"Null of p and q: the changes with {task} are symmetric around 0."


def describe_welch(comparison: xr.Dataset) -> str:
    """Return sentences about Welch's test and the ratio of spreads; empty without a control."""
    if "welch_p" not in comparison:
        return ""
    if min(comparison["runs"].values) < 2:
        return "Welch's p and the ratio of spreads need two runs of each group at least."
    null = "Null of Welch's p and q: the means are equal, whatever the spreads; runs are taken as about normal."
    return f"{null} Ratio of spreads: the task's standard deviation over runs divided by the control's (ddof 1)."


def describe_spreads(comparison: xr.Dataset) -> str:
    """Return a sentence about heads whose spreads are so unequal that a small p does not mean unequal means.

    It is empty if no head has a ratio of spreads.
    """
    if "spread_ratio" not in comparison or not bool(comparison["spread_ratio"].notnull().any()):
        return ""
    ratio = comparison["spread_ratio"]
    count = int(((ratio > UNEQUAL) | (ratio < 1 / UNEQUAL)).sum())
    heads = f"({count} of {comparison.attrs['heads']} heads)"
    return (
        f"Where spreads differ by more than a factor of {UNEQUAL} {heads}, a small p alone is no sign of unequal means."
    )


def list_layer_values(comparison: xr.Dataset, group: str) -> Iterator[tuple[int, np.ndarray]]:
    """Yield each layer with the mean change of its heads, one value for each run that has one."""
    changes = comparison["layer_change"].sel(group=group).transpose("layer", "run")
    for layer, values in zip(changes["layer"].values, changes.values, strict=True):
        yield int(layer), values[np.isfinite(values)]
