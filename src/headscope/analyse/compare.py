"""The change of heads by fine-tuning, compared with the change by a control task.

This follows Zhao and Bethard 2020, sections 5 and 6, for any variable with one value for each head: the same heads are
measured before and after tuning on a task and on its control, with several seeds each, and the runs are compared.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import xarray as xr

from headscope import heads
from headscope.analyse.change_against_baseline import correlate_change
from headscope.analyse.comparable import check_before_after, name_table, runs_of, seeds_of, split_runs
from headscope.analyse.ends import describe_ends
from headscope.analyse.rank import list_highest, values_of_heads
from headscope.analyse.ranktests import WILCOXON, least_rank_sum, least_signed_rank, rank_sums, signed_ranks
from headscope.analyse.significance import BENJAMINI, count_needed, false_discoveries
from headscope.analyse.student import t_interval
from headscope.analyse.uncertainty import ALPHA
from headscope.analyse.welch import WELCH, compare_means
from headscope.errors import TableError
from headscope.identity import DIFFERS_IN, name_differences
from headscope.score import main_score

SOURCE = "Zhao and Bethard 2020, section 5"
STUDENT = "Student's t over runs"
SPREAD = "standard deviations over runs (ddof 1)"


def compare_variable(
    before: xr.Dataset,
    after: xr.Dataset,
    control: xr.Dataset | None = None,
    variable: str = "",
    *,
    where: Mapping[str, str | int] | None = None,
) -> xr.Dataset:
    """Compare a variable of the heads before and after tuning: how much, where and how surely it changes.

    The result has the dimensions ``group`` (``task``, and ``control`` if there is a control), ``run`` (1, 2, ...; a
    group with fewer runs is filled with NaN), ``layer`` and ``head``. Heads that lack a value before tuning or in a run
    are left out of all means and tests, and counted (attribute ``heads_left_out``).

    * ``before``, ``after``; ``change``, the mean over runs, with the ends of its 95 % t interval over runs,
      ``change_lower`` and ``change_upper`` (NaN for one run);
    * for the mean over the heads of each layer: ``layer_change`` in each run, and the ends of the interval of its mean
      over runs, ``layer_lower`` and ``layer_upper``;
    * for the mean over all heads: ``average_before`` and, in each run, ``average``; the mean change over runs,
      ``average_change``, and its ends, ``average_lower`` and ``average_upper``;
    * for the head that is best before tuning (attribute ``best_head``), the same variables: ``best_before``, ``best``
      and so on;
    * ``contrast``, the task's mean change less the control's, with the ends of its 95 % Welch interval over runs,
      ``contrast_lower`` and ``contrast_upper`` (NaN if a group has one run); the prefix ``layer_``, ``average_`` or
      ``best_`` marks contrasts that are not of single heads;
    * exact two-sided tests: ``p`` of the rank-sum test, task against control; ``paired_p`` of the signed-rank test over
      the seeds that both groups have, task less control; ``before_p`` of the signed-rank test of a group's changes
      against 0. They have the same prefixes. ``q``, ``paired_q`` and ``before_q`` are corrected for all heads, or all
      layers (Benjamini and Hochberg). The null hypothesis of ``p`` is that the runs of task and control have one
      distribution, so unequal spreads alone can make it small; the null hypothesis of the other tests is that the
      differences are symmetric around 0;
    * ``welch_p`` and ``welch_q``, with the same prefixes: Welch's test, whose null hypothesis is that the means of task
      and control are equal, whatever their spreads. It assumes that the runs of a group are about normal. NaN if a
      group has one run, or neither group varies over its runs;
    * ``spread_ratio``, with the same prefixes: the task's standard deviation over runs divided by the control's.
      Infinite if only the control's is 0, NaN if both are 0 or a group has one run;
    * ``p_least``, ``paired_p_least`` and ``before_p_least``: the smallest p-values that this number of runs can give. A
      p-value above 0.05 for three runs against three says nothing, since 0.1 is the smallest possible. ``runs`` and
      ``pairs`` are the numbers of runs and of pairs. ``heads_needed``, ``paired_heads_needed`` and
      ``before_heads_needed``: how many heads must have the smallest p-value before any q is at most 0.05 (NaN if even
      all heads are too few);
    * the change against the baseline ("the rich get richer"): ``baseline_tau`` and ``baseline_p`` in each run as
      published, ``baseline_tau_corrected``, and ``baseline_tau_mean`` of the runs with its interval
      (`headscope.analyse.change_against_baseline`).

    Without a control, the variables that need one are missing.

    Args:
        before: The head table of the model before it was tuned.
        after: The head table of the runs that were tuned on the task, with the dimension ``run``; or of a single model.
        control: The same for the task's control.
        variable: The name of a variable with one value for each head, such as ``mass_sep``. Default: the score of the
            tables, if they have only one.
        where: The label along each other dimension of the variable, such as ``{"token_class": "noun"}``.

    Raises:
        TableError: The tables are of other heads or texts, or a table is given in the wrong role; or a table lacks the
            variable, or has more than one value for each head.

    >>> import headscope
    >>> tables = [headscope.read_table(f"{name}.nc") for name in ("before", "after", "control")]  # doctest: +SKIP
    >>> changed = headscope.analyse.compare_variable(*tables)  # doctest: +SKIP
    >>> float(changed.average_change.sel(group="task")), float(changed.average_p)  # doctest: +SKIP
    """
    check_before_after(before, after, control)
    variable = variable or main_score(before).variable
    tables = {"task": after} | ({} if control is None else {"control": control})
    named = [(before, "the table before"), (after, "the table after"), (control, "the table of the control")]
    chosen = [_at(table, where or {}, variable, name_table(table, name)) for table, name in named if table is not None]
    start = values_of_heads(chosen[0], variable).astype(float).reset_coords(drop=True)
    after_by_group = dict(zip(tables, chosen[1:], strict=True))
    seeds = list(zip_longest(*(seeds_of(table) for table in tables.values()), fillvalue=-1))
    runs = _Runs(
        {group: _values_of_runs(table, variable) for group, table in after_by_group.items()}, np.array(seeds).T
    )
    every_run = xr.concat([values.drop_vars("run") for values in runs.groups.values()], dim="run")
    known = start.notnull() & every_run.notnull().all("run")
    if not known.any():
        raise TableError(
            f"no head has a value of {variable!r} in {name_table(before, 'the table before')} and in all runs; "
            "compare another variable."
        )
    partly = start.notnull() | every_run.notnull().any("run")
    new = _compared(start, runs, known, str(before[variable].attrs.get("long_name", variable)), before[variable].attrs)
    new |= correlate_change(chosen[0], after_by_group, variable, known)
    return xr.Dataset(
        new,
        coords={dim: start[dim] for dim in start.dims}
        | {"group": list(tables), "run": np.arange(1, max(runs.sizes) + 1), "seed": (("group", "run"), runs.seeds)},
        attrs=dict(before.attrs)
        | {
            "variable": variable,
            "where": json.dumps(dict(where or {})),
            "best_head": list_highest(xr.Dataset({"x": start.where(known)}), "x", 1)[0][0],
            "heads": int(known.sum()),
            "heads_left_out": int((partly & ~known).sum()),
            "task": str(after.attrs.get("task", "")),
            # A table of runs has the identity of the model that headscope tuned the runs from.
            DIFFERS_IN: name_differences(before.attrs, *(t.attrs for t in tables.values() if "run" not in t.dims)),
            "runs": json.dumps([run | {"group": group} for group, table in tables.items() for run in runs_of(table)]),
            "call": f"compare(variable={variable!r}, where={dict(where or {})!r}) after {before.attrs.get('call')}",
        },
    )


@dataclass(frozen=True)
class _Runs:
    """A variable of the heads in the runs of each group.

    Attributes:
        groups: The values of each group, with the dimension ``run``.
        seeds: The seed of each run of each group; -1 if the run does not exist or its seed is unknown.
    """

    groups: Mapping[str, xr.DataArray]
    seeds: np.ndarray

    @property
    def sizes(self) -> list[int]:
        """The number of runs of each group."""
        return [values.sizes["run"] for values in self.groups.values()]

    @property
    def padded(self) -> xr.DataArray:
        """The values of all groups in one array, padded with NaN where a group has fewer runs."""
        return xr.concat(list(self.groups.values()), dim="group", join="outer")

    def apply(self, function: Callable[[xr.DataArray], xr.DataArray]) -> "_Runs":
        """Return the runs with a function applied to the values of each group."""
        return _Runs({group: function(values) for group, values in self.groups.items()}, self.seeds)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The runs of task and control with the same seed: for each seed, an index of the task and of the control."""
        task, control = (row.tolist() for row in self.seeds)
        return [(task.index(seed), control.index(seed)) for seed in sorted(set(task) & set(control) - {-1})]


def _compared(
    start: xr.DataArray, runs: _Runs, known: xr.DataArray, what: str, about: Mapping[str, str]
) -> dict[str, xr.Variable]:
    units = str(about.get("units", "1"))
    new = {"before": _variable(start, f"{what}, before tuning", units, str(about.get("source", SOURCE)))}
    new["after"] = _variable(runs.padded, f"{what}, after tuning", units, str(about.get("source", SOURCE)))
    start, runs = start.where(known), runs.apply(lambda values: values.where(known))
    change = runs.padded - start
    new["change"] = _variable(change.mean("run"), f"mean change over runs: {what}", units, SOURCE)
    new |= _ends("change", change, what, units) | _contrast("", runs, what, units, "") | _tests("", start, runs, "")
    layers, by_layer = start.mean("head"), runs.apply(lambda values: values.mean("head"))
    change = by_layer.padded - layers
    new["layer_change"] = _variable(change, f"change of the mean over the heads of a layer: {what}", units, SOURCE)
    new |= _ends("layer", change, what, units) | _tests("layer_", layers, by_layer, " of a layer")
    new |= _contrast("layer_", by_layer, f"{what}: mean over a layer", units, " of a layer")
    best = dict(zip(start.dims, np.unravel_index(int(np.nanargmax(start.values)), start.shape), strict=True))
    place = {str(dim): int(index) for dim, index in best.items()}
    every = [str(dim) for dim in start.dims]
    average_and_best: tuple[tuple[str, Callable[[xr.DataArray], xr.DataArray], str], ...] = (
        ("average", lambda values: values.mean(every), "mean over heads"),
        ("best", lambda values: values.isel(place, drop=True), "head that is best before tuning"),
    )
    for name, function, which in average_and_best:
        before, of_runs = function(start), runs.apply(function)
        change = of_runs.padded - before
        new[f"{name}_before"] = _variable(before, f"{what}, before tuning: {which}", units, SOURCE)
        new[name] = _variable(of_runs.padded, f"{what}, after tuning: {which}", units, SOURCE)
        new[f"{name}_change"] = _variable(change.mean("run"), f"mean change over runs: {what}: {which}", units, SOURCE)
        new |= _ends(name, change, f"{what}: {which}", units)
        new |= _contrast(f"{name}_", of_runs, f"{what}: {which}", units, f", {which}")
        new |= _tests(f"{name}_", before, of_runs, f", {which}")
    return new | _numbers(runs, int(known.sum()))


def _ends(name: str, change: xr.DataArray, what: str, units: str) -> dict[str, xr.Variable]:
    """Return the ends of the t interval of the mean change over runs; NaN for one run."""
    mean, n = change.mean("run"), change.notnull().sum("run")
    n = n.where(n > 1)
    error = np.sqrt(((change - mean) ** 2).sum("run") / (n - 1) / n)
    lower, upper = t_interval(mean, error, n - 1)
    end = f"end of the 95 % interval of the mean change: {what}"
    return {
        f"{name}_lower": _variable(lower, f"lower {end}", units, STUDENT),
        f"{name}_upper": _variable(upper, f"upper {end}", units, STUDENT),
    }


def _contrast(prefix: str, runs: _Runs, what: str, units: str, which: str) -> dict[str, xr.Variable]:
    """Compare the mean changes with task and control: the difference, its interval and test, and the ratio of spreads.

    The result is empty without a control.
    """
    if "control" not in runs.groups:
        return {}
    # Both groups have the same value before, so their changes differ like their values after.
    task, control = (values.transpose("run", ...) for values in runs.groups.values())
    means, place = compare_means(task.values, control.values), task.isel(run=0, drop=True)
    contrast = f"mean change with the task less that with the control: {what}"
    p = f"p-value of equal means: task against control{which}"
    differences = zip((means.difference, means.lower, means.upper), describe_ends(contrast).items(), strict=True)
    ratio = f"ratio of standard deviations over runs, task to control{which}"
    columns = {
        **{f"contrast{end}": (values, text, units, WELCH) for values, (end, text) in differences},
        "spread_ratio": (means.spread_ratio, ratio, "1", SPREAD),
        "welch_p": (means.p, p, "probability", WELCH),
    }
    if place.dims:
        q = f"false discovery rate of equal means: task against control{which}"
        columns["welch_q"] = (false_discoveries(means.p), q, "probability", BENJAMINI)
    return {f"{prefix}{name}": _variable(place.copy(data=values), *about) for name, (values, *about) in columns.items()}


def _tests(prefix: str, start: xr.DataArray, runs: _Runs, which: str) -> dict[str, xr.Variable]:
    """Test each entry of `start` and `runs`; return the p-values and, for several entries, false discovery rates."""
    values = {group: part.transpose("run", ...).values for group, part in runs.groups.items()}
    against_before = np.stack([signed_ranks(part, start.values[None]) for part in values.values()])
    p = {"before_p": (("group", *start.dims), against_before, "changes of the runs against 0")}
    if "control" in values:
        paired = np.full(start.shape, np.nan)
        if runs.pairs:
            task, control = (list(places) for places in zip(*runs.pairs, strict=True))
            paired = signed_ranks(values["task"][task], values["control"][control])
        p["p"] = (start.dims, rank_sums(values["task"], values["control"]), "task against control")
        p["paired_p"] = (start.dims, paired, "task less control over seeds")
    new = {}
    for name, (dims, p_values, what) in p.items():
        array = xr.DataArray(p_values, dims=dims)
        new[prefix + name] = _variable(array, f"p-value: {what}{which}", "probability", WILCOXON)
        if start.dims:
            rows = p_values if name == "before_p" else p_values[None]
            q = np.stack([false_discoveries(row) for row in rows]).reshape(p_values.shape)
            name = f"{prefix}{name.removesuffix('p')}q"
            new[name] = _variable(array.copy(data=q), f"false discovery rate: {what}{which}", "probability", BENJAMINI)
    return new


def _numbers(runs: _Runs, tested: int) -> dict[str, xr.Variable]:
    """Return the numbers of runs, the smallest p-values they can give, and the numbers of heads that a small q needs.

    `tested` is the number of tested heads.
    """
    least = {"before": np.array([least_signed_rank(count) for count in runs.sizes])}
    tests = {
        "before": "this number of runs against 0",
        "": "these numbers of runs, task against control",
        "paired": "this number of pairs",
    }
    new = {"runs": _variable(xr.DataArray(runs.sizes, dims="group"), "runs of a group", "runs", SOURCE)}
    if "control" in runs.groups:
        pairs = len(runs.pairs)
        new["pairs"] = _variable(xr.DataArray(pairs), "seeds that task and control both have", "runs", SOURCE)
        least[""] = np.array(least_rank_sum(*runs.sizes))
        least["paired"] = np.array(least_signed_rank(pairs) if pairs else np.nan)
    for name, values in least.items():
        prefix, dims = f"{name}_" if name else "", ("group",)[: values.ndim]
        what = f"smallest p-value that a test can give of {tests[name]}"
        new[f"{prefix}p_least"] = _variable(xr.DataArray(values, dims=dims), what, "probability", WILCOXON)
        what = f"heads that must have the smallest p-value of {tests[name]} for a q of at most {ALPHA} (NaN: too few)"
        needed = xr.DataArray(count_needed(values, tested), dims=dims)
        new[f"{prefix}heads_needed"] = _variable(needed, what, "heads", BENJAMINI)
    return new


def _variable(values: xr.DataArray, what: str, units: str, source: str) -> xr.Variable:
    dims = [dim for dim in ("group", "run", "attention_type", "layer", "head") if dim in values.dims]
    return heads.variable(values.transpose(*dims).values, dims, name=what, units=units, source=source)


def _values_of_runs(table: xr.Dataset, variable: str) -> xr.DataArray:
    """Return a variable of each head in each run, with the runs counted from 1; a single model is one run."""
    rows = [values_of_heads(of_run, variable) for of_run in split_runs(table)]
    values = xr.concat([row.astype(float).reset_coords(drop=True) for row in rows], dim="run")
    return values.assign_coords(run=np.arange(1, len(rows) + 1))


def _at(table: xr.Dataset, where: Mapping[str, str | int], variable: str, name: str) -> xr.Dataset:
    if variable not in table:
        raise TableError(f"{name} has no variable {variable!r}; measure the same in all tables.")
    for dim, label in where.items():
        if dim not in table.coords or dim not in table.dims:
            raise TableError(f"{name} has no dimension {dim!r}; it has {', '.join(map(str, table.dims))}.")
        if label not in table[dim].values:
            raise TableError(f"{name} has no {dim} {label!r}; it has {', '.join(map(str, table[dim].values))}.")
    return table.sel(dict(where))
