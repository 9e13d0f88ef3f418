"""Extractors for models that were fine-tuned with several seeds: functions of tables that return a `Value`.

They read a head table with the dimension ``run`` (in the code: `runs`), and return the mean over runs with its 95 % t
interval, or the standard deviation. Shares are in percent. The best head is always the head that was best before
fine-tuning (in Zhao and Bethard 2020: by F1).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from headscope.analyse.agreement import consistencies
from headscope.analyse.ends import ENDS
from headscope.analyse.ranktests import dominance, least_rank_sum, rank_sum
from headscope.analyse.student import standard_error, t_interval
from headscope.corpora.text import format_count
from headscope.heads import head_name
from headscope.studies.extractors import PERCENT, find_best, find_between, make_extractor, select
from headscope.studies.study import RECORDED, SIGNIFICANT, Extractor, NotMeasuredError, Value

PerRun = Float[np.ndarray, " run"]

RunExtractor = Callable[..., PerRun]
"""A function of a claim's tables that returns one number for each run."""

AnyExtractor = TypeVar("AnyExtractor", bound=Callable[..., Any])


def on_tables(extractor: AnyExtractor, *positions: int) -> AnyExtractor:
    """Return an extractor that passes on only the tables of a claim at `positions`, in this order."""
    return cast(AnyExtractor, lambda *tables: extractor(*(tables[position] for position in positions)))


def mean_over_runs(extractor: RunExtractor) -> Extractor:
    """Return an extractor of the mean of a number over runs, with its interval."""
    return lambda *tables: average_runs(extractor(*tables))


def deviation_over_runs(extractor: RunExtractor) -> Extractor:
    """Return an extractor of the standard deviation of a number over runs (``ddof`` 0), as the paper prints it."""

    def read(*tables: xr.Dataset) -> Value:
        values = extractor(*tables)
        if len(values) < 2:
            raise NotMeasuredError("a single run has no standard deviation; take more seeds")
        return Value(float(np.std(values)), _describe_runs(values))

    return read


def average_runs(values: PerRun) -> Value:
    """Return the mean of a number over runs, with its 95 % t interval; a single run has no interval."""
    average, count = float(np.mean(values)), len(values)
    if count < 2:
        return Value(average, _describe_runs(values))
    lower, upper = t_interval(average, standard_error(values), count - 1)
    return Value(average, _describe_runs(values), float(lower), float(upper))


@make_extractor
def average_head(runs: xr.Dataset, /, variable: str, **place: str) -> PerRun:
    """Return the mean of a variable over all heads in each run, at the coordinates `place`."""
    return PERCENT * _get_runs(runs, variable, place).mean(("layer", "head")).values


@make_extractor
def deep_layers(runs: xr.Dataset, /, variable: str, depth: float, *, scale: float = PERCENT, **place: str) -> PerRun:
    """Return the mean of a variable in each run over the heads of the layers deeper than `depth`, a share of layers."""
    values = _get_runs(runs, variable, place)
    return np.asarray(scale * values.isel(layer=_find_deeper(values, depth)).mean(("layer", "head")).values)


@make_extractor
def lowest_other_layer(runs: xr.Dataset, variable: str, depth: float, *, scale: float = PERCENT) -> PerRun:
    """Return the lowest layer mean of a variable in each run, among the layers up to `depth`, a share of layers."""
    values = _get_runs(runs, variable)
    layers = values.isel(layer=~_find_deeper(values, depth)).mean("head")
    if not layers.sizes["layer"]:
        raise NotMeasuredError("the model has no other layers")
    return np.asarray(scale * layers.min("layer").values)


def _find_deeper(values: xr.DataArray, depth: float) -> Bool[np.ndarray, " layer"]:
    return np.asarray(values["layer"].values / values.sizes["layer"] > depth + 1e-9)


@make_extractor
def best_head_after(runs: xr.Dataset, /, variable: str, **place: str) -> Value:
    """Return the value of the head that is best after fine-tuning, by its mean over runs."""
    values = _get_runs(runs, variable, place)
    best = find_best(values.mean("run"))
    return replace(average_runs(PERCENT * values.sel(best).values), detail=head_name(**best))


@make_extractor
def head_value(table: xr.Dataset, /, layer: int, head: int, variable: str, **place: str) -> Value:
    """Return the value of a given head, as a mean over runs or, before fine-tuning, of the one model."""
    if layer > table.sizes["layer"] or head > table.sizes["head"]:
        raise NotMeasuredError(f"the model has no head {head_name(layer, head)}")
    values = _select_known(table, variable, place).sel(layer=layer, head=head)
    return replace(average_runs(np.atleast_1d(PERCENT * values.values)), detail=head_name(layer, head))


def _select_known(table: xr.Dataset, variable: str, place: Mapping[str, str]) -> xr.DataArray:
    values = select(table, variable, place)[variable]
    if not bool(values.notnull().any()):
        raise NotMeasuredError("no head has a value: the corpus or the model has nothing to measure")
    return values


def best_head_before(variable: str, by: str) -> RunExtractor:
    """Return an extractor of the value, in each run, of the head that was best by `by` before fine-tuning.

    The extractor takes a table from before fine-tuning, and a table of runs.
    """
    return lambda before, runs: PERCENT * _get_runs(runs, variable).sel(find_best_before(before, by)).values


def find_best_before(before: xr.Dataset, by: str) -> dict[str, Any]:
    """Return the coordinates of the head with the greatest value of `by`; if several have it, of the first."""
    return find_best(select(before, by, {})[by])


def consistency_per_run(variable: str) -> RunExtractor:
    """Return an extractor of Kendall's tau between the scores of the heads on two corpora, in each run.

    The extractor takes a table of each corpus, with the same runs.
    """
    return lambda first, second: np.asarray(consistencies(first, second, variable).taus)


def significant_consistencies(variable: str) -> Extractor:
    """Return an extractor of the number of runs whose tau between two corpora differs significantly from 0.

    The test assumes independent heads.
    """
    return lambda first, second: _count_significant(np.asarray(consistencies(first, second, variable).ps))


def rank_sum_effect(task: RunExtractor, control: RunExtractor) -> Extractor:
    """Return an extractor of how far the task's runs lie above the control's, from -1 to 1, with the p-value.

    Of all pairs of a run of the task and a run of the control, it is the share of pairs in which the task's value is
    higher, less the share in which it is lower. The p-value is from the exact two-sided rank-sum test.
    """

    def read(*tables: xr.Dataset) -> Value:
        task_values, control_values = task(*tables), control(*tables)
        counts = f"{len(task_values)} and {len(control_values)} runs"
        # With few runs the p-value cannot be significant, however far apart they are.
        if (least := least_rank_sum(len(task_values), len(control_values))) >= SIGNIFICANT:
            raise NotMeasuredError(f"{counts} cannot give a p-value below {least:.2g}; take more seeds")
        return Value(dominance(task_values, control_values), counts, p=rank_sum(task_values, control_values))

    return read


def rank_sum_p(task: RunExtractor, control: RunExtractor) -> Extractor:
    """Return an extractor of the p-value of `rank_sum_effect` alone, as papers print it; it has no sign."""
    effect = rank_sum_effect(task, control)

    def read(*tables: xr.Dataset) -> Value:
        value = effect(*tables)
        return Value(value.p, value.detail)

    return read


@make_extractor
def model_score(tuned: xr.Dataset, name: str) -> PerRun:
    """Return a score of the fine-tuned models on their task, after their best epoch."""
    if name not in tuned:
        raise NotMeasuredError(f"the runs have no {name.replace('_', ' ')}")
    return np.asarray(PERCENT * tuned[name].values)


@make_extractor
def change_statistic(comparison: xr.Dataset, variable: str, group: str = "task") -> PerRun:
    """Return a variable of a comparison for each run of a group; runs without a value are left out."""
    values = _select_group(comparison, group)[variable].values
    if not (known := np.isfinite(values)).any():
        recorded = variable == "baseline_tau_corrected" and RECORDED in comparison.attrs
        raise NotMeasuredError(NO_FOLDS if recorded else ALIKE)
    return np.asarray(values[known])


NO_FOLDS = "it needs the counts of each part of the corpus, which recorded scores do not have"
ALIKE = "all heads have the same score before, or the same change"


@make_extractor
def significant_changes(comparison: xr.Dataset, sign: int = 0, group: str = "task") -> Value:
    """Return the number of runs in which the change of heads correlates significantly with their score before.

    Only correlations with the sign of `sign` count; 0 counts both signs.
    """
    statistics = comparison.sel(group=group)
    known = statistics["baseline_tau"].notnull().values
    if not known.any():
        raise NotMeasuredError(ALIKE)
    tau, p = (statistics[name].values[known] for name in ("baseline_tau", "baseline_p"))
    return _count_significant(np.where(tau * sign >= 0, p, 1.0) if sign else p)


def corrected_change(comparison: xr.Dataset) -> Value:
    """Return the mean of Kendall's tau between score before and change, from different texts, with its interval.

    Raises:
        NotMeasuredError: the tables lack the counts of each part of the corpus, or there are fewer than two runs.
    """
    detail = mean_over_runs(change_statistic("baseline_tau_corrected"))(comparison).detail
    statistics = _select_group(comparison, "task")
    mean, lower, upper = (float(statistics[f"baseline_tau_mean{end}"]) for end in ENDS)
    return Value(mean, detail, lower, upper)


@make_extractor
def layer_change(
    comparison: xr.Dataset, first: float, last: float, *, group: str = "task", others: bool = False
) -> PerRun:
    """Return the mean change in each run of the layers between two depths; if `others` is true, of all other layers.

    A depth is a share of all layers: layer 6 of 12 is at 0.5.
    """
    changes = _select_group(comparison, group)["layer_change"].dropna("run", how="all")
    chosen = find_between(changes, first, last) != others
    if not chosen.any():
        raise NotMeasuredError(f"none of the {changes.sizes['layer']} layers is that deep")
    return PERCENT * changes.isel(layer=chosen).mean("layer").values


def _select_group(comparison: xr.Dataset, group: str) -> xr.Dataset:
    if group not in comparison["group"].values:
        raise NotMeasuredError(f"the comparison has no {group}")
    return comparison.sel(group=group)


def selectivity(task: xr.Dataset, control: xr.Dataset) -> Value:
    """Return accuracy on the task minus accuracy on the control (Hewitt and Liang 2019)."""
    at_task, at_control = (float(np.mean(model_score("accuracy")(table))) for table in (task, control))
    return Value(at_task - at_control, f"{at_task:.1f} less {at_control:.1f}")


def _get_runs(table: xr.Dataset, variable: str, place: Mapping[str, str] | None = None) -> xr.DataArray:
    if variable not in table or "run" not in table[variable].dims:
        raise NotMeasuredError(f"the table has no {variable} of several runs")
    return _select_known(table, variable, place or {})


def _count_significant(p: PerRun) -> Value:
    return Value(float((p < SIGNIFICANT).sum()), f"of {_describe_runs(p)}")


def _describe_runs(values: PerRun) -> str:
    return format_count(len(values), "run")
