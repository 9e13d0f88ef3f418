"""Time and memory against length, a column of panels for each shape, a line for each way."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from ways.results import Point, Results
from ways.shapes import SHAPES

STYLE: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "headscope",  # else the ids in an SVG are random and no two runs give the same file
}

COLOURS = ("#666666", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#A67C00")
"""Of the ways in their order (Okabe and Ito; the last is darker than theirs, to be read as text)."""

LINE = 0.045
"""The height of a line of a label, as a part of the panel's."""

ROUNDS = 200
"""The number of times that labels are pushed apart; each time they touch new neighbours."""

NARROW = 100
"""A panel from bottom to top; a narrower one gets more ticks than one a power of ten."""

BESIDE = 1.04
"""The beginning of a label, as a part of the panel's width."""

Height = Callable[[Point], float]


def plot(results: Results, labels: Mapping[str, str], path: Path) -> None:
    """Write the figure as SVG and as PNG, beside each other.

    Args:
        results: what was measured.
        labels: of the ways, in their order.
        path: the one of the two files or the other.
    """
    shapes = [name for name in SHAPES if any(run.shape == name for run in results.runs)]
    rows: Sequence[tuple[str, Height]] = (
        ("seconds of a pass", lambda point: point.pass_seconds),
        ("peak memory of the process, MiB", lambda point: point.peak_mib),
    )
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.6 * len(shapes), 7.6))
        for row, panels in enumerate(figure.subplots(len(rows), len(shapes), squeeze=False)):
            ylabel, height = rows[row]
            for shape, axes in zip(shapes, panels, strict=True):
                _panel(axes, results, shape, labels, height)
                axes.set_ylabel(ylabel)
                if row == 0:
                    axes.set_title(SHAPES[shape].title)
                else:
                    axes.set_xlabel("tokens of the text")
        for suffix, metadata in ((".svg", {"Date": None}), (".png", {})):
            figure.savefig(path.with_suffix(suffix), dpi=160, metadata=metadata, facecolor="white")


def _panel(axes: Axes, results: Results, shape: str, labels: Mapping[str, str], height: Height) -> None:
    lengths = sorted({run.length for run in results.runs if run.shape == shape})
    axes.set(xscale="log", yscale="log", xticks=lengths, xlim=(lengths[0] / 1.2, lengths[-1] * 1.2))
    axes.set_xticklabels([f"{length:,}" for length in lengths])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.grid(axis="y", color="#E5E5E5", linewidth=0.6)
    ends = []
    for colour, (way, label) in zip(COLOURS, labels.items(), strict=True):
        points = {length: results.point(shape, length, way) for length in lengths}
        measured = {length: height(point) for length, point in points.items() if point is not None}
        if not measured:
            continue
        last, thick = max(measured), 2.4 if way == "headscope" else 1.3
        axes.plot(list(measured), list(measured.values()), marker="o", markersize=3, color=colour, linewidth=thick)
        failed = next((run for length in lengths if (run := results.failure(shape, length, way))), None)
        why = "" if failed is None else f"\n{failed.failure} at {failed.length:,}"
        ends.append((last, measured[last], label + why, colour))
    bottom, top = axes.get_ylim()
    subs = (1.0, 2.0, 5.0) if top / bottom < NARROW else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(subs=subs))
    axes.set_ylim(bottom, top)
    _label(axes, ends)


def _label(axes: Axes, ends: list[tuple[int, float, str, str]]) -> None:
    """Write the labels beside the panel, each joined to the end of its line, and none upon another."""
    to_panel = axes.transData + axes.transAxes.inverted()
    ends = sorted(ends, key=lambda end: to_panel.transform(end[:2])[1])
    heights = [float(to_panel.transform(end[:2])[1]) for end in ends]
    halves = [LINE * (1 + text.count("\n")) / 2 for _, _, text, _ in ends]
    for _ in range(ROUNDS):
        for lower, upper in pairwise(range(len(ends))):
            overlap = max(0.0, halves[lower] + halves[upper] - (heights[upper] - heights[lower]))
            heights[lower] -= overlap / 2
            heights[upper] += overlap / 2
        heights = [min(height, 1 - half) for height, half in zip(heights, halves, strict=True)]
    for height, (length, value, text, colour) in zip(heights, ends, strict=True):
        joint = {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "linestyle": ":"}
        axes.annotate(
            text,
            (length, value),
            (BESIDE, height),
            textcoords="axes fraction",
            color=colour,
            va="center",
            fontsize=8,
            arrowprops=joint | {"relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 3},
        )
