"""Figures of the changes of heads by fine-tuning, after Zhao and Bethard 2020, with task and control side by side.

Each function takes a comparison (`headscope.analyse.compare`); `headscope.view.figures.draw_runs` has the figures that
need no control.
"""

import math
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import CenteredNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from headscope.heads import parse_head
from headscope.view.comparison_frames import make_frames, read_means
from headscope.view.figures import style
from headscope.view.figures.draw_heatmaps import draw_cells
from headscope.view.reports import LEVEL
from headscope.view.wording import (
    check_comparison,
    describe_comparison,
    describe_group,
    describe_test,
    format_number,
    list_groups,
    list_layer_values,
    name_group,
    name_outcome,
)

COLOURS = {"task": "#0072B2", "control": "#E69F00"}
"""The colours of the task and of the control (from the palette of Okabe and Ito)."""

MARKERS = {"task": "o", "control": "s"}

FEW = 5
"""The smallest number of runs that are drawn as a box, since the quartiles of three points are the points."""


@style.styled
def draw_change_heatmaps(comparison: xr.Dataset) -> Figure:
    """Draw the mean change of every head, with task and control side by side (Zhao and Bethard 2020, figure 4).

    Both panels share a scale that is symmetric around 0: red heads gain, blue heads lose. A dot marks a head whose runs
    have another distribution than the runs of the control (without a control: a head that changes), at a false
    discovery rate of at most 0.05.
    """
    groups, sizes = list_groups(check_comparison(comparison)), comparison.sizes
    change = comparison["change"].transpose("group", "layer", "head")
    most = float(np.abs(change).max())
    scale = CenteredNorm(0, most if most > 0 else 1.0)
    heads = make_frames(comparison)["heads"]
    marked = heads[heads[name_outcome(comparison, "q")] <= LEVEL]
    height = style.height_of_cells(comparison)
    figure = style.NotebookFigure(figsize=(1.4 + 3.1 * len(groups), 0.9 + height))
    panels = figure.subplots(1, len(groups), squeeze=False)[0]
    for axes, group in zip(panels, groups, strict=True):
        draw_cells(axes, change.sel(group=group), scale, style.DIVERGING)
        outline_best(axes, comparison)
        if group == "task":
            _dots(axes, marked, comparison, height)
        axes.set_title(describe_group(comparison, group))
    label = f"mean change ({comparison['change'].attrs['units']})"
    set_signed_ticks(style.add_colour_bar(figure, panels, scale, style.DIVERGING, label).ax.yaxis, most)
    what = f"change of {describe_comparison(comparison)} by fine-tuning on {name_group(comparison, 'task')}"
    keys = [_key(comparison, len(marked)), f"□ {comparison.attrs['best_head']}, the best head before"]
    keys += ["▨ no value"] if change.isnull().any() else []
    note = f"{sizes['layer']} layers of {sizes['head']} heads, mean over runs of each"
    return style.annotate(figure, comparison, what, note, *keys)


@style.styled
def draw_layer_boxes(comparison: xr.Dataset) -> Figure:
    """Draw the mean change of each layer's heads in every run, task next to control (Zhao and Bethard 2020, figure 5).

    Each dot is a run. A box spans the quartiles over runs, its line is the median, and its whiskers reach the farthest
    run within 1.5 times its height. Fewer than five runs have no box.
    """
    groups, layers = list_groups(check_comparison(comparison)), comparison["layer"].values
    apart = 0.8 / len(groups)
    figure, body = style.make_figure(max(6.5, 1.0 + (0.2 + 0.12 * len(groups)) * len(layers)), 3.3)
    axes = body.subplots()
    for layer in layers[1::2]:
        axes.axvspan(layer - 0.5, layer + 0.5, color="0.96", linewidth=0, zorder=0)
    axes.axhline(0, color="0.4", linewidth=0.8, zorder=1)
    handles: list[Any] = []
    for place, group in enumerate(groups):
        colour, shift = COLOURS[group], apart * (place - (len(groups) - 1) / 2)
        for layer, values in list_layer_values(comparison, group):
            if len(values) >= FEW:
                _box(axes, values, layer + shift, apart, colour)
            spread = 0.22 * apart * np.linspace(-1, 1, len(values)) if len(values) > 1 else np.zeros(len(values))
            size = 9 if len(values) >= FEW else 16
            look: dict[str, Any] = {
                "color": colour,
                "marker": MARKERS[group],
                "edgecolor": "white",
                "linewidth": 0.3,
            }
            axes.scatter(layer + shift + spread, values, s=size, zorder=3, gid=f"{group}-{layer}", **look)
        label = describe_group(comparison, group)
        handles.append(Line2D([], [], color=colour, marker=MARKERS[group], linestyle="", markersize=5, label=label))
    if any(len(values) >= FEW for group in groups for _, values in list_layer_values(comparison, group)):
        handles.append(Patch(facecolor="0.9", edgecolor="0.3", label="quartiles and median"))
    of_layers = make_frames(comparison)["layers"]
    starred = of_layers.loc[of_layers[name_outcome(comparison, "q", "layer_")] <= LEVEL, "layer"]
    if len(starred):
        above: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "clip_on": False, "gid": "starred"}
        axes.scatter(starred, [1.03] * len(starred), s=36, color="0.1", marker="*", linewidth=0, **above)
        label = f"q ≤ {LEVEL}, " + describe_test(comparison)[1]
        handles.append(Line2D([], [], color="0.1", marker="*", linestyle="", markersize=7, label=label))
    axes.set(xlabel="layer", ylabel=f"mean change of its heads\n({comparison['change'].attrs['units']})")
    axes.set_xlim(layers[0] - 0.5, layers[-1] + 0.5)
    set_signed_ticks(axes.yaxis, float(np.abs(comparison["layer_change"]).max()))
    style.set_integer_ticks(axes, "x", layers)
    body.legend(handles=handles, **style.ABOVE, ncols=2)
    what = f"change of {describe_comparison(comparison)} by fine-tuning on {name_group(comparison, 'task')}, by layer"
    unstarred = "" if len(starred) else f"; no layer has q ≤ {LEVEL} ({describe_test(comparison)[1]})"
    return style.annotate(figure, comparison, what, f"each dot is a run{unstarred}")


@style.styled
def draw_baseline_scatter(comparison: xr.Dataset) -> Figure:
    """Draw the score of each head before against its mean change (Zhao and Bethard 2020: do the rich get richer?).

    Above each panel is Kendall's tau as in the paper, and corrected by split halves if that is possible.
    """
    groups, frames = list_groups(check_comparison(comparison)), make_frames(comparison)
    heads, runs = frames["heads"], frames["runs"].set_index("group")
    figure = style.NotebookFigure(figsize=(0.8 + 3.3 * len(groups), 3.9))
    panels = figure.subplots(1, len(groups), squeeze=False, sharey=True)[0]
    for axes, group in zip(panels, groups, strict=True):
        axes.axhline(0, color="0.4", linewidth=0.8, zorder=1)
        look: dict[str, Any] = {"s": 14, "color": COLOURS[group], "alpha": 0.6, "linewidth": 0, "zorder": 2}
        axes.scatter(heads["before"], heads[f"change_{group}"], gid=group, **look)
        axes.set_title(f"{describe_group(comparison, group)}\n{_describe_taus(runs.loc[[group]])}", fontsize="small")
        axes.set_xlabel(f"before ({comparison['before'].attrs['units']})")
    set_signed_ticks(panels[0].yaxis, float(np.abs(comparison["change"]).max()))
    panels[0].set_ylabel(f"mean change ({comparison['change'].attrs['units']})")
    variable, task = describe_comparison(comparison), name_group(comparison, "task")
    note = "each dot is a head; τ as published ranks a score and its own change, which pulls it below 0"
    return style.annotate(figure, comparison, f"{variable} before, and its change by fine-tuning on {task}", note)


def set_signed_ticks(axis: Axis, most: float) -> None:
    """Set tick labels of an axis with a sign, and with the number of digits that values up to `most` need."""
    digits = max(0, 1 - math.floor(math.log10(most))) if most > 0 else 1
    axis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:+.{digits}f}".replace("-", "−") if round(value, digits) else "0")
    )


def outline_best(axes: Axes, comparison: xr.Dataset) -> None:
    """Outline the cell of the head that has the best score before fine-tuning."""
    layer, head = parse_head(str(comparison.attrs["best_head"]), comparison)
    fine = min(1.0, 14 / comparison.sizes["head"])
    outline = Rectangle((head - 0.5, layer - 0.5), 1, 1, fill=False, edgecolor="black", clip_on=False, gid="best")
    outline.set(linewidth=1.4 * fine, path_effects=[patheffects.withStroke(linewidth=3.4 * fine, foreground="white")])
    axes.add_patch(outline)


def _dots(axes: Axes, marked: pd.DataFrame, comparison: xr.Dataset, height: float) -> None:
    """Draw a dot in the cell of each marked head, a third as wide as the cell."""
    wide = 72 * min(height / comparison.sizes["layer"], 2.6 / comparison.sizes["head"])
    look: dict[str, Any] = {"s": (0.33 * wide) ** 2, "color": "black", "edgecolor": "white", "linewidth": 0.06 * wide}
    axes.scatter(marked["head"], marked["layer"], gid="marked", **look)


def _key(comparison: xr.Dataset, marked: int) -> str:
    """Return the meaning of the dots and their number, or a note that the runs are too few to mark a head."""
    least = read_means(comparison)[name_outcome(comparison, "p_least")]
    if least > LEVEL:
        return f"no head can be marked: p is {least:.3g} at least with so few runs"
    return f"● q ≤ {LEVEL} ({describe_test(comparison)[1]}): {marked} of {comparison.attrs['heads']} heads"


def _box(axes: Axes, values: np.ndarray, at: float, apart: float, colour: str) -> None:
    line = {"color": colour, "linewidth": 0.9}
    box = {"facecolor": mpl.colors.to_rgba(colour, 0.25), "edgecolor": colour, "linewidth": 0.9}
    look: dict[str, Any] = {"boxprops": box, "medianprops": line | {"linewidth": 1.8}, "whiskerprops": line}
    plain: dict[str, Any] = {"showfliers": False, "patch_artist": True, "manage_ticks": False, "zorder": 2}
    axes.boxplot(values, positions=[at], widths=0.78 * apart, capprops=line, **look, **plain)


def _describe_taus(runs: pd.DataFrame) -> str:
    published, corrected = (format_number(runs[f"baseline_tau{which}"].mean(), 2) for which in ("", "_corrected"))
    if not published:
        return "no τ: the heads are all alike before, or change alike"
    return f"τ as published {published}" + (f" · corrected {corrected}" if corrected else "")
