"""Need in words: for each head its main target, the rows it stands out for, and the effect of disabling it.

The terminal, the page and ``tables/need.csv`` say the same about a head; all of it comes from here.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.analyse.metrics import read_metrics
from headscope.analyse.need import BETTER_WITHOUT, METRIC_ATTRIBUTE, NEEDED, NEEDS
from headscope.predictions import ATTRIBUTE, SingleLabel, list_single_labels
from headscope.score import HEAD
from headscope.view.effects_report import COLUMNS
from headscope.view.headings import name_corpus, name_row
from headscope.view.reports import Report, find_place, group_by_head
from headscope.view.wording import describe_single_labels, format_interval, format_number

MARKS_AND_NEEDED, MARKS_NOT_NEEDED = "marks and needed", "marks, not needed"
NEEDED_MARKS_NOTHING = "needed, marks nothing we measured"

ROLES = (MARKS_AND_NEEDED, MARKS_NOT_NEEDED, NEEDED_MARKS_NOTHING)
"""The phrases on marking and need whose heads are shown first, in this order."""

BETWEEN = "; "
"""The separator between the rows that a head stands out for."""

SHOWN = 5
"""The number of heads of each role that the terminal names."""


def read_metric(table: xr.Dataset) -> Mapping[str, Any] | None:
    """Return the description of the metric whose effects a table has (name, title, units); None without effects."""
    return next(iter(read_metrics(table, METRIC_ATTRIBUTE)), None) if METRIC_ATTRIBUTE in table.attrs else None


def list_needed_heads(table: xr.Dataset, reports: Sequence[Report]) -> pd.DataFrame:
    """Return the target, the rows and the need of each head as a data frame, the largest change first.

    The table has effects from `headscope.analyse.need.add_need`; for another table, the frame is empty.

    Columns are ``attention_type`` (if there are several), ``layer``, ``head``; ``attends_most_to``, the measured target
    that gets most of its attention, and ``share``, the share that this target gets, as a mean over all texts; the rows
    that the head ``stands_out_for``; the ``metric`` and its change without the head, ``effect`` with ``lower`` and
    ``upper``, ``p_corrected``, and ``placebo...``, as in `headscope.view.effects_report.list_effects`; ``need``, one of
    `headscope.analyse.need.NEEDS`; and ``role``, a phrase on what the head marks and whether it is needed.
    """
    metric = read_metric(table)
    if metric is None or "need" not in table:
        return pd.DataFrame()
    values = table[[name for name, each in table.items() if {*each.dims} == {*table["need"].dims}]]
    targets = {name: target for name, each in values.items() if (target := each.attrs.get("target"))}
    effects = {f"effect_{metric['name']}{end}": column for end, column in COLUMNS.items()}
    frame = values.to_dataframe().reset_index().rename(columns=effects)
    shares = frame[[*targets]].rename(columns=targets).assign(**{"": -math.inf})
    places = [dim for dim in HEAD if dim in frame]
    labels = {place: [row.label for row in rows if row.stands_out] for place, rows in group_by_head(reports).items()}
    marked = [labels.get(find_place(head), ()) for head in frame[places].to_dict("records")]
    frame = frame.assign(
        attends_most_to=shares.idxmax(axis=1), share=shares.max(axis=1).replace(-math.inf, math.nan),
        stands_out_for=[BETWEEN.join(dict.fromkeys(rows)) for rows in marked], metric=metric["name"],
        need=frame["need"].map(dict(enumerate(NEEDS))),
    )  # fmt: skip
    decided = frame["marks"].notna() if "marks" in frame else [False] * len(frame)
    frame["role"] = [*map(_name_role, frame["need"], frame["stands_out_for"], decided)]
    order = [*places, "attends_most_to", "share", "stands_out_for", "metric", *COLUMNS.values(), "need", "role"]
    largest = frame["effect"].abs().fillna(0).sort_values(ascending=False, kind="stable").index
    return frame.reindex(index=largest, columns=order).reset_index(drop=True)


def _name_role(need: str, rows: str, decided: bool) -> str:
    """Return a phrase on what a head marks and whether it is needed."""
    if rows:
        return MARKS_AND_NEEDED if need == NEEDED else f"marks, {need}"
    return f"{need}, marks nothing we measured" if decided else need


def group_by_role(heads: pd.DataFrame) -> dict[str, list[Mapping[Any, Any]]]:
    """Return the heads that stand out, are needed or harm the model, by role; the roles in `ROLES` come first."""
    groups: dict[str, list[Mapping[Any, Any]]] = {role: [] for role in ROLES}
    for head in heads.to_dict("records"):
        if head["stands_out_for"] or head["need"] in (NEEDED, BETTER_WITHOUT):
            groups.setdefault(head["role"], []).append(head)
    return {role: members for role, members in groups.items() if members}


def describe_need(table: xr.Dataset, heads: pd.DataFrame) -> str:
    """Return sentences with the numbers of heads that stand out and of needed heads; empty without effects."""
    if heads.empty:
        return ""
    single = "".join(f"{each} " for each in describe_single_labels(_find_single_labels(table)))
    return f"{single}{_describe_need(table, heads)}"


def _find_single_labels(table: xr.Dataset) -> list[SingleLabel]:
    """Return the single label, if any, that the model predicts for all texts on which its heads were disabled."""
    about = table.attrs.get(f"effects_{ATTRIBUTE}")
    return [] if about is None else list_single_labels({"": json.loads(about)})


def _describe_need(table: xr.Dataset, heads: pd.DataFrame) -> str:
    where = f"on {name_corpus(table.attrs['effects_corpus'])}"
    marks = heads["stands_out_for"] != ""
    marking, others = heads[marks], heads[~marks]
    if marking.empty:
        undecided = (heads["role"] == heads["need"]).all()
        none = "" if undecided else "No head stands out for a row. "
        return f"{none}Of {len(heads)} heads, {where}: {_count_needs(heads)}."
    subject = "1 head stands" if len(marking) == 1 else f"{len(marking)} heads stand"
    rest = f" Of the other {len(others)}: {_count_needs(others)}." if len(others) else ""
    return f"{subject} out for a row; {where}: {_count_needs(marking)}.{rest}"


def _count_needs(heads: pd.DataFrame) -> str:
    counts = heads["need"].value_counts()
    return ", ".join(f"{counts[need]} {need}" for need in reversed(NEEDS) if need in counts)


def explain_need(table: xr.Dataset) -> str:
    """Return sentences about when a head is needed, on which examples, and how heads were disabled."""
    metric, about = read_metric(table), table.attrs
    assert metric is not None, "the table has effects"
    worse, better = ("higher", "lower") if metric["better"] < 0 else ("lower", "higher")
    several = "," in about["effects_how"]
    sentences = [
        f"Heads were disabled one by one ({about['effects_how']}) on {about['effects_examples']:,} "
        f"{about['effects_content']} of {name_corpus(about['effects_corpus'])}.",
        f"Needed: the {metric['title']} is {worse} without the head, beyond chance and by more than with its placebos "
        f"(both corrected for all heads that were disabled); better without: the same, but {better}.",
        f"Not needed: neither, and the whole 95 % interval of the change lies within ±{about['effects_bound']} "
        f"{metric['units']}; others may do its work." if "effects_bound" in about else "",
        "Need not shown: the examples cannot tell.",
        "What is said holds in each of these ways; numbers and placebos are of the first." if several else "",
        "A head that marks nothing we measured may still be second best for a row.",
    ]  # fmt: skip
    return " ".join(filter(None, sentences))


def describe_effect(head: Mapping[Any, Any], metric: Mapping[str, Any]) -> str:
    """Return a sentence about the effect of disabling a head, from a row of `list_needed_heads`."""
    change = format_interval(head["effect"], head["lower"], head["upper"], sign=True)
    if not change:
        return "It was not disabled."
    placebo = format_number(head["placebo"], sign=True)
    change += f"; with placebos {placebo}" if placebo else ""
    return f"Without it the {metric['title']} changes by {change}: {head['need']}."


def print_need(table: xr.Dataset, reports: Sequence[Report], console: Console) -> None:
    """Print how many heads are needed, and the first heads of each role."""
    heads = list_needed_heads(table, reports)
    if heads.empty:
        return
    console.print(f"\n[bold]{escape(describe_need(table, heads))}[/]", highlight=False, emoji=False)
    for role, members in group_by_role(heads).items():
        names = [f"{name_row(head)} ({_describe_briefly(head)})" for head in members[:SHOWN]]
        rest = f" and {len(members) - SHOWN} more" if len(members) > SHOWN else ""
        console.print(f"{role}: {escape(', '.join(names))}{rest}", highlight=False, emoji=False)
    console.print(escape(explain_need(table)), highlight=False, emoji=False)


def _describe_briefly(head: Mapping[Any, Any]) -> str:
    """Return the first two rows that a head stands out for, and the change of the metric without it."""
    change = format_number(head["effect"], sign=True)
    return ", ".join(filter(None, [*head["stands_out_for"].split(BETWEEN)[:2], change]))
