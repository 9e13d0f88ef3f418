"""The reported heads of a score with their rivals: a dot with its interval for each, as in the table of the page."""

import math
from collections.abc import Sequence
from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from headscope.analyse.report import DOES_NOT, STANDS_OUT, UNDECIDED
from headscope.analyse.rivals import UNTRAINED
from headscope.errors import TableError
from headscope.score import main_score
from headscope.view.figures.intervals import draw_interval, lay_out_rows, look_like
from headscope.view.figures.style import ABOVE, finish, make_figure, styled
from headscope.view.reports import Reported, format_measure, read_reports
from headscope.view.verdicts import describe_verdicts

FREQUENT = 40
"""The largest number of rows that are shown, the most frequent first; the table has all rows."""

COLOUR, OF_UNTRAINED, OF_RIVALS = "#0072B2", "#D55E00", "0.25"
"""The colours of the heads, of the untrained model and of the other rivals (of Okabe and Ito)."""

RIVAL: dict[str, Any] = {"color": OF_RIVALS, "marker": "|", "markersize": 10, "linewidth": 0}
OTHERS: dict[str, dict[str, Any]] = {
    "rival": RIVAL | {"markeredgewidth": 0.8},
    "strongest rival": RIVAL | {"markeredgewidth": 2.6},
    "untrained model": {
        "color": OF_UNTRAINED, "marker": "D", "markersize": 4.5, "markerfacecolor": "none", "linewidth": 0,
    },
    "permuted score": {"color": "0.45", "marker": "x", "markersize": 5, "linewidth": 0},
}  # fmt: skip
"""The marks around the dot of a head, in the order in which they are drawn."""


@styled
def draw_reported_heads(table: xr.Dataset, variable: str = "") -> Figure:
    """Draw the held-out score of each reported head, next to the scores of its rivals.

    A line is the 95 % interval. The dot is full if the head stands out, hollow if it does not, and pale if that is
    undecided, as on the page and on the terminal. Bars are rivals, and the strongest bar is thick. A diamond is the
    best head of the untrained model. A cross is the score of the head on the permuted gold.

    Args:
        table: A head table with reported heads (`headscope.analyse.add_report`).
        variable: The variable of the score; by default, the score by which heads are reported, if the table has only
            one.

    Raises:
        TableError: no head is reported for the score.
    """
    variable = variable or main_score(table).variable
    report = next((report for report in read_reports(table) if report.score.variable == variable), None)
    rows = report.rows_with_heads if report else ()
    if report is None or not rows:
        raise TableError(f"the head table has no reported head for {variable}; choose heads by add_report first.")
    shown = rows[:FREQUENT]
    figure, body = make_figure(7.2, 1.5 + 0.24 * len(shown))
    axes = body.subplots()
    for place, row in enumerate(shown):
        _draw_row(axes, place, row)
    lay_out_rows(axes, [f"{row.caption} · {row.where}{row.mark}" for row in shown])
    low, high = axes.dataLim.intervalx
    axes.set_xlim(min(0, low) - 0.01, max(1, high) + 0.01)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"held-out {format_measure(report.score)}, 95 % interval")
    axes.text(1.08, 1, report.score.items, transform=axes.transAxes, ha="right", fontsize="small", color="0.35")
    body.legend(handles=_make_handles(shown), **ABOVE, ncols=4)
    hidden = len(rows) - len(shown)
    title = f"{report.score.title}: {describe_verdicts([report])}"
    return finish(figure, table, title, f"{hidden} more rows in the table" if hidden else "")


def _draw_row(axes: Axes, place: int, row: Reported) -> None:
    """Draw the score of a row's head over the scores of its rivals, with the number of items at the right."""
    for kind, score in _list_others(row):
        axes.plot(score, place, **OTHERS[kind], zorder=2, gid=f"{kind} {row.label}")
    interval, value = draw_interval(axes, row.score, place, row.verdict, COLOUR, "o")
    interval.set_gid(f"interval {row.label}")
    value.set_gid(f"score {row.label}")
    at_right: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center"}
    axes.text(1.08, place, f"{row.scored:,}", **at_right, fontsize="small", color="0.35", gid="count")


def _list_others(row: Reported) -> list[tuple[str, float]]:
    """Return the kind and the score of each mark around the dot of a head."""
    others = []
    for rival in row.rivals:
        of_rule = "strongest rival" if rival.name == row.strongest else "rival"
        others.append(("untrained model" if rival.name == UNTRAINED else of_rule, rival.score.value))
    return [*others, *([] if math.isnan(row.permuted) else [("permuted score", row.permuted)])]


def _make_handles(rows: Sequence[Reported]) -> list[Line2D]:
    """Return the handles of the legend: the verdicts and the other marks in the figure."""
    verdicts, kinds = {row.verdict for row in rows}, {kind for row in rows for kind, _ in _list_others(row)}
    handles = [
        Line2D([], [], marker="o", markersize=6, linewidth=1.6, label=verdict, **look_like(verdict, COLOUR))
        for verdict in (STANDS_OUT, DOES_NOT, UNDECIDED)
        if verdict in verdicts
    ]
    return handles + [Line2D([], [], label=kind, **look) for kind, look in OTHERS.items() if kind in kinds]
