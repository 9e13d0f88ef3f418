"""Probes of all heads (Clark et al. 2019, section 5): accuracy, by relation and length too, and weights of heads."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.analyse.ends import ENDS
from headscope.analyse.probes import ALL, WITH_ATTENTION, WITHOUT_ATTENTION
from headscope.view.figures import style
from headscope.view.figures.draw_heatmaps import draw_cells
from headscope.view.headings import name_corpus
from headscope.view.probes_report import list_probes

RELATIONS = 15
"""The largest number of relations that are drawn, the most frequent first."""

COLOURS = {"right-branching": "0.6", WITHOUT_ATTENTION: "C1", "attention": "C2", WITH_ATTENTION: "C0"}
"""The colours of the probes that are drawn by relation and length."""

NOTE = "bars: 95 % intervals, clustered by text"


def draw_probes(table: xr.Dataset) -> dict[str, Figure]:
    """Draw the figures of a table of probes by name."""
    figures = {
        "probes": draw_accuracies(table),
        "by-relation": draw_relations(table),
        "by-length": draw_lengths(table),
        "weights": draw_weights(table),
    }
    if "structural_uuas" in table:
        figures["structural"] = draw_structural(table)
    return figures


def list_probe_figures(table: xr.Dataset) -> dict[str, tuple[str, Callable[[], Figure]]]:
    """Return, by title, the file name of each figure of probes for an atlas, and the function that draws it."""
    return {
        "Probes of all heads": ("probes", partial(draw_accuracies, table)),
        "Probes of all heads, by relation": ("probes-by-relation", partial(draw_relations, table)),
        "Probes of all heads, by the length of the link": ("probes-by-length", partial(draw_lengths, table)),
        "The weight of each head in the probe of attention": ("probes-weights", partial(draw_weights, table)),
    }


@style.styled
def draw_accuracies(table: xr.Dataset) -> Figure:
    """Draw the accuracy of each probe on all choices, with a dot for each seed."""
    rows = list_probes(table).query("relation == @ALL")
    names = list(rows["probe"])
    places = np.arange(len(names))[::-1]
    figure, body = style.make_figure(6.2, 0.6 + 0.34 * len(names))
    axes: Axes = body.subplots()
    value, reach = _read_bars(rows, "accuracy")
    colours = [COLOURS.get(name, "0.75") for name in names]
    axes.barh(places, value, 0.62, color=colours)
    axes.errorbar(value, places, xerr=reach, fmt="none", ecolor="0.2", linewidth=1)
    by_seed = 100 * table["probe_accuracy_by_seed"].transpose("probe", "seed").values
    if by_seed.shape[1] > 1:
        axes.plot(by_seed, places, ".", color="black", markersize=3)
    for place, share, end in zip(places, value, reach[1], strict=True):
        axes.text(share + end + 1, place, f"{share:.1f}", va="center", fontsize="small")
    axes.set_yticks(places, names)
    axes.set(xlabel=f"{_name_score(table)} (%)", xlim=(0, 100))
    return _finish(figure, table, "What probes of all heads get right", f"{NOTE}; dots: seeds")


@style.styled
def draw_relations(table: xr.Dataset) -> Figure:
    """Draw the accuracy of the probes on the most frequent relations."""
    relations = [str(name) for name in table["relation"].values if name != ALL][:RELATIONS]
    frame = list_probes(table).query("relation in @relations")
    places = np.arange(len(relations))[::-1]
    figure, body = style.make_figure(6.2, 1.0 + 0.3 * len(relations))
    axes: Axes = body.subplots()
    shown = [name for name in COLOURS if name in table["probe"].values]
    for number, name in enumerate(shown):
        value, reach = _read_bars(frame[frame["probe"] == name], "accuracy")
        shift = 0.16 * ((len(shown) - 1) / 2 - number)
        axes.errorbar(
            value, places + shift, xerr=reach, fmt="o", markersize=4, linewidth=1,
            color=COLOURS[name], label=name,
        )  # fmt: skip
    choices = dict(zip(frame["relation"], frame["choices"], strict=True))
    axes.set_yticks(places, [f"{relation} ({int(count):,})" for relation, count in choices.items()])
    axes.set(xlabel="right (%)", xlim=(-2, 102))
    axes.grid(axis="y", color="0.92")
    body.legend(*axes.get_legend_handles_labels(), ncols=len(shown), **style.ABOVE)
    return _finish(figure, table, "What probes of all heads get right, by relation", NOTE)


@style.styled
def draw_lengths(table: xr.Dataset) -> Figure:
    """Draw the accuracy of the probes on links of each length."""
    lengths = table["length"].values
    places = np.arange(len(lengths))
    figure, body = style.make_figure(6.2, 3.2)
    axes: Axes = body.subplots()
    for name in (name for name in COLOURS if name in table["probe"].values):
        axes.plot(
            places, 100 * table["probe_length_accuracy"].sel(probe=name), "o-", markersize=3, color=COLOURS[name],
            label=name,
        )  # fmt: skip
    counts = table["probe_length_count"].values
    last = len(lengths) - 1
    labels = [f"{'≤' if place == 0 else '≥' if place == last else ''}{length}" for place, length in enumerate(lengths)]
    axes.set_xticks(
        places, [f"{label}\n{100 * n / counts.sum():.0f} %" for label, n in zip(labels, counts, strict=True)]
    )
    axes.set(xlabel="length of the link in words, and its share of all links", ylabel="right (%)", ylim=(-3, 103))
    body.legend(*axes.get_legend_handles_labels(), ncols=len(COLOURS), **style.ABOVE)
    return _finish(figure, table, "What probes of all heads get right, by the length of the link")


@style.styled
def draw_weights(table: xr.Dataset) -> Figure:
    """Draw each head's weight in the probe without words, times the size of its attention, for both directions."""
    types = style.list_attention_types(table)
    strength = table["probe_weight"] * table["probe_attention_size"]
    directions = {
        "dependent_to_head": "a word attends to its head",
        "head_to_dependent": "a head attends to its dependent",
    }
    titles = directions if table.attrs["links"] == "dependency" else dict.fromkeys(directions)
    figure = style.NotebookFigure(figsize=(7.4, 0.7 + (style.height_of_cells(table) + 0.4) * len(types)))
    grid = figure.subplots(len(types), len(directions), squeeze=False)
    scale = style.centre(strength)
    for row, attention_type in zip(grid, types, strict=True):
        for axes, direction in zip(row, directions, strict=True):
            cells = style.select_type(strength.sel(direction=direction), attention_type)
            draw_cells(axes, cells, scale, style.DIVERGING)
            title = titles[direction] or direction.replace("_", " ")
            axes.set_title(f"{attention_type} {title}".strip())
    style.add_colour_bar(figure, grid, scale, style.DIVERGING, "weight times attention (nats)")
    note = "weight times the root mean square of the attention between words"
    return style.finish(figure, table, "The weight of each head in the probe of attention alone", note)


@style.styled
def draw_structural(table: xr.Dataset) -> Figure:
    """Draw the UUAS of the structural probe on the hidden states of each layer."""
    layers = table["hidden_layer"].values
    figure, body = style.make_figure(5, 2.8)
    axes: Axes = body.subplots()
    value, reach = _read_bars(table, "structural_uuas")
    axes.errorbar(layers, value, reach, fmt="o-", markersize=4, linewidth=1)
    axes.set(xlabel="layer (0: embeddings)", ylabel="UUAS (%)")
    style.set_integer_ticks(axes, "x", layers)
    return _finish(figure, table, "Links of trees that the structural probe finds in hidden states", NOTE)


def _finish(figure: Figure, table: xr.Dataset, title: str, note: str = "") -> Figure:
    """Add the title and the caption to a figure, with the test corpus if it differs, and return the figure."""
    tested = f"tested on {name_corpus(table.attrs['test'])}" if table.attrs.get("test") else ""
    return style.finish(figure, table, title, " · ".join(filter(None, (tested, note))))


def _name_score(table: xr.Dataset) -> str:
    return "UAS without punctuation" if table.attrs["links"] == "dependency" else f"{table.attrs['links']} links found"


def _read_bars(table: xr.Dataset | pd.DataFrame, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return shares in percent, and the distances to the ends of their intervals, which are 0 if an end is missing."""
    value, lower, upper = (100 * table[f"{name}{end}"].to_numpy() for end in ENDS)
    return value, np.nan_to_num(np.stack([value - lower, upper - value])).clip(0)
