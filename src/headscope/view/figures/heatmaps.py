"""Heatmaps of heads by layer: a score or a description of every head."""

import math
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from headscope.analyse import consistency
from headscope.errors import TableError
from headscope.heads import head_name
from headscope.score import Score, find_score, main_score, read_scores
from headscope.view.figures.style import (
    ABREAST,
    COLOURS,
    DIVERGING,
    STYLE,
    add_caption,
    add_colour_bar,
    height_of_cells,
    list_attention_types,
    select_type,
    set_integer_ticks,
)
from headscope.view.offsets import Offset, best_offset, format_offset
from headscope.view.reports import Reported, format_measure, read_reports
from headscope.view.wording import name_variable


def draw_score_heatmap(table: xr.Dataset, variable: str = "", row: str = "") -> Figure:
    """A score of every head by layer, the best head of each panel outlined.

    A score with two directions has a panel for each direction of one row; any other a panel for each row that the
    corpus has, or a single one, and beside it a panel for each baseline that differs from head to head. Above stand
    the count, the baselines and the held-out score, since the best head of a panel is chosen on the texts on which it
    is scored. A description with a share of tokens to compare with is shown in multiples of that share: red heads give
    a class more than its share, blue ones less.

    Args:
        table: a head table with the score.
        variable: of the score; by default the one by which heads are reported, if the table has only one.
        row: of a score with directions, such as a relation; by default its first.

    Raises:
        TableError: the table does not describe the score, or has not this row, or no row with any item.
    """
    score = _find(table, variable)
    dim = score.row_dimension(table)
    if not score.is_ratio and score.control in table:
        return _draw_shares(table, score, dim)
    rows = [] if not dim else table[dim].values.tolist()
    if row and row not in rows:
        raise TableError(f"the head table has no {dim or 'row'} {row!r}; it has {', '.join(map(str, rows)) or 'none'}.")
    values = table[score.variable]
    label = f"{format_measure(score)} ({values.attrs['units']})"
    if "direction" in values.dims or not rows:
        place = {dim: row or rows[0]} if rows else {}
        title, best = _describe_row(table, score, place)
        values = values.sel(place)
        panels = {"": values} if "direction" not in values.dims else {
            str(name).replace("_", " "): values.sel(direction=name) for name in values["direction"].values
        }  # fmt: skip
        for baseline, phrase in score.baselines.items():
            if baseline in table and {"layer", "head"} <= set(table[baseline].dims):
                panels = {name or score.title.lower(): panel for name, panel in panels.items()}
                panels[phrase] = table[baseline].sel(place)
        return _draw_panels(table, panels, best, title, label)
    has_counts = f"{score.stem}_count" in table
    places = [place for place in score.places(table) if score.count(table, place) or not has_counts]
    if not places:
        raise TableError(f"the corpus has nothing that {score.variable} could be of; measure another corpus.")
    panels = {_describe_row(table, score, place)[0]: values.sel(place) for place in places}
    return _draw_panels(table, panels, None, f"{score.title}: {score.definition}", label)


def draw_consistency_heatmap(first: xr.Dataset, second: xr.Dataset, variable: str = "") -> Figure:
    """A score of every head on two corpora, side by side on one scale (Zhao and Bethard 2020, figures 2, A1 to A4).

    Args:
        first: a head table of a model on one corpus.
        second: of the same model on another corpus.
        variable: one value for each head, as `headscope.consistency` wants it.

    Raises:
        TableError: the heads cannot be compared.
    """
    variable = variable or main_score(first).variable
    agreement = consistency(first, second, variable)
    names = [Path(str(table.attrs["corpus"])).name for table in (first, second)]
    if names[0] == names[1]:
        names = [f"{name} ({place})" for place, name in enumerate(names, start=1)]
    panels = {name: table[variable] for name, table in zip(names, (first, second), strict=True)}
    title = f"{name_variable(variable)} on two corpora\nKendall's τ {agreement.tau:.3f}"
    if not math.isnan(agreement.lower):
        title += f" [{agreement.lower:.2f}, {agreement.upper:.2f}]"
    documents = sum(int(table.attrs["documents"]) for table in (first, second))
    both = first.assign_attrs(corpus=" and ".join(names), documents=documents)
    return _draw_panels(both, panels, None, title, str(first[variable].attrs["units"]))


def _find(table: xr.Dataset, variable: str) -> Score:
    score = find_score(table, variable) if variable else main_score(table)
    if score is None or score.variable not in table:
        known = ", ".join(score.variable for score in read_scores(table)) or "none"
        raise TableError(f"the head table has no score {variable}; it has {known}.")
    return score


def _draw_shares(table: xr.Dataset, score: Score, dim: str) -> Figure:
    """Attention to classes in multiples of the share of the tokens that each class is."""
    places = [place for place in score.places(table) if bool(table[score.control].sel(place) > 0)]
    if not places:
        raise TableError(f"the corpus has nothing that {score.variable} could be of; measure another corpus.")
    times = table[score.variable] / table[score.control]
    most = max(2.0, float(times.max()))
    panels = {}
    for place in places:
        title = f"{place[dim]} ({float(table[score.control].sel(place)):.0%})"
        if count := score.count(table, place):
            title += f" · {count:,} {score.items}"
        panels[title] = times.sel(place).clip(min=1 / most)
    what = f"{score.title}, in multiples of the {score.baselines[score.control]} (in brackets)"
    scale = LogNorm(1 / most, most)
    unit = f"times the {score.baselines[score.control]}"
    return _draw_panels(table, panels, None, what, unit, scale=scale, colours=DIVERGING)


def _describe_row(table: xr.Dataset, score: Score, place: Mapping[str, str]) -> tuple[str, Offset | None]:
    """A row, its count, its baselines and its held-out score, in lines; and the best fixed offset."""
    name = " ".join(place.values()).replace("_", " ") or score.title
    if count := score.count(table, place):
        name += f" · {count:,} {table[f'{score.stem}_count'].attrs['units']}"
    lines, offset = [name], best_offset(table, score, place)
    baselines = [f"best fixed offset {format_offset(offset.offset)}: {offset.value:.2f}"] if offset else []
    for variable, phrase in score.baselines.items():
        if variable in table and set(table[variable].dims) == set(place):
            value = float(table[variable].sel(place))
            baselines += [] if math.isnan(value) else [f"{phrase}: {value:.2f}"]
    lines += [" · ".join(baselines)] if baselines else []
    reports = [report for report in read_reports(table) if report.score.variable == score.variable]
    labels = [list(where.values()) for where in score.places(table)]
    for report in reports:
        reported = report.rows[labels.index(list(place.values()))]
        lines += [_describe_held_out(reported)] if reported.layer else []
    return "\n".join(lines), offset


def _describe_held_out(row: Reported) -> str:
    """The reported head with its held-out score and its lift over the strongest rival."""
    line = f"held out: {row.where}"
    if row.attends:
        line += f" from {row.attends}"
    line += f": {row.score.value:.2f}"
    if not math.isnan(row.score.lower):
        line += f" [{row.score.lower:.2f}, {row.score.upper:.2f}]"
    if rival := row.strongest_rival:
        line += f" · {rival.label} {rival.score.value:.2f}"
    return line


def _draw_panels(
    table: xr.Dataset,
    panels: Mapping[str, xr.DataArray],
    baseline: Offset | None,
    title: str,
    label: str,
    *,
    scale: Normalize | None = None,
    colours: str = COLOURS,
) -> Figure:
    """A panel for each direction and attention type, on one scale: by default one to the best head or the baseline."""
    of_model = list_attention_types(table)
    marks = [*(float(values.max()) for values in panels.values()), baseline.value if baseline else math.nan]
    least = min(0.0, *(float(values.min()) for values in panels.values()))
    scale = scale or Normalize(least, max((mark for mark in marks if mark > 0), default=1.0))
    height = height_of_cells(table)
    columns = len(of_model) if of_model[0] else min(len(panels), ABREAST)
    rows = math.ceil(len(panels) * len(of_model) / columns)
    with mpl.rc_context(STYLE):
        above = max(title.count("\n") for title in panels) * 0.16
        figure = Figure(figsize=(1.2 + 3.1 * columns, 1.1 + (height + above) * rows))
        grid = figure.subplots(rows, columns, squeeze=False)
        places = [(attention_type, direction) for direction in panels for attention_type in of_model]
        for axes, (attention_type, direction) in zip(grid.flat, places, strict=False):
            _heatmap(axes, select_type(panels[direction], attention_type), scale, direction, attention_type, colours)
        for axes in grid.flat[len(places) :]:
            axes.set_axis_off()
        bar = add_colour_bar(figure, grid, scale, colours, label, aspect=18 * rows)
        if isinstance(scale, LogNorm):
            most = int(math.log2(scale.vmax or 1))
            powers = range(-most, most + 1)
            bar.set_ticks([2.0**n for n in powers], labels=[str(2**n) if n >= 0 else f"1/{2**-n}" for n in powers])
            bar.minorticks_off()
        if baseline is not None:
            bar.ax.axhline(baseline.value, color="white", linewidth=3.2)
            bar.ax.axhline(baseline.value, color="black", linewidth=1.4, gid="baseline")
            place: dict[str, Any] = {"xy": (0, baseline.value), "xytext": (-4, 0), "textcoords": "offset points"}
            text = f"offset\n{format_offset(baseline.offset)}"
            bar.ax.annotate(text, **place, ha="right", va="center", fontsize="small")
        lines = [part for line in title.split("\n") for part in textwrap.wrap(line, int(13 * figure.get_figwidth()))]
        figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize="medium")
        add_caption(figure, table)
    return figure


def _heatmap(
    axes: Axes, values: xr.DataArray, scale: Normalize, direction: str, attention_type: str, colours: str
) -> None:
    """Heads of one attention type and direction, layer 1 at the top, the best one outlined and named in the title."""
    title = " · ".join(filter(None, (attention_type, direction)))
    title = "\n".join(part for line in title.split("\n") for part in textwrap.wrap(line, 48))
    if not values.size:
        axes.set_axis_off()
        axes.set_title(f"{title}\nno value")
        return
    layers, heads = values["layer"].values, values["head"].values
    fine = draw_cells(axes, values, scale, colours)
    best = np.unravel_index(int(np.nanargmax(values.values)), values.shape)
    layer, head = int(layers[best[0]]), int(heads[best[1]])
    outline = Rectangle((head - 0.5, layer - 0.5), 1, 1, fill=False, edgecolor="white", clip_on=False, gid="best")
    outline.set(linewidth=1.6 * fine, path_effects=[patheffects.withStroke(linewidth=4 * fine, foreground="black")])
    axes.add_patch(outline)
    axes.set_title(f"{title}\nbest: {head_name(layer, head)} {float(values.values[best]):.2f}", fontsize="small")


def draw_cells(axes: Axes, values: xr.DataArray, scale: Normalize, colours: str) -> float:
    """A cell for each head of ``(layer, head)``, layer 1 at the top, hatched where it has no value.

    Returns:
        how fine lines must be beside cells so small, 1 at most.
    """
    layers, heads = values["layer"].values, values["head"].values
    fine = min(1.0, 14 / len(heads))  # thinner lines for small cells, or they would cover them
    edges = [np.append(numbers - 0.5, numbers[-1] + 0.5) for numbers in (heads, layers)]
    shown = np.ma.masked_invalid(values.values)
    axes.pcolormesh(*edges, shown, cmap=colours, norm=scale, edgecolors="white", linewidth=0.6 * fine)
    axes.set(xlabel="head", ylabel="layer", facecolor="0.92")
    if shown.mask.any():
        axes.patch.set(hatch="/////", edgecolor="0.6", linewidth=0)
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    set_integer_ticks(axes, "x", heads)
    set_integer_ticks(axes, "y", layers)
    return fine
