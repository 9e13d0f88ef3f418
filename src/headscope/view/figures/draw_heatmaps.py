"""Heatmaps of heads by layer: a score or a description of every head.

Scores are shares, such as the share of links that a head gets right. All their heatmaps have the scale from 0 to 1, so
that they can be compared. A description has its own scale. The reported head is outlined only if it stands out
(`headscope.view.reports`).
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
from headscope.view.figures import style
from headscope.view.offsets import Offset, best_offset, format_offset
from headscope.view.reports import Reported, format_measure, read_report
from headscope.view.wording import format_ends, format_interval, format_number, name_variable

ABREAST = 2
"""The number of panels in a row of the figure."""

PANELS = 6.2
"""The width of the panels in a row, in inches; with the colour bar, it is the width of a page."""


class Panel(NamedTuple):
    """A panel of a figure: its title, a value for each head, and the reported head of these values, if there is one."""

    title: str
    values: xr.DataArray
    reported: Reported | None = None


class Baseline(NamedTuple):
    """A baseline that is marked on the colour bar: its value, and its name in two lines."""

    value: float
    name: str


def draw_score_heatmap(table: xr.Dataset, variable: str = "", row: str = "") -> Figure:
    """Draw a score of every head by layer, from 0 to 1, with the reported head outlined if it stands out.

    A score with two directions has a panel for each direction of one row. Any other score has a panel for each row that
    the corpus has, or a single panel. A panel for each baseline that differs from head to head follows. The titles have
    the count, the baselines and the held-out score, since the best head of a panel is chosen on the texts on which it
    is scored. The strongest rival is marked on the scale.

    A description whose baseline is a share of tokens is shown in multiples of that share: red heads give a class more
    than its share, blue heads less. It has no rivals, and so no outlines.

    Args:
        table: A head table with the score.
        variable: The variable of the score; by default, the score by which heads are reported, if the table has only
            one.
        row: A row of a score with directions, such as a relation; by default, the first row.

    Raises:
        TableError: the table does not describe the score, lacks this row, or has no row with any item.
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
    reported = _list_reported(table, score)
    if "direction" in values.dims or not rows:
        place = {dim: row or rows[0]} if rows else {}
        head = reported[rows.index(row) if row else 0]
        title, best = _describe_row(table, score, place, head)
        values, directed = values.sel(place), head.direction if head else None
        panels = [Panel("", values, head)] if "direction" not in values.dims else [
            Panel(way.replace("_", " "), values.sel(direction=way), head if way == directed else None)
            for way in values["direction"].values.tolist()
        ]  # fmt: skip
        for baseline, phrase in score.baselines.items():
            if baseline in table and {"layer", "head"} <= set(table[baseline].dims):
                panels = [panel._replace(title=panel.title or score.title.lower()) for panel in panels]
                panels.append(Panel(phrase, table[baseline].sel(place)))
        mark = _choose_baseline(head, best)
        return _draw_panels(table, panels, title, label, scale=_choose_scale(score, panels, mark), baseline=mark)
    has_counts = f"{score.stem}_count" in table
    panels = [
        Panel(_describe_row(table, score, place, head)[0], values.sel(place), head)
        for place, head in zip(score.places(table), reported, strict=True)
        if score.count(table, place) or not has_counts
    ]
    if not panels:
        raise TableError(f"the corpus has nothing that {score.variable} could be of; measure another corpus.")
    title = f"{score.title}: {score.definition}"
    return _draw_panels(table, panels, title, label, scale=_choose_scale(score, panels))


def draw_consistency_heatmap(first: xr.Dataset, second: xr.Dataset, variable: str = "") -> Figure:
    """Draw a score of every head on two corpora, side by side (Zhao and Bethard 2020, figures 2, A1 to A4).

    Both panels share a scale.

    Args:
        first: A head table of a model on one corpus.
        second: A head table of the same model on another corpus.
        variable: A variable with one value for each head, as `headscope.analyse.consistency` takes it.

    Raises:
        TableError: the heads cannot be compared.
    """
    variable = variable or main_score(first).variable
    agreement = consistency(first, second, variable)
    names = [Path(str(table.attrs["corpus"])).name for table in (first, second)]
    if names[0] == names[1]:
        names = [f"{name} ({place})" for place, name in enumerate(names, start=1)]
    score = find_score(first, variable)
    panels = [
        Panel(name, table[variable], _list_reported(table, score)[0] if score else None)
        for name, table in zip(names, (first, second), strict=True)
    ]
    tau = f"{format_number(agreement.tau)} {format_ends(agreement.lower, agreement.upper, digits=2)}".rstrip()
    title = f"{name_variable(variable)} on two corpora\nKendall's τ {tau}"
    documents = sum(int(table.attrs["documents"]) for table in (first, second))
    both = first.assign_attrs(corpus=" and ".join(names), documents=documents)
    units = str(first[variable].attrs["units"])
    return _draw_panels(both, panels, title, units, scale=_choose_scale(score, panels))


def _find(table: xr.Dataset, variable: str) -> Score:
    score = find_score(table, variable) if variable else main_score(table)
    if score is None or score.variable not in table:
        known = ", ".join(score.variable for score in read_scores(table)) or "none"
        raise TableError(f"the head table has no score {variable}; it has {known}.")
    return score


def _draw_shares(table: xr.Dataset, score: Score, dim: str) -> Figure:
    """Draw each head's attention to each class of tokens, divided by the share of this class among all tokens."""
    places = [place for place in score.places(table) if bool(table[score.control].sel(place) > 0)]
    if not places:
        raise TableError(f"the corpus has nothing that {score.variable} could be of; measure another corpus.")
    times = table[score.variable] / table[score.control]
    most = max(2.0, float(times.max()))
    panels = []
    for place in places:
        title = f"{place[dim]} ({float(table[score.control].sel(place)):.0%})"
        if count := score.count(table, place):
            title += f" · {count:,} {score.items}"
        panels.append(Panel(title, times.sel(place).clip(min=1 / most)))
    what = f"{score.title}, in multiples of the {score.baselines[score.control]} (in brackets)"
    scale = LogNorm(1 / most, most)
    unit = f"times the {score.baselines[score.control]}"
    return _draw_panels(table, panels, what, unit, scale=scale, colours=style.DIVERGING)


def _list_reported(table: xr.Dataset, score: Score) -> Sequence[Reported | None]:
    """Return the reported head of each row of a score; None for a row without a reported head."""
    report = read_report(table, score)
    return [row if row.layer else None for row in report.rows] if report else [None] * len(score.places(table))


def _choose_baseline(reported: Reported | None, offset: Offset | None) -> Baseline | None:
    """Return the strongest rival of the reported head on held-out texts or, without one, the best fixed offset."""
    if reported and (rival := reported.strongest_rival):
        return Baseline(rival.score.value, "strongest\nrival")
    return Baseline(offset.value, f"offset\n{format_offset(offset.offset)}") if offset else None


def _choose_scale(score: Score | None, panels: Sequence[Panel], baseline: Baseline | None = None) -> Normalize:
    """Return the scale: 0 to 1 for shares of a score; else wide enough for 0, all values, and the baseline."""
    least = min(0.0, *(float(panel.values.min()) for panel in panels))
    marks = [*(float(panel.values.max()) for panel in panels), baseline.value if baseline else math.nan]
    most = max((mark for mark in marks if mark > 0), default=1.0)
    is_share = score is not None and score.is_ratio and least == 0 and most <= 1
    return Normalize(least, 1.0 if is_share else most)


def _describe_row(
    table: xr.Dataset, score: Score, place: Mapping[str, str], reported: Reported | None
) -> tuple[str, Offset | None]:
    """Return the title of a row (name, count and baselines, in lines), and its best fixed offset, if it has one."""
    name = reported.caption if reported else " ".join(place.values()).replace("_", " ") or score.title
    if count := score.count(table, place):
        name += f" · {count:,} {table[f'{score.stem}_count'].attrs['units']}"
    lines, offset = [name], best_offset(table, score, place)
    baselines = [f"best fixed offset {format_offset(offset.offset)}: {offset.value:.2f}"] if offset else []
    for variable, phrase in score.baselines.items():
        if variable in table and set(table[variable].dims) == set(place):
            value = float(table[variable].sel(place))
            baselines += [] if math.isnan(value) else [f"{phrase}: {value:.2f}"]
    lines += [" · ".join(baselines)] if baselines else []
    return "\n".join(lines), offset


def _describe_held_out(row: Reported) -> str:
    """Return a line with the reported head of a row, its held-out score, its strongest rival, and the verdict."""
    line = f"held out: {row.where}"
    if row.attends:
        line += f" from {row.attends}"
    line += f": {format_interval(*row.score, digits=2)}"
    if rival := row.strongest_rival:
        line += f" · {rival.label} {rival.score.value:.2f}"
    return f"{line} · {row.verdict}" if row.verdict else line


def _title_panel(panel: Panel, attention_type: str) -> str:
    """Return the title of a panel for one attention type, with the held-out score of a reported head of this type."""
    title = " · ".join(filter(None, (attention_type, panel.title)))
    reported = panel.reported
    if reported is None or reported.attention_type != attention_type:
        return title
    return "\n".join(filter(None, (title, _describe_held_out(reported))))


@style.styled
def _draw_panels(
    table: xr.Dataset,
    panels: Sequence[Panel],
    title: str,
    label: str,
    *,
    scale: Normalize,
    baseline: Baseline | None = None,
    colours: str = style.COLOURS,
) -> Figure:
    """Draw each panel for each attention type, with one colour bar that marks the baseline."""
    of_model = style.list_attention_types(table)
    columns = len(of_model) if of_model[0] else min(len(panels), ABREAST)
    wide = PANELS / max(columns, 2)
    height = style.height_of_cells(table, 0.94 * wide)
    places = [(attention_type, panel) for panel in panels for attention_type in of_model]
    titles = [style.wrap(_title_panel(panel, name), int(15.5 * wide)) for name, panel in places]
    rows = math.ceil(len(places) / columns)
    above = 0.14 * max(title.count("\n") + 2 for title in titles)
    figure = style.NotebookFigure(figsize=(1.2 + wide * columns, 0.3 + (height + above + 0.25) * rows))
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, above_it, (attention_type, panel) in zip(grid.flat, titles, places, strict=False):
        _draw_heatmap(axes, panel, attention_type, above_it, scale, colours)
    style.hide_rest(grid, len(places))
    bar = style.add_colour_bar(figure, grid, scale, colours, label, aspect=18 * rows)
    if isinstance(scale, LogNorm):
        most = int(math.log2(scale.vmax or 1))
        powers = range(-most, most + 1)
        bar.set_ticks([2.0**n for n in powers], labels=[str(2**n) if n >= 0 else f"1/{2**-n}" for n in powers])
        bar.minorticks_off()
    if baseline is not None:
        bar.ax.axhline(baseline.value, color="white", linewidth=3.2)
        bar.ax.axhline(baseline.value, color="black", linewidth=1.4, gid="baseline")
        place: dict[str, Any] = {"xy": (0, baseline.value), "xytext": (-4, 0), "textcoords": "offset points"}
        bar.ax.annotate(baseline.name, **place, ha="right", va="center", fontsize="small")
    outlines = any(panel.reported for panel in panels)
    return style.finish(figure, table, title, "outlined: the reported head, where it stands out" if outlines else "")


def _draw_heatmap(axes: Axes, panel: Panel, attention_type: str, title: str, scale: Normalize, colours: str) -> None:
    """Draw the heads of one attention type, layer 1 at the top, and name the best head below the title."""
    values = style.select_type(panel.values, attention_type)
    if not values.size:
        axes.set_axis_off()
        axes.set_title(f"{title}\nno value")
        return
    layers, heads = values["layer"].values, values["head"].values
    fine = draw_cells(axes, values, scale, colours)
    best = np.unravel_index(int(np.nanargmax(values.values)), values.shape)
    name = head_name(int(layers[best[0]]), int(heads[best[1]]))
    axes.set_title(f"{title}\nbest on all texts: {name} {float(values.values[best]):.2f}".lstrip(), fontsize="small")
    row = panel.reported
    if row and row.stands_out and row.attention_type == attention_type:
        place = (row.head - 0.5, row.layer - 0.5)
        outline = Rectangle(place, 1, 1, fill=False, edgecolor="white", clip_on=False, gid="outlined")
        outline.set(linewidth=1.6 * fine, path_effects=[patheffects.withStroke(linewidth=4 * fine, foreground="black")])
        axes.add_patch(outline)


def draw_cells(axes: Axes, values: xr.DataArray, scale: Normalize, colours: str) -> float:
    """Draw a cell for each head in `values` (layer by head), layer 1 at the top; cells without a value are hatched.

    Returns:
        A factor of at most 1 for the width of lines, which would cover small cells.
    """
    layers, heads = values["layer"].values, values["head"].values
    fine = min(1.0, 14 / len(heads))  # thicker lines would cover small cells
    edges = [np.append(numbers - 0.5, numbers[-1] + 0.5) for numbers in (heads, layers)]
    shown = np.ma.masked_invalid(values.values)
    axes.pcolormesh(*edges, shown, cmap=colours, norm=scale, edgecolors="white", linewidth=0.6 * fine)
    axes.set(xlabel="head", ylabel="layer", facecolor="0.92")
    if shown.mask.any():
        axes.patch.set(hatch="/////", edgecolor="0.6", linewidth=0)
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    style.set_integer_ticks(axes, "x", heads)
    style.set_integer_ticks(axes, "y", layers)
    return fine
