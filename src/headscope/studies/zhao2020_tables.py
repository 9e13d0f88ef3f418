"""The tables of Zhao and Bethard 2020, in their layout, for any model: from head tables before and after fine-tuning.

Each function takes all tables by name and returns a data frame with a row for each setting. Shares are in percent,
"±" is the standard deviation over these runs (``ddof`` 0), and unknown values are NaN.
"""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
import xarray as xr

from headscope.analyse.agreement import consistencies
from headscope.analyse.ranktests import least_rank_sum, least_signed_rank, rank_sum, signed_rank
from headscope.studies.extractors import PERCENT
from headscope.studies.run_extractors import average_head, best_head_before, find_best_before, significant_changes
from headscope.studies.study import NotMeasuredError

SCORES = {"precision": "P", "recall": "R", "f1": "F1"}
SETTINGS = {"": "none", "control": "control", "task": "negation"}
"""The data on which a model is fine-tuned, in the order of the paper."""

Tables = Mapping[str, xr.Dataset]


def tabulate_heads(tables: Tables) -> pd.DataFrame:
    """Return the scores, before and after tuning, of the average head and of the best head (tables 3 and A3).

    The best head is the best before tuning.
    """
    story = _require(tables, "story")
    best = find_best_before(story, "scope_f1")
    named = f"best ({best['layer']}-{best['head']})"
    rows = []
    for head in ("average", named):
        for group, setting in SETTINGS.items():
            if (runs := tables.get(f"story_{group}" if group else "story")) is None:
                continue
            row: dict[str, object] = {"head": head, "tuned on": setting, "runs": _count_runs(runs)}
            for name, letter in SCORES.items():
                values = _head_scores(head == "average", f"scope_{name}", story, runs if group else None)
                row |= {letter: values.mean(), f"{letter} sd": values.std() if len(values) > 1 else math.nan}
            rows.append(row)
    return pd.DataFrame(rows)


def tabulate_consistencies(tables: Tables) -> pd.DataFrame:
    """Return Kendall's tau between the scores of the heads on two corpora (tables 4 and A5)."""
    rows = []
    for group, setting in SETTINGS.items():
        first, second = (tables.get(f"{corpus}_{group}" if group else corpus) for corpus in ("story", "review"))
        if first is None or second is None:
            continue
        row: dict[str, object] = {"tuned on": setting, "runs": _count_runs(first)}
        for name, letter in SCORES.items():
            result = consistencies(first, second, f"scope_{name}")
            row |= {f"{letter} tau": result.mean, f"{letter} tau sd": result.sd if len(result.taus) > 1 else math.nan}
            row[f"{letter} sig"] = result.significant if group else ""
        rows.append(row)
    if not rows:
        raise NotMeasuredError("there are no scores on reviews")
    return pd.DataFrame(rows)


def tabulate_changes(tables: Tables) -> pd.DataFrame:
    """Return Kendall's tau between the score of a head before and its change (table A4), and corrected for chance."""
    rows = []
    for group in ("task", "control"):
        row: dict[str, object] = {"tuned on": SETTINGS[group]}
        for name, letter in SCORES.items():
            change = _require(tables, f"change_{name}")
            if group not in change["group"].values:
                break
            row["runs"] = int(change["runs"].sel(group=group))
            counts = [int(significant_changes(sign, group)(change).number) for sign in (1, -1, 0)]
            taus = change["baseline_tau"].sel(group=group)
            row |= {f"{letter} tau": float(taus.mean())}
            row |= {f"{letter} {what}": count for what, count in zip(("pos", "neg", "sig"), counts, strict=True)}
            row[f"{letter} corrected"] = float(change["baseline_tau_corrected"].sel(group=group).mean())
        else:
            rows.append(row)
    return pd.DataFrame(rows)


def tabulate_tests(tables: Tables) -> pd.DataFrame:
    """Return the p-values of task against control, and of each of them against the model before tuning.

    The first is from the exact rank-sum test, the others are from the exact signed-rank test. All tests are two-sided.
    The last row is the lowest p-value that this number of runs can have, however far apart the runs are.
    """
    rows = []
    for name, letter in SCORES.items():
        for what, before, by_group in _list_tests(tables, name):
            row: dict[str, object] = {"score": letter, "of": what}
            for group, values in by_group.items():
                row[f"{SETTINGS[group]} against before"] = signed_rank(values - before)
            both = len(by_group) == 2
            row["negation against control"] = rank_sum(*by_group.values()) if both else math.nan
            rows.append(row)
    counts = {group: len(values) for group, values in by_group.items()}
    least: dict[str, object] = {"score": "", "of": "least possible"}
    least |= {f"{SETTINGS[group]} against before": least_signed_rank(count) for group, count in counts.items()}
    least["negation against control"] = least_rank_sum(*counts.values()) if len(counts) == 2 else math.nan
    return pd.DataFrame([*rows, least])


def _list_tests(tables: Tables, name: str) -> list[tuple[str, float, dict[str, np.ndarray]]]:
    """Return the tested quantities: name, value before, and the values of the runs of each group."""
    story, variable, tests = _require(tables, "story"), f"scope_{name}", []
    groups = [group for group in ("task", "control") if f"story_{group}" in tables]
    for average, what in ((True, "average head"), (False, "best head")):
        values = {group: _head_scores(average, variable, story, tables[f"story_{group}"]) for group in groups}
        tests.append((what, float(_head_scores(average, variable, story, None)[0]), values))
    if {"review", *(f"review_{group}" for group in groups)} <= set(tables):
        before = consistencies(story, tables["review"], variable).mean
        both = {group: (tables[f"story_{group}"], tables[f"review_{group}"]) for group in groups}
        taus = {group: np.array(consistencies(first, second, variable).taus) for group, (first, second) in both.items()}
        tests.append(("consistency", before, taus))
    return tests


def _head_scores(average: bool, variable: str, story: xr.Dataset, runs: xr.Dataset | None) -> np.ndarray:
    """Return a score in each run of the average head, or of the head that is best before tuning.

    If `runs` is None, the only value is the score before tuning.
    """
    if runs is None:
        values = story[variable]
        score = values.mean() if average else values.sel(find_best_before(story, "scope_f1"))
        return np.array([PERCENT * float(score)])
    return average_head(variable)(runs) if average else best_head_before(variable, "scope_f1")(story, runs)


def _count_runs(table: xr.Dataset) -> int | str:
    return table.sizes["run"] if "run" in table.dims else ""


def _require(tables: Tables, name: str) -> xr.Dataset:
    if name not in tables:
        raise NotMeasuredError(f"there is no table of {name}")
    return tables[name]
