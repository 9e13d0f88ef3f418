"""The score of reported heads by the length of the links: does a head do more than look at a fixed distance?"""

import math
from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from headscope.analyse.report import MINIMUM
from headscope.errors import TableError
from headscope.view.figures.style import ABOVE, finish, hide_rest, make_figure, styled
from headscope.view.offsets import format_offset
from headscope.view.reports import Reported, format_measure, read_reports

FREQUENT = 12
"""The largest number of rows that are shown, the most frequent first."""

ABREAST = 3
"""The number of panels in a row of the figure."""

FEW = 0.35
"""The opacity of a bar with too few links to rely on."""


@styled
def draw_score_by_length(table: xr.Dataset) -> Figure:
    """Draw the score of the reported head by length of the link, on all documents, a panel for each frequent row.

    A fixed offset is right on all links of one length and on no other links; the outlined bar shows the best offset.
    (Clark et al. 2019, table 1, give its score as one number.) A head that is also right at other lengths does more
    than an offset. Above each bar is the number of links of this length.

    Args:
        table: A head table with reported heads of a score that is broken down by length.

    Raises:
        TableError: the table has no reported head of such a score.
    """
    reports = [report for report in read_reports(table) if any(row.parts for row in report.rows_with_heads)]
    rows = [row for report in reports for row in report.rows_with_heads if row.parts][:FREQUENT]
    if not rows:
        raise TableError(
            "the head table has no reported heads with scores by length; measure a corpus with links and choose heads "
            "by add_report first."
        )
    columns = min(len(rows), ABREAST)
    deep = math.ceil(len(rows) / columns)
    figure, body = make_figure(0.8 + 2.2 * max(columns, 2), 1.0 + 1.9 * deep)
    grid = body.subplots(deep, columns, squeeze=False, sharey=True, sharex=True)
    # Above a share of 1, there is room for the longest number of links.
    top = 1.12 + 0.075 * max(len(f"{part.items:,}") for row in rows for part in row.parts)
    for axes, row in zip(grid.flat, rows, strict=False):
        _draw_panel(axes, row, top)
    hide_rest(grid, len(rows))
    for axes in grid.flat[max(0, len(rows) - columns) : len(rows)]:
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("length of link (words)")
    for axes in grid[:, 0]:
        axes.set_ylabel(format_measure(reports[0].score))
    handles = [
        Patch(facecolor="#0072B2", label="reported head"),
        Patch(facecolor="#0072B2", alpha=FEW, label=f"fewer than {MINIMUM} {reports[0].score.items}"),
        Patch(facecolor="0.93", label=f"{reports[0].score.items} of this length"),
        Patch(facecolor="none", edgecolor="0.25", label="best fixed offset"),
    ]
    body.legend(handles=handles, **ABOVE, ncols=2 if columns < 3 else 4)
    score = reports[0].score
    title = f"{score.title}: {format_measure(score)} of the reported heads by {score.breakdown}"
    note = "minus: the head of the link comes before; the outermost lengths are that and longer"
    return finish(figure, table, title, f"{note}; above each bar, the number of {score.items}")


def _draw_panel(axes: Axes, row: Reported, top: float) -> None:
    """Draw the score and the number of links for each length of a row, with a gap at the length 0."""
    for length, links, value in row.parts:
        # Without the grey bar, a length at which the head is always wrong would look like a length without links.
        axes.bar(length, 1, width=0.8, color="0.93", linewidth=0)
        axes.bar(length, value, width=0.8, color="#0072B2", alpha=1 if links >= MINIMUM else FEW, linewidth=0)
        above: dict[str, Any] = {"rotation": 90, "ha": "center", "va": "bottom", "fontsize": 6.5, "gid": "count"}
        axes.text(length, 1.05, f"{links:,}", color="0.35", **above)
    axes.bar(row.offset, 1, width=0.8, facecolor="none", edgecolor="0.25", linewidth=1, gid="offset")
    axes.set_yticks([0, 0.5, 1])
    axes.spines["left"].set_bounds(0, 1)
    farthest = max(6, *(abs(length) for length, _, _ in row.parts))
    axes.set(xlim=(-farthest - 0.6, farthest + 0.6), ylim=(0, top), xticks=[-farthest, -3, -1, 1, 3, farthest])
    axes.set_xticklabels([f"≤{format_offset(-farthest)}", "−3", "−1", "+1", "+3", f"≥{format_offset(farthest)}"])
    links = sum(part.items for part in row.parts)
    axes.set_title(f"{row.name} · {row.where}\nfrom {row.attends} · {links:,} links", fontsize="small")
