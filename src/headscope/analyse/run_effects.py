"""Effects of disabling units in several runs of one task: a table of all runs, and a summary over them.

tables of the runs --join_effects--> a table with the dimension ``run`` --summarize_effects--> one with its variables,
but without the runs

The interval of a mean is an interval over runs (Student's t): it shows where the mean over more seeds would lie, on the
same examples. The verdicts on single runs generalize to more examples. Both are shown.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.analyse.effect_table import NOUNS, PREFIXES
from headscope.analyse.effects import judge
from headscope.analyse.ends import make_ends
from headscope.analyse.metrics import read_metrics
from headscope.analyse.ranktests import TIED
from headscope.analyse.significance import holm
from headscope.analyse.student import standard_error, t_interval, two_sided_p
from headscope.heads import variable

SOURCE = "Student's t over runs; docs/howto/disable-heads.md says which runs count"

COUNTED = ("needed", "worse without", "better without", "matters")
"""The verdicts for which the summary counts the runs."""

_BY_EXAMPLE = ("examples", "texts")
"""Variables that are the same in every run."""


def name_count(verdict: str) -> str:
    """Return the ending of the variable that counts the runs with a verdict, such as ``_better_without_in``."""
    return f"_{verdict.replace(' ', '_')}_in"


def join_effects(tables: Sequence[xr.Dataset], names: Sequence[str], seeds: Sequence[int]) -> xr.Dataset:
    """Join the effects of several runs along the dimension ``run``, with the coordinates ``run`` and ``seed``."""
    of_runs = [table.drop_vars(_BY_EXAMPLE) for table in tables]
    together = xr.concat(of_runs, xr.Variable("run", np.array(names)), join="outer", combine_attrs="override")
    return together.merge(tables[0][list(_BY_EXAMPLE)]).assign_coords(seed=("run", [*seeds]))


def summarize_effects(table: xr.Dataset) -> xr.Dataset:
    """Average the effects in a table of runs; return a table of effects without the dimension ``run``.

    The variables are the same as for a single model. The effect and the effect of its placebos are means over runs,
    each with the interval of the mean. Both p-values come from a t test over runs, corrected for all units of the kind
    (Holm 1979): ``_p_corrected`` tests the effect against 0, and ``_placebo_p_corrected`` tests the difference between
    the effect and the effect of the placebos in the same run. The p-values are NaN for a single run, and if runs differ
    only by rounding, unless nothing changes in any run. ``effect_NAME_needed_in`` is the number of runs that call a
    unit needed, after a correction for all units and runs; ``effect_NAME_worse_without_in``, ``_better_without_in`` and
    ``_matters_in`` count the other verdicts likewise.
    """
    summary = xr.Dataset(coords={name: values for name, values in table.coords.items() if "run" not in values.dims})
    summary = summary.assign({name: values for name, values in table.data_vars.items() if "run" not in values.dims})
    for metric in read_metrics(table):
        summary[f"whole_{metric['name']}"] = table[f"whole_{metric['name']}"].mean("run", keep_attrs=True)
        for kind, prefix in PREFIXES.items():
            if f"{prefix}effect_{metric['name']}" in table:
                summary = summary.assign(_summarize_kind(table, metric, kind))
                norm = f"{prefix}removed_norm"
                summary[norm] = table[norm].mean("run", keep_attrs=True)
    return summary.assign_attrs(table.attrs)


def _summarize_kind(table: xr.Dataset, metric: Mapping[str, Any], kind: str) -> dict[str, xr.Variable]:
    """Summarize the effects of all units of one kind by one metric; return the variables of the summary."""
    stem = f"{PREFIXES[kind]}effect_{metric['name']}"
    effects = table[stem].transpose("run", "how", "subset", ...)
    dims = [str(dim) for dim in effects.dims[1:]]
    title, noun, runs = metric["title"], NOUNS[kind], f"over {table.sizes['run']} runs"
    mean, lower, upper, p = _average(effects.values)
    what = f"mean {runs} of the change of the {title} with the {noun} disabled"
    units, kind_and_runs = metric["units"], "by a t test over runs, corrected for all of its kind"
    described = make_ends(stem, (mean, lower, upper), dims, what=what, units=units, source=SOURCE)
    tests = {}
    if metric["better"]:  # a divergence is above 0 whatever is disabled
        tests["_p_corrected"] = p, "p-value of a mean of 0"
    if f"{stem}_placebo" in table:
        placebos = table[f"{stem}_placebo"].transpose("run", *dims).values
        what = f"mean {runs} of the mean change with placebos of the {noun}"
        ends = _average(placebos)[:3]
        described |= make_ends(f"{stem}_placebo", ends, dims, what=what, units=units, source=SOURCE)
        beside = _average(effects.values - placebos)[3]
        tests["_placebo_p_corrected"] = beside, "p-value of a mean change no other than with placebos"
    described |= {
        f"{stem}{end}": variable(values, dims, name=f"{what}, {kind_and_runs}", units="probability", source=SOURCE)
        for end, (values, what) in tests.items()
    }
    verdicts = _judge_runs(table, metric, stem, dims)
    for verdict in COUNTED[:-1] if metric["better"] else COUNTED[-1:]:
        what = f"number of the runs that call the {noun} `{verdict}`, corrected for all of its kind and all runs"
        counts = (verdicts == verdict).sum(0).astype(float)
        counts[np.isnan(mean)] = np.nan
        described[f"{stem}{name_count(verdict)}"] = variable(counts, dims, name=what, units="runs", source=SOURCE)
    return described


def _judge_runs(table: xr.Dataset, metric: Mapping[str, Any], stem: str, dims: Sequence[str]) -> np.ndarray:
    """Return the verdict on each unit in each run, with p-values also corrected for the number of runs (Bonferroni)."""
    effects = table[stem].transpose("run", *dims).values
    missing = np.full(effects.shape, np.nan)
    p, placebos, placebo_p = (
        table[f"{stem}{end}"].transpose("run", *dims).values if f"{stem}{end}" in table else missing
        for end in ("_p_corrected", "_placebo", "_placebo_p_corrected")
    )
    corrected = [np.minimum(1, each * len(effects)) for each in (p, placebo_p)]
    verdicts = judge(metric["better"], effects.ravel(), corrected[0].ravel(), placebos.ravel(), corrected[1].ravel())
    return np.array(verdicts, dtype=object).reshape(effects.shape)


def _average(
    values: Float[np.ndarray, "run how subset *unit"],
) -> tuple[Float[np.ndarray, "how subset *unit"], ...]:
    """Return the mean over runs, the ends of its interval, and the p-value of a mean of 0, corrected for all units.

    If runs differ only by rounding, there is no interval: equal metrics on few examples say little about further runs.
    There is no p-value either, unless nothing changes in any run.
    """
    count, mean = len(values), values.mean(0)
    unknown = np.full(mean.shape, np.nan)
    if count < 2:
        return mean, unknown, unknown, unknown
    error = standard_error(values)
    error = np.where(error * np.sqrt(count) > TIED * np.abs(values).max(0), error, np.nan)
    p = np.where(np.isnan(error) & (mean == 0), 1.0, two_sided_p(mean / error, count - 1))
    for place in np.ndindex(p.shape[:2]):
        p[place] = _correct(p[place], ~np.isnan(mean[place]))
    return mean, *t_interval(mean, error, count - 1), p


def _correct(p: Float[np.ndarray, "*unit"], measured: np.ndarray) -> Float[np.ndarray, "*unit"]:
    """Correct p-values for the number of measured units, in which units without a p-value count too."""
    corrected = np.full(p.shape, np.nan)
    corrected[measured] = holm(np.nan_to_num(p[measured], nan=1.0))
    return np.where(np.isnan(p), np.nan, corrected)
