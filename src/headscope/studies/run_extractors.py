"""What a claim reads of models that were fine-tuned with several seeds: functions tables -> `Value`.

A *family* is a head table with the dimension ``run``. What is read of it is the mean over runs with its 95 % t
interval, or their spread. Shares are in percent. The best head is the one that is best before fine-tuning, by F1 in
Zhao and Bethard 2020, whatever is read of it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from scipy.stats import binomtest, t

from headscope.analyse.agreement import consistencies
from headscope.analyse.rank import top_heads
from headscope.analyse.ranktests import least_rank_sum, rank_sum
from headscope.analyse.uncertainty import LEVEL
from headscope.heads import head_name, parse_head
from headscope.studies.extractors import PERCENT
from headscope.studies.study import RECORDED, NotMeasuredError, Read, Value

SIGNIFICANT = 0.05
"""A run counts as significant below this."""

Of = Callable[..., Float[np.ndarray, " run"]]
"""One number for each run, from the tables that a claim is about."""

Reading = TypeVar("Reading", bound=Callable[..., Any])


def at(of: Reading, *places: int) -> Reading:
    """The same, of those of a claim's tables that stand at these places."""
    return cast(Reading, lambda *tables: of(*(tables[place] for place in places)))


def mean(of: Of) -> Read:
    """The mean over runs, with its interval."""
    return lambda *tables: over_runs(of(*tables))


def spread(of: Of) -> Read:
    """The standard deviation over runs, of these runs and not of all that there could be (``ddof`` 0), as printed."""

    def read(*tables: xr.Dataset) -> Value:
        values = of(*tables)
        if len(values) < 2:
            raise NotMeasuredError("a single run has no spread over runs; take more seeds")
        return Value(float(np.std(values)), _runs(values))

    return read


def over_runs(values: Float[np.ndarray, " run"]) -> Value:
    """The mean of some runs, with its 95 % t interval; none for a single run."""
    middle, count = float(np.mean(values)), len(values)
    if count < 2:
        return Value(middle, _runs(values))
    half = float(t.ppf((1 + LEVEL) / 2, count - 1) * np.std(values, ddof=1) / math.sqrt(count))
    return Value(middle, _runs(values), middle - half, middle + half)


def of_average_head(variable: str) -> Of:
    """The mean over all heads; of a family."""
    return lambda family: PERCENT * _family(family, variable).mean(("layer", "head")).values


def of_heads_mean(variable: str, **place: str) -> Of:
    """The mean over all heads at a place along the other dimensions; of a family."""
    return lambda family: of_average_head(variable)(_at(family, variable, place))


def of_deep_layers(variable: str, depth: float, *, scale: float = PERCENT, **place: str) -> Of:
    """The mean over the heads of the layers that lie deeper, as a share of all layers; of a family."""

    def read(family: xr.Dataset) -> Float[np.ndarray, " run"]:
        values = _family(_at(family, variable, place), variable)
        return np.asarray(scale * values.isel(layer=_deeper(values, depth)).mean(("layer", "head")).values)

    return read


def least_of_other_layers(variable: str, depth: float, *, scale: float = PERCENT) -> Of:
    """The least mean over the heads of one of the layers that do not lie deeper; of a family."""

    def read(family: xr.Dataset) -> Float[np.ndarray, " run"]:
        values = _family(family, variable)
        layers = values.isel(layer=~_deeper(values, depth)).mean("head")
        if not layers.sizes["layer"]:
            raise NotMeasuredError("the model has no other layers")
        return np.asarray(scale * layers.min("layer").values)

    return read


def _deeper(values: xr.DataArray, depth: float) -> Bool[np.ndarray, " layer"]:
    return np.asarray(values["layer"].values / values.sizes["layer"] > depth + 1e-9)


def best_after(variable: str, **place: str) -> Read:
    """The head that is best after fine-tuning, in the mean over runs; of a family."""

    def read(family: xr.Dataset) -> Value:
        values = _family(_at(family, variable, place), variable)
        best = best_before(values.mean("run").to_dataset(name=variable), variable)
        return replace(over_runs(PERCENT * values.sel(best).values), of=head_name(**best))

    return read


def at_head(layer: int, head: int, variable: str, **place: str) -> Read:
    """A head by its number; of a family, or of the table before."""

    def read(table: xr.Dataset) -> Value:
        if layer > table.sizes["layer"] or head > table.sizes["head"]:
            raise NotMeasuredError(f"the model has no head {head_name(layer, head)}")
        values = _at(table, variable, place)[variable].sel(layer=layer, head=head)
        runs = np.atleast_1d(PERCENT * values.values)
        return replace(over_runs(runs), of=head_name(layer, head))

    return read


def _at(table: xr.Dataset, variable: str, place: Mapping[str, str]) -> xr.Dataset:
    if variable not in table:
        raise NotMeasuredError(f"the table has no {variable}")
    for dim, label in place.items():
        if label not in table[dim].values:
            raise NotMeasuredError(f"the corpus has no {dim} {label}")
    found = table.sel(dict(place))
    if not bool(found[variable].notnull().any()):
        raise NotMeasuredError("there is nothing of this kind in the corpus or the model")
    return found


def of_best_head(variable: str, by: str) -> Of:
    """The head that was best before; of a table and a family."""
    return lambda before, family: PERCENT * _family(family, variable).sel(best_before(before, by)).values


def best_before(before: xr.Dataset, by: str) -> dict[str, int]:
    """The coordinates of the head with the greatest value; the first of equals."""
    if by not in before:
        raise NotMeasuredError(f"the table has no {by}")
    found = top_heads(before, by, 1)
    if not found:
        raise NotMeasuredError("no head has a value")
    layer, head = parse_head(found[0][0], before)
    return {"layer": layer, "head": head}


def of_consistency(variable: str) -> Of:
    """Kendall's tau between two corpora; of two families of the same runs."""
    return lambda one, other: np.asarray(consistencies(one, other, variable).taus)


def significant_consistencies(variable: str) -> Read:
    """In how many runs it differs from 0, were heads independent."""
    return lambda one, other: _significant(np.asarray(consistencies(one, other, variable).ps))


def rank_sum_p(task: Of, control: Of) -> Read:
    """The p-value of the exact two-sided rank-sum test between the runs of the task and those of the control."""

    def read(*tables: xr.Dataset) -> Value:
        one, other = task(*tables), control(*tables)
        runs = f"{len(one)} and {len(other)} runs"
        # However far apart they are; a verdict would speak of the number of runs alone.
        if (least := least_rank_sum(len(one), len(other))) >= SIGNIFICANT:
            raise NotMeasuredError(f"{runs} cannot give a p-value below {least:.2g}; take more seeds")
        return Value(rank_sum(one, other), runs)

    return read


def score(name: str) -> Of:
    """A score of the fine-tuned models themselves, in the epoch that was kept."""

    def read(tuned: xr.Dataset) -> Float[np.ndarray, " run"]:
        if name not in tuned:
            raise NotMeasuredError(f"the runs have no {name.replace('_', ' ')}")
        return np.asarray(PERCENT * tuned[name].values)

    return read


def of_change(variable: str, group: str = "task") -> Of:
    """A variable of a comparison that has one number for each run of a group."""

    def read(comparison: xr.Dataset) -> Float[np.ndarray, " run"]:
        if group not in comparison["group"].values:
            raise NotMeasuredError(f"the comparison has no {group}")
        values = comparison[variable].sel(group=group).values
        if not (known := np.isfinite(values)).any():
            recorded = variable == "baseline_tau_corrected" and RECORDED in comparison.attrs
            raise NotMeasuredError(NO_FOLDS if recorded else ALIKE)
        return np.asarray(values[known])

    return read


NO_FOLDS = "it needs the counts of each part of the corpus, which recorded scores do not have"
ALIKE = "all heads have the same score before, or the same change"


def significant_changes(sign: int = 0, group: str = "task") -> Read:
    """In how many runs a head's change goes with its score before: upwards, downwards or (sign 0) either way."""

    def read(comparison: xr.Dataset) -> Value:
        of = comparison.sel(group=group)
        known = of["baseline_tau"].notnull().values
        if not known.any():
            raise NotMeasuredError(ALIKE)
        tau, p = (of[name].values[known] for name in ("baseline_tau", "baseline_p"))
        return _significant(np.where(tau * sign >= 0, p, 1.0) if sign else p)

    return read


def share_of_rich_runs(comparison: xr.Dataset) -> Value:
    """The percentage of runs in which the best heads gained most, with the interval of Clopper and Pearson."""
    found = significant_changes(+1)(comparison)
    runs = int(comparison["baseline_tau"].sel(group="task").notnull().sum())
    share = binomtest(int(found.number), runs)
    ends = share.proportion_ci(LEVEL)
    return Value(PERCENT * share.statistic, found.of, PERCENT * ends.low, PERCENT * ends.high)


def of_layers(first: float, last: float, *, group: str = "task", others: bool = False) -> Of:
    """The mean change of the heads of some layers, or of all others.

    Args:
        first: depth of the first of them, as a share of all layers.
        last: depth of the last.
        group: of runs.
        others: the layers that are not among them.
    """

    def read(comparison: xr.Dataset) -> Float[np.ndarray, " run"]:
        if group not in comparison["group"].values:
            raise NotMeasuredError(f"the comparison has no {group}")
        changes = comparison["layer_change"].sel(group=group).dropna("run", how="all")
        depth = changes["layer"].values / changes.sizes["layer"]
        inside = (depth >= first - 1e-9) & (depth <= last + 1e-9)
        chosen = inside != others
        if not chosen.any():
            raise NotMeasuredError(f"no layer of {changes.sizes['layer']} lies so deep")
        return PERCENT * changes.isel(layer=np.flatnonzero(chosen)).mean("layer").values

    return read


def selectivity(task: xr.Dataset, control: xr.Dataset) -> Value:
    """Accuracy at the task less accuracy at the control (Hewitt and Liang 2019)."""
    one, other = (float(np.mean(score("accuracy")(table))) for table in (task, control))
    return Value(one - other, f"{one:.1f} less {other:.1f}")


def _family(family: xr.Dataset, variable: str) -> xr.DataArray:
    if variable not in family or "run" not in family[variable].dims:
        raise NotMeasuredError(f"the table has no {variable} of several runs")
    return family[variable]


def _significant(p: Float[np.ndarray, " run"]) -> Value:
    return Value(float((p < SIGNIFICANT).sum()), f"of {_runs(p)}")


def _runs(values: Float[np.ndarray, " run"]) -> str:
    return "1 run" if len(values) == 1 else f"{len(values)} runs"
