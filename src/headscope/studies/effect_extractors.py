"""Extractors for tables of effects: what disabling heads or layers of fine-tuned models changes on their task.

They read the first metric of the table, the task's own, in points: a gain is above 0. For several runs they return the
mean with its 95 % t interval.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from headscope.analyse.effect_table import NOUNS, PREFIXES
from headscope.analyse.metrics import read_metrics
from headscope.analyse.run_effects import summarize_effects
from headscope.heads import head_name
from headscope.studies.extractors import PERCENT, make_extractor
from headscope.studies.run_extractors import PerRun, average_runs
from headscope.studies.study import NotMeasuredError, Value
from headscope.view.effects_report import list_effects

PLACEBO = "_placebo"


@make_extractor
def mean_gain(effects: xr.Dataset, kind: str, *, placebos: bool = False, tasks: Collection[str] = ()) -> PerRun:
    """Return the mean gain from disabling a head or a layer, or from their placebos, in each run.

    If `tasks` are given, runs on other tasks raise an error, since the paper makes no claim about them.
    """
    _refuse_other_tasks(effects, tasks)
    return np.asarray(_get_gains(effects, kind, PLACEBO if placebos else "").mean("unit").values)


@make_extractor
def layer_gain(effects: xr.Dataset, layer: int, *, tasks: Collection[str] = ()) -> PerRun:
    """Return the gain from disabling a given layer, in each run; see `mean_gain`."""
    _refuse_other_tasks(effects, tasks)
    return np.asarray(_get_gains(effects, "layer").isel(unit=layer - 1).values)


@make_extractor
def best_gain(effects: xr.Dataset, kind: str, *, beyond_placebos: bool = False) -> Value:
    """Return the largest gain from disabling one head or layer, by its mean over runs.

    If `beyond_placebos` is true, the mean gain of its placebos is subtracted from each gain.

    The held-out value is the mean over runs of the gain from the head that is best on the average of the other runs,
    since the best of many heads is above 0 by chance.
    """
    gains = _get_gains(effects, kind)
    if beyond_placebos:
        gains = gains - _get_gains(effects, kind, PLACEBO)
    values, names = gains.transpose("run", "unit").values, [str(name) for name in gains["unit"].values]
    if len(values) < 2:
        raise NotMeasuredError(f"the best {NOUNS[kind]} is chosen on other runs than it is scored on; take 2 seeds")
    best = int(values.mean(0).argmax())
    chosen = [int(np.delete(values, run, axis=0).mean(0).argmax()) for run in range(len(values))]
    held_out = average_runs(values[np.arange(len(values)), chosen])
    return replace(
        average_runs(values[:, best]), detail=names[best],
        held_out=replace(held_out, detail=_list_names([names[place] for place in chosen])),
    )  # fmt: skip


@make_extractor
def count_better_without(effects: xr.Dataset, kind: str) -> Value:
    """Return the number of heads or layers that are `better without`, on the average of the runs or in one of them.

    The lower end of its interval is this number; the upper end also counts all units whose interval reaches above 0.
    """
    metric = read_metrics(effects)[0]["name"]
    frame = list_effects(summarize_effects(effects))
    frame = frame[(frame["kind"] == kind) & (frame["metric"] == metric) & (frame["subset"] == "all")]
    better = frame[frame["verdict"].str.contains("better without")]
    possible = int((~(frame["upper"] <= 0)).sum())
    count = float(len(better))
    return Value(count, _list_names(better["unit"].tolist()), count, float(max(possible, len(better))))


def _get_gains(effects: xr.Dataset, kind: str, end: str = "") -> xr.DataArray:
    """Return the gain from disabling each head or layer in each run, in points on all examples.

    If `end` is `PLACEBO`, the gains are those of the placebos.
    """
    metric = read_metrics(effects)[0]
    name = f"{PREFIXES[kind]}effect_{metric['name']}{end}"
    if name not in effects:
        raise NotMeasuredError(f"the table has no {name}")
    values: xr.DataArray = effects[name].isel(how=0, subset=0, drop=True) * (PERCENT * metric["better"])
    units = [dim for dim in values.dims if dim != "run"]
    stacked: xr.DataArray = values.stack(unit=units, create_index=False)
    layers = stacked["layer"].values.tolist()
    numbers = stacked["head"].values.tolist() if kind == "head" else layers
    names = [head_name(*place) if kind == "head" else str(place[0]) for place in zip(layers, numbers, strict=True)]
    return stacked.drop_vars(units).assign_coords(unit=names)


def _refuse_other_tasks(effects: xr.Dataset, tasks: Collection[str]) -> None:
    if tasks and effects.attrs["task"] not in tasks:
        raise NotMeasuredError(f"the paper says this of {' and '.join(tasks)}, and the runs are of another task")


def _list_names(names: Sequence[str]) -> str:
    """Return each name once, as ``8-10, 3-1``."""
    return ", ".join(dict.fromkeys(names))
