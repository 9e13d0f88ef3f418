"""Need in words: each head with what it attends to, what it stands out for, and what disabling it changes.

The terminal, the page and ``tables/need.csv`` say the same of a head; all of it comes from here.
"""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.analyse.metrics import read_metrics
from headscope.analyse.need import BETTER_WITHOUT, METRIC_ATTRIBUTE, NEEDED, NEEDS
from headscope.view.headings import name_corpus, name_head
from headscope.view.reports import Interval, Report, Reported
from headscope.view.wording import format_interval, format_number

MARKS_AND_NEEDED, MARKS_NOT_NEEDED = "marks and needed", "marks, not needed"
NEEDED_MARKS_NOTHING = "needed, marks nothing we measured"

ROLES = (MARKS_AND_NEEDED, MARKS_NOT_NEEDED, NEEDED_MARKS_NOTHING)
"""The roles that are shown first, in this order."""

SHOWN = 5
"""Heads of each role that the terminal names."""


@dataclass(frozen=True)
class NeededHead:
    """A head, what it does, and what happens without it.

    Attributes:
        attention_type, layer, head: of the model.
        target: what it attends to most, of the targets that were measured; empty where there are none.
        share: the share of its attention that this gets, mean over all texts.
        rows: the rows for which it stands out.
        undecided: true where there are too few texts to say whether it stands out for any.
        effect: the change of the metric without the head.
        placebo: the mean change with placebos, and where 95 % of them lie.
        p, placebo_p: of no change, and of a change no other than with placebos, corrected for all heads.
        need: one of `headscope.analyse.need.NEEDS`.
    """

    attention_type: str
    layer: int
    head: int
    target: str
    share: float
    rows: tuple[Reported, ...]
    undecided: bool
    effect: Interval
    placebo: Interval
    p: float
    placebo_p: float
    need: str

    @property
    def where(self) -> str:
        """Its name, after that of its attention type if there are several."""
        return name_head(self.layer, self.head, self.attention_type)

    @property
    def role(self) -> str:
        """What it marks and whether it is needed, in a few words."""
        if self.rows:
            return MARKS_AND_NEEDED if self.need == NEEDED else f"marks, {self.need}"
        if self.undecided:
            return self.need
        return f"{self.need}, marks nothing we measured"


def read_metric(table: xr.Dataset) -> Mapping[str, Any] | None:
    """Name, title, units and direction of the metric of the effects in a table; None where it has no effects."""
    return next(iter(read_metrics(table, METRIC_ATTRIBUTE)), None) if METRIC_ATTRIBUTE in table.attrs else None


def list_needed_heads(table: xr.Dataset, reports: Sequence[Report]) -> list[NeededHead]:
    """All heads of a table with effects (`headscope.analyse.need.add_need`), those with the largest change first."""
    metric = read_metric(table)
    if metric is None or "need" not in table:
        return []
    of_heads = [name for name, values in table.items() if {*values.dims} == {*table["need"].dims}]
    targets = {name: target for name in of_heads if (target := table[name].attrs.get("target"))}
    records, rows = table[of_heads].to_dataframe().reset_index().to_dict("records"), _group_by_head(reports)
    heads = [_read_head(record, f"effect_{metric['name']}", targets, rows) for record in records]
    return sorted(heads, key=lambda head: -abs(np.nan_to_num(head.effect.value)))


def _read_head(
    values: Mapping[Hashable, Any],
    effect: str,
    targets: Mapping[Hashable, str],
    rows: Mapping[tuple[str, int, int], Sequence[Reported]],
) -> NeededHead:
    """A head from its values by variable and dimension."""

    def interval(*ends: str) -> Interval:
        return Interval(*(values.get(f"{effect}{end}", math.nan) for end in ends))

    place = values.get("attention_type", ""), values["layer"], values["head"]
    known = ((values[name], target) for name, target in targets.items() if not math.isnan(values[name]))
    share, target = max(known, default=(math.nan, ""))
    return NeededHead(
        *place, target, share, tuple(rows.get(place, ())), math.isnan(values.get("marks", math.nan)),
        effect=interval("", "_lower", "_upper"), placebo=interval("_placebo", "_placebo_lower", "_placebo_upper"),
        p=values.get(f"{effect}_p_corrected", math.nan),
        placebo_p=values.get(f"{effect}_placebo_p_corrected", math.nan), need=NEEDS[values["need"]],
    )  # fmt: skip


def _group_by_head(reports: Sequence[Report]) -> dict[tuple[str, int, int], list[Reported]]:
    """The rows for which a head stands out, by attention type, layer and head."""
    rows: dict[tuple[str, int, int], list[Reported]] = {}
    for row in (row for report in reports for row in report.rows_with_heads if row.stands_out):
        rows.setdefault((row.attention_type, row.layer, row.head), []).append(row)
    return rows


def group_by_role(heads: Sequence[NeededHead]) -> dict[str, list[NeededHead]]:
    """The heads that stand out for a row, are needed, or without which the model is better, by role; `ROLES` first."""
    groups: dict[str, list[NeededHead]] = {role: [] for role in ROLES}
    for head in heads:
        if head.rows or head.need in (NEEDED, BETTER_WITHOUT):
            groups.setdefault(head.role, []).append(head)
    return {role: members for role, members in groups.items() if members}


def describe_need(table: xr.Dataset, heads: Sequence[NeededHead]) -> str:
    """Sentences about how many heads stand out, and how many of these and of the others are needed; empty without."""
    if not heads:
        return ""
    where = f"on {name_corpus(table.attrs['effects_corpus'])}"
    marking, others = [head for head in heads if head.rows], [head for head in heads if not head.rows]
    if not marking:
        marks = "" if all(head.undecided for head in heads) else "No head stands out for a row. "
        return f"{marks}Of {len(heads)} heads, {where}: {_count_needs(heads)}."
    subject = "1 head stands" if len(marking) == 1 else f"{len(marking)} heads stand"
    rest = f" Of the other {len(others)}: {_count_needs(others)}." if others else ""
    return f"{subject} out for a row; {where}: {_count_needs(marking)}.{rest}"


def _count_needs(heads: Sequence[NeededHead]) -> str:
    counts = Counter(head.need for head in heads)
    return ", ".join(f"{counts[need]} {need}" for need in reversed(NEEDS) if counts[need])


def explain_need(table: xr.Dataset) -> str:
    """Sentences about when a head is needed, on which examples, and what took its place."""
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
        f"{metric['units']}; others may stand in for the head." if "effects_bound" in about else "",
        "Need not shown: the examples cannot tell.",
        "What is said holds in each of these ways; numbers and placebos are of the first." if several else "",
        "A head that marks nothing we measured may still be second best for a row.",
    ]  # fmt: skip
    return " ".join(filter(None, sentences))


def describe_effect(head: NeededHead, metric: Mapping[str, Any]) -> str:
    """A sentence about what happens without a head."""
    if math.isnan(head.effect.value):
        return "It was not disabled."
    changes = [format_interval(*head.effect, sign=True)]
    if placebo := format_number(head.placebo.value, sign=True):
        changes.append(f"with placebos {placebo}")
    return f"Without it the {metric['title']} changes by {'; '.join(changes)}: {head.need}."


def make_need_frame(table: xr.Dataset, heads: Sequence[NeededHead]) -> pd.DataFrame:
    """A row for each head: what it attends to, what it stands out for, the change without it, and its role."""
    metric = read_metric(table)
    assert metric is not None, "the table has effects"
    records = [
        {
            **({"attention_type": head.attention_type} if head.attention_type else {}),
            "layer": head.layer, "head": head.head, "attends_most_to": head.target, "share": head.share,
            "stands_out_for": "; ".join(row.label for row in head.rows), "metric": metric["name"],
            "effect": head.effect.value, "lower": head.effect.lower, "upper": head.effect.upper,
            "p_corrected": head.p, "placebo": head.placebo.value, "placebo_lower": head.placebo.lower,
            "placebo_upper": head.placebo.upper, "placebo_p_corrected": head.placebo_p, "need": head.need,
            "role": head.role,
        }
        for head in heads
    ]  # fmt: skip
    return pd.DataFrame(records)


def print_need(table: xr.Dataset, reports: Sequence[Report], console: Console) -> None:
    """Print how many heads are needed, and the first heads of each role."""
    heads = list_needed_heads(table, reports)
    if not heads:
        return
    console.print(f"\n[bold]{escape(describe_need(table, heads))}[/]", highlight=False, emoji=False)
    for role, members in group_by_role(heads).items():
        names = [
            f"{head.where} ({', '.join(filter(None, [*(row.label for row in head.rows[:2]), change]))})"
            for head in members[:SHOWN]
            for change in [format_number(head.effect.value, sign=True)]
        ]
        rest = f" and {len(members) - SHOWN} more" if len(members) > SHOWN else ""
        console.print(f"{role}: {escape(', '.join(names))}{rest}", highlight=False, emoji=False)
    console.print(escape(explain_need(table)), highlight=False, emoji=False)
