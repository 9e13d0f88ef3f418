"""The lift of the reported heads on the corpus on which they were chosen, and on another corpus."""

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from headscope.analyse.report import DOES_NOT, STANDS_OUT, UNDECIDED
from headscope.errors import TableError
from headscope.view.figures.intervals import draw_interval, lay_out_rows, look_like
from headscope.view.figures.style import ABOVE, finish, make_figure, styled
from headscope.view.headings import name_replication
from headscope.view.reports import Interval, Reported, list_rows, read_reports
from headscope.view.verdicts import describe_replication

FREQUENT = 40
"""The largest number of rows that are shown, the most frequent first; the table has all rows."""

HERE, THERE = ("#0072B2", "o"), ("#D55E00", "s")
"""The colour (of Okabe and Ito) and the marker of each corpus."""

APART = 0.17
"""The distance of a mark above or below the line of its row, in rows."""


def has_replication(table: xr.Dataset) -> bool:
    """Return True if a reported head has a lift on another corpus."""
    return bool(_list_rows(table))


@styled
def draw_replication(table: xr.Dataset) -> Figure:
    """Draw two intervals for each reported head: its lift over the strongest rival here and on the other corpus.

    The upper interval is on the corpus on which the head was chosen (held-out half), the lower one on the other corpus.
    The mark is full if the head beats every rival: it stands out here, or survives there. A hollow mark means that the
    head does not beat every rival, and a pale one that this is undecided. The strongest rival can differ between the
    corpora, so a hollow mark may lie above 0.

    Args:
        table: A head table with the variables of `headscope.analyse.add_replication`.

    Raises:
        TableError: the table has no reported head with a lift on another corpus.
    """
    rows = _list_rows(table)
    if not rows:
        raise TableError(
            "the head table has no reported head with a lift on another corpus; measure with --replicate, or call "
            "add_replication first."
        )
    shown = rows[:FREQUENT]
    figure, body = make_figure(7.2, 1.3 + 0.3 * len(shown))
    axes = body.subplots()
    for place, row in enumerate(shown):
        _draw_row(axes, place, row)
    axes.axvline(0, color="0.25", linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    lay_out_rows(axes, [f"{row.caption} · {row.where}" for row in shown])
    axes.set_xlim(*_find_limits(shown))
    axes.set_xlabel("lift over the strongest rival, with 95 % interval", loc="right")
    body.legend(handles=_make_handles(table), **ABOVE, ncols=2)
    hidden = len(rows) - len(shown)
    title = describe_replication(table, read_reports(table))
    return finish(figure, table, title, f"{hidden} more rows in the table" if hidden else "")


def _list_rows(table: xr.Dataset) -> list[Reported]:
    """Return the rows with a reported head that has a lift on the other corpus."""
    rows = list_rows(read_reports(table))
    return [row for row in rows if row.replication is not None and math.isfinite(row.replication.lift.value)]


def _draw_row(axes: Axes, place: int, row: Reported) -> None:
    """Draw the lift of a row's head on both corpora, joined by a thin line."""
    there = row.replication
    assert there is not None
    lifts = {"here": (row.lift, row.verdict, HERE, -APART), "there": (there.lift, there.verdict, THERE, APART)}
    axes.plot([row.lift.value, there.lift.value], [place - APART, place + APART], color="0.75", linewidth=1, zorder=1)
    for name, (lift, verdict, (colour, marker), shift) in lifts.items():
        for part in draw_interval(axes, lift, place + shift, verdict, colour, marker):
            part.set_gid(f"{name} {row.label}")


def _find_limits(rows: Sequence[Reported]) -> tuple[float, float]:
    """Return the limits of the axis, which shows all lifts and 0, but not the far parts of wide intervals."""
    lifts = [lift for row in rows if row.replication for lift in (row.lift, row.replication.lift)]
    values = np.array([lift.value for lift in lifts])
    ends = np.array([end for lift in lifts for end in _list_ends(lift)])
    span = max(np.nanmax(values) - np.nanmin(values), 0.1)
    low = max(np.nanmin(ends), np.nanmin(values) - span)
    high = min(np.nanmax(ends), np.nanmax(values) + span)
    margin = 0.03 * (max(high, 0) - min(low, 0))
    return min(low, 0) - margin, max(high, 0) + margin


def _list_ends(lift: Interval) -> tuple[float, ...]:
    return tuple(end for end in lift if math.isfinite(end))


def _make_handles(table: xr.Dataset) -> list[Line2D]:
    """Return the handles of the legend: the two corpora, and the meaning of full, hollow and pale marks."""
    corpora = {"here (held-out half)": HERE, f"on {name_replication(table)}": THERE}
    handles = [
        Line2D([], [], color=colour, marker=marker, linewidth=1.6, label=label)
        for label, (colour, marker) in corpora.items()
    ]
    verdicts = {STANDS_OUT: "stands out here, survives there", DOES_NOT: "does not", UNDECIDED: "too little to decide"}
    return handles + [
        Line2D([], [], marker="o", linewidth=0, label=label, **look_like(verdict, "0.35"))
        for verdict, label in verdicts.items()
    ]
