"""Shared parts of charts of dots with intervals: a line for each row, and marks with a look for each verdict."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from headscope.analyse.replicate import SURVIVES
from headscope.analyse.report import STANDS_OUT, UNDECIDED
from headscope.view.reports import Interval

PALE = 0.4
"""The opacity of a mark with an undecided verdict."""


def lay_out_rows(axes: Axes, labels: Sequence[str]) -> None:
    """Set the axes for a line of the chart for each label, the first at the top, over a grid for the values."""
    axes.set_yticks(np.arange(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.grid(axis="x", color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)


def draw_interval(
    axes: Axes, interval: Interval, place: int | float, verdict: str, colour: str, marker: str
) -> tuple[Line2D, Line2D]:
    """Draw an interval as a line at the height `place`, and its value as a mark; return the line and the mark."""
    look = look_like(verdict, colour)
    line: dict[str, Any] = {"color": colour, "alpha": look["alpha"], "linewidth": 1.6, "solid_capstyle": "butt"}
    (ends,) = axes.plot([interval.lower, interval.upper], [place] * 2, **line, zorder=3)
    (value,) = axes.plot(interval.value, place, marker, markersize=6, **look, zorder=3)
    return ends, value


def look_like(verdict: str, colour: str) -> dict[str, Any]:
    """Return the look of a mark by its verdict: full if the head beats all rivals, pale if undecided, else hollow."""
    full = verdict in {STANDS_OUT, SURVIVES}
    return {
        "color": colour, "markerfacecolor": colour if full else "white", "markeredgewidth": 1.4,
        "alpha": PALE if verdict == UNDECIDED else 1.0,
    }  # fmt: skip
