"""The table on the page of the heads that stand out for a row or are needed, with the effect of disabling them.

The table is HTML that can be read without a script; ``scripts/tables.js`` sorts the rows, and shows the effect of a row
in the grid.
"""

import math
from collections.abc import Mapping
from html import escape
from typing import Any
from urllib.parse import urlencode

import pandas as pd
import xarray as xr

from headscope.heads import head_name
from headscope.view.headings import name_row
from headscope.view.need_report import (
    BETWEEN,
    explain_need,
    group_by_role,
    read_metric,
)
from headscope.view.page.reported_heads import NONE, render_interval
from headscope.view.reports import Interval, find_place
from headscope.view.wording import format_brief_p

COLUMNS: Mapping[str, str] = {
    "head": "The layer and head, both counted from 1 (headscope).",
    "attends most to": "Of the targets that were measured, the one that gets the largest share of the head's "
    "attention, mean over all texts (Clark et al. 2019, section 3).",
    "stands out for": "The rows for which it is the reported head and beats every rival and chance; it may also be "
    "second best for others (headscope).",
    "change without it": "Of the metric, on all examples, with its 95 % interval, paired and clustered by text "
    "(Kovaleva et al. 2019, section 4.6).",
    "with placebos": "The mean change with placebos, changes of the same size in the same layer, and where 95 % of "
    "them lie (headscope).",
    "p": "Of so large a change of any head if heads did nothing, by random signs of the texts (Westfall and Young "
    "1993).",
    "p against placebos": "Of a change so far from that with placebos, corrected for all heads (Holm 1979).",
}  # fmt: skip
"""The columns from left to right, each with its meaning and its source."""


def render_needed_heads(table: xr.Dataset, heads: pd.DataFrame) -> str:
    """Return the section on needed heads as HTML; an empty string for a table without effects."""
    if read_metric(table) is None:
        return ""
    rows = _render_rows(heads)
    columns = "".join(f"<dt>{name}</dt><dd>{escape(about)}</dd>" for name, about in COLUMNS.items())
    shown = (
        '<div class="scroll long" role="region" aria-label="Table of needed heads" tabindex="0">\n'
        f'<table class="sortable">\n{rows}\n</table>\n</div>\n'
        f"<details><summary>The columns explained</summary><dl>{columns}</dl></details>"
    )
    which = (
        "Shown are the heads that stand out for a row, are needed, or without which the model is better."
        if rows
        else "No head stands out for a row, is needed, or is one without which the model is better."
    )
    return (
        '<section id="needed-rows" aria-labelledby="needed"><h2 id="needed">What happens without a head</h2>\n'
        f'<p class="note">{escape(explain_need(table))} {which}</p>\n'
        f"{shown if rows else ''}</section>"
    )


def _render_rows(heads: pd.DataFrame) -> str:
    """Return the content of the table in HTML, grouped by role; an empty string if no head belongs in it."""
    groups = group_by_role(heads)
    if not groups:
        return ""
    headings = "".join(
        f'<th scope="col"{_align(name)} title="{escape(about)}">{name}</th>' for name, about in COLUMNS.items()
    )
    lines = [f"<thead><tr>{headings}</tr></thead>"]
    for role, members in groups.items():
        count = f"{len(members)} head{'s' * (len(members) > 1)}"
        title = f"<div><h3>{escape(role[0].upper() + role[1:])}</h3><p>{count}</p></div>"
        group = f'<tr class="group"><th scope="rowgroup" colspan="{len(COLUMNS)}">{title}</th></tr>'
        lines += ["<tbody>", group, *map(_row, members), "</tbody>"]
    return "\n".join(lines)


def _align(name: str) -> str:
    return ' class="right"' if name.startswith("p") else ""


def _row(head: Mapping[Any, Any]) -> str:
    attention_type, layer, number = find_place(head)
    places = {
        "view": "weights", "variable": f"effect_{head['metric']}", "attention_type": attention_type,
        "head": head_name(layer, number),
    }  # fmt: skip
    address = urlencode({name: value for name, value in places.items() if value})
    rows = head["stands_out_for"].split(BETWEEN) if head["stands_out_for"] else []
    effect, placebo = (
        render_interval(Interval(head[name], head[f"{ends}lower"], head[f"{ends}upper"]), 3, sign=True)
        for name, ends in (("effect", ""), ("placebo", "placebo_"))
    )
    target = head["attends_most_to"]
    cells = [
        f"{escape(target)} <small>{head['share']:.2f}</small>" if target else NONE,
        f'<span class="rivals">{escape(", ".join(rows))}</span>' if rows else NONE,
        effect,
        placebo,
        escape(format_brief_p(head["p_corrected"])) or NONE,
        escape(format_brief_p(head["placebo_p_corrected"])) or NONE,
    ]
    values: list[Any] = [f"{head['share']:.6f}", str(len(rows))]
    values += [head[name] for name in ("effect", "placebo", "p_corrected", "placebo_p_corrected")]
    sorted_by = ["" if isinstance(value, float) and math.isnan(value) else value for value in values]
    body = "".join(
        f'<td{_align(name)} data-value="{value}">{cell}</td>'
        for name, value, cell in zip([*COLUMNS][1:], sorted_by, cells, strict=True)
    )
    order = escape(f"{attention_type} {layer:04d}-{number:04d}".strip())
    name = f'<th scope="row" data-value="{order}"><a href="#{escape(address)}">{escape(name_row(head))}</a></th>'
    return f"<tr>{name}{body}</tr>"
