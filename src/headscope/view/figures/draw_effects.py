"""The effects of disabling heads and layers, after Kovaleva et al. 2019 (figures 8 and 9)."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from headscope.analyse.metrics import read_metrics
from headscope.analyse.run_effects import summarize_effects
from headscope.view.effects_report import count_runs, get_whole, list_effects
from headscope.view.figures import style
from headscope.view.figures.draw_heatmaps import draw_cells

SURE = ("needed", "worse without", "better without", "matters")
"""The verdicts whose heads are outlined."""


def draw_effects(table: xr.Dataset) -> dict[str, Figure]:
    """Draw the figures of a table of effects by name: for each metric, a figure of all heads and one of all layers.

    They show all examples, and for a table of runs the mean over runs. Heads that were not disabled are hatched;
    layers that were not disabled are left out.
    """
    table = summarize_effects(table) if "run" in table.dims else table
    figures = {}
    for metric in read_metrics(table):
        if f"effect_{metric['name']}" in table:
            figures[f"heads-{metric['name']}"] = draw_head_effects(table, metric)
        if f"layer_effect_{metric['name']}" in table:
            figures[f"layers-{metric['name']}"] = draw_layer_effects(table, metric)
    return figures


@style.styled
def draw_head_effects(table: xr.Dataset, metric: Mapping[str, Any]) -> Figure:
    """Draw the change of a metric when each head is disabled, a panel for each way (Kovaleva et al. 2019, figure 8).

    Red is worse and blue is better; for a divergence, red is larger. A head is outlined if its effect is sure, and
    beyond its placebos if there are any. For a table of runs, the figure shows the mean, and also outlines heads whose
    effect is sure in every run.
    """
    table = summarize_effects(table) if "run" in table.dims else table
    effects = table[f"effect_{metric['name']}"].isel(subset=0)
    heads = list_effects(table).query("kind == 'head' and subset == 'all' and metric == @metric['name']")
    sure = heads[heads["verdict"].isin(_list_sure(table))]
    types, ways = style.list_attention_types(table), [str(how) for how in table["how"].values]
    sign = -1 if metric["better"] < 0 else 1
    wide = 3.1
    columns = len(ways) * len(types) if len(ways) * len(types) < 3 else 2
    rows = math.ceil(len(ways) * len(types) / columns)
    height = 0.5 + (style.height_of_cells(table, 0.94 * wide) + 0.5) * rows
    figure = style.NotebookFigure(figsize=(1.2 + wide * columns, height))
    grid = figure.subplots(rows, columns, squeeze=False)
    scale = style.centre(effects)
    colours = style.DIVERGING if sign < 0 or not metric["better"] else style.DIVERGING.removesuffix("_r")
    panels = [(how, kind) for how in ways for kind in types]
    for axes, (how, attention_type) in zip(grid.flat, panels, strict=False):
        draw_cells(axes, style.select_type(effects.sel(how=how), attention_type), scale, colours)
        axes.set_title(" · ".join(filter(None, (attention_type, how))), fontsize="small")
        _outline(axes, sure[sure["how"] == how], attention_type)
    style.hide_rest(grid, len(panels))
    label = f"change ({metric['units']})"
    style.add_colour_bar(figure, grid, scale, colours, label, aspect=18 * rows)
    by_runs = f", on the average of {runs} runs or in each of them" if (runs := count_runs(table)) else ""
    beyond = ", and beyond its placebos" if f"effect_{metric['name']}_placebo" in table else ""
    title = f"Each head disabled: change of the {metric['title']}{_state_whole(table, metric)}"
    return style.finish(figure, table, title, f"outlined: sure{beyond}{by_runs}" if len(sure) else "")


@style.styled
def draw_layer_effects(table: xr.Dataset, metric: Mapping[str, Any]) -> Figure:
    """Draw the change of a metric when each layer is disabled, with intervals (Kovaleva et al. 2019, figure 9).

    For a table of runs, it shows the mean over runs with its intervals.
    """
    table = summarize_effects(table) if "run" in table.dims else table
    frame = list_effects(table).query("kind == 'layer' and subset == 'all' and metric == @metric['name']")
    types, ways = style.list_attention_types(table), [str(how) for how in table["how"].values]
    figure, body = style.make_figure(6.4, 2.6 * len(types) + 0.8)
    grid = body.subplots(len(types), 1, squeeze=False)
    for axes, attention_type in zip(grid.flat, types, strict=True):
        for place, how in enumerate(ways):
            rows = frame[(frame["how"] == how) & frame["unit"].str.startswith(attention_type)]
            _draw_layers(axes, rows, (place - (len(ways) - 1) / 2) * 0.18, f"C{place}", how)
        axes.axhline(0, color="0.4", linewidth=0.8)
        axes.set(xlabel="layer", ylabel=f"change of {metric['title']}", title=attention_type)
        style.set_integer_ticks(axes, "x", np.arange(1, table.sizes["layer"] + 1))
    body.legend(*grid[0, 0].get_legend_handles_labels(), ncols=len(ways) + 1, **style.ABOVE)
    note = "bars: 95 % intervals, clustered by text; grey: where 95 % of placebos lie"
    if runs := count_runs(table):
        note = f"bars: 95 % intervals of the mean over {runs} runs; grey: those of placebos"
    title = f"Each layer disabled: change of the {metric['title']}{_state_whole(table, metric)}"
    return style.finish(figure, table, title, note)


def _draw_layers(axes: Axes, rows: pd.DataFrame, shift: float, colour: str, how: str) -> None:
    """Draw the effect of each layer as a dot with its interval, over a grey bar that spans its placebos."""
    places = rows["unit"].str.extract(r"(\d+)$")[0].astype(int) + shift
    placebos = rows["placebo"].notna()
    axes.bar(
        places[placebos], (rows["placebo_upper"] - rows["placebo_lower"])[placebos], 0.5,
        rows["placebo_lower"][placebos], color="0.85", label="placebos" if placebos.any() else None,
    )  # fmt: skip
    errors = [rows["effect"] - rows["lower"], rows["upper"] - rows["effect"]]
    axes.errorbar(places, rows["effect"], errors, fmt="o", markersize=4, linewidth=1, color=colour, label=how)


def _outline(axes: Axes, rows: pd.DataFrame, attention_type: str) -> None:
    for unit in rows["unit"]:
        prefix, _, name = str(unit).rpartition(" ")
        if prefix == attention_type:
            layer, head = map(int, name.split("-"))
            axes.add_patch(
                Rectangle((head - 0.5, layer - 0.5), 1, 1, fill=False, edgecolor="black", linewidth=1.4, clip_on=False)
            )


def _list_sure(table: xr.Dataset) -> list[str]:
    """Return the verdicts whose heads are outlined; for runs, also the verdicts that hold in every run."""
    runs = count_runs(table)
    return [*SURE, *(f"{verdict} in {runs} of {runs} runs" for verdict in SURE if runs)]


def _state_whole(table: xr.Dataset, metric: Mapping[str, Any]) -> str:
    if not metric["better"]:
        return ""
    mean = f", mean of {runs} runs" if (runs := count_runs(table)) else ""
    return f"\nwhole model{mean}: {get_whole(table, metric):.3f} {metric['units']}"
