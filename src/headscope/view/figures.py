"""Figures of a head table, after Clark et al. 2019: what heads attend to, how widely, which relation.

Each function takes a head table and returns a ``matplotlib.figure.Figure`` that belongs to nobody:
no global state of pyplot, nothing is shown. `save` writes it as PNG and SVG.
"""

import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import matplotlib as mpl
import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from headscope.disk import replacing
from headscope.errors import TableError
from headscope.heads import head_name
from headscope.view.page import best_offset, signed

STYLE: dict[Any, Any] = {
    **sns.axes_style("ticks"),
    **sns.plotting_context("paper"),
    "font.family": ["DejaVu Sans"],
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "headscope",  # else the ids in an SVG are random and no two runs give the same file
    "text.parse_math": False,  # names of models and relations may hold dollar signs
}
"""Settings that hold while a figure is made or written."""

COLOURS = "viridis"


@dataclass(frozen=True)
class Series:
    """One kind of point: a variable of the table, and how it is drawn (colours of Okabe and Ito)."""

    variable: str
    label: str
    colour: str
    marker: str


@dataclass(frozen=True)
class Panel:
    """One row of a figure: variables against layer, over a dashed baseline where there is one."""

    title: str
    ylabel: str
    series: Sequence[Series]
    baseline: str = ""


CLS = Series("mass_cls", "[CLS]", "#0072B2", "o")
FIRST = Series("mass_first", "first token", "#CC79A7", "v")
UNIFORM = "uniform attention"
UNIFORM_TOKEN = "one token under\nuniform attention"

SEP = Series("mass_sep", "[SEP]", "#D55E00", "s")
PUNCTUATION = Series("mass_punctuation", "“.” and “,”", "#009E73", "^")
FROM_SEP = Series("mass_sep_from_sep", "from [SEP]", "#E69F00", "D")
FROM_OTHER = Series("mass_sep_from_other", "from other tokens", "#56B4E9", "o")
SELF = Series("mass_self", "the token itself", "#0072B2", "o")
PREVIOUS = Series("mass_previous", "the token before", "#D55E00", "s")
NEXT = Series("mass_next", "the token after", "#009E73", "^")
ENTROPY = Series("entropy", "heads", "#0072B2", "o")
DISTANCE = Series("mean_distance", "heads", "#0072B2", "o")
ENTROPY_FROM_CLS = Series("entropy_from_cls", "heads", "#D55E00", "s")
UNIFORM = "uniform attention"
UNIFORM_TOKEN = "one token under\nuniform attention"

SHARE, NATS, TOKENS = "mean share of attention", "mean entropy (nats)", "mean distance (tokens)"
SPECIAL_PANELS = (
    Panel("Attention to special tokens", SHARE, (CLS, FIRST, SEP, PUNCTUATION)),
    Panel("Attention to [SEP], by the token that attends", SHARE, (FROM_SEP, FROM_OTHER)),
)
OFFSET_PANELS = (
    Panel("Attention to the token itself and its neighbours", SHARE, (SELF, PREVIOUS, NEXT), UNIFORM_TOKEN),
)
ENTROPY_PANELS = (
    Panel("Entropy of attention, all tokens", NATS, (ENTROPY,), UNIFORM),
    Panel("Entropy of attention, from [CLS] only", NATS, (ENTROPY_FROM_CLS,), UNIFORM),
)

DISTANCE_PANELS = (Panel("Distance to the tokens attended to, before or after", TOKENS, (DISTANCE,)),)


def special_tokens(table: xr.Dataset) -> Figure:
    """How much each head attends to special tokens, by layer (Clark et al. 2019, figure 2).

    Args:
        table: a head table with any of ``mass_cls``, ``mass_sep``, ``mass_punctuation``; where the
            model has no [CLS], ``mass_first`` stands in. The second panel needs
            ``mass_sep_from_sep`` and ``mass_sep_from_other``.

    Raises:
        TableError: the table has none of these.
    """
    return _by_layer(table, SPECIAL_PANELS)


def offsets(table: xr.Dataset) -> Figure:
    """How much each head attends to the token itself and to its neighbours, by layer (section 3.1).

    The dashed line is e to the minus ``entropy_uniform``: what one token gets when attention is uniform.

    Raises:
        TableError: the table has none of ``mass_self``, ``mass_previous`` and ``mass_next``.
    """
    return _by_layer(table, OFFSET_PANELS)


def entropies(table: xr.Dataset) -> Figure:
    """How widely each head attends, by layer, with the uniform distribution (Clark et al. 2019, figure 4).

    Raises:
        TableError: the table has neither ``entropy`` nor ``entropy_from_cls``.
    """
    return _by_layer(table, ENTROPY_PANELS)


def distances(table: xr.Dataset) -> Figure:
    """How far away the tokens are that each head attends to, by layer (Vig and Belinkov 2019).

    Raises:
        TableError: the table has no ``mean_distance``.
    """
    return _by_layer(table, DISTANCE_PANELS)


def relation_heads(table: xr.Dataset, relation: str) -> Figure:
    """The accuracy of every head on one relation, a panel for each direction, the best head outlined.

    The best head of a panel is chosen on the data it is scored on, so its accuracy is an
    overestimate; the held-out accuracy stands in the title where the table has it.

    Args:
        table: a head table with ``relation_accuracy``.
        relation: one of ``table.relation``.

    Raises:
        TableError: the table has no relations, or not this one.
    """
    accuracy = _accuracy(table, relation)
    stacks = _stacks(table)
    directions = [str(name) for name in accuracy["direction"].values]
    baseline = best_offset(table, relation)
    marks = [float(accuracy.max()), baseline.accuracy if baseline else math.nan]
    scale = Normalize(0, max((mark for mark in marks if mark > 0), default=1.0))
    sizes = accuracy.sizes
    height = min(5.0, max(1.8, 2.9 * sizes["layer"] / sizes["head"]))
    rows, columns = (len(directions), len(stacks)) if stacks[0] else (1, len(directions))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(1.2 + 3.1 * columns, 1.1 + height * rows))
        grid = figure.subplots(rows, columns, squeeze=False)
        places = [(stack, direction) for direction in directions for stack in stacks]
        for axes, (stack, direction) in zip(grid.flat, places, strict=True):
            _heatmap(axes, _part(accuracy.sel(direction=direction), stack), scale, direction, stack)
        bar = figure.colorbar(ScalarMappable(scale, COLOURS), ax=grid, aspect=18 * rows, pad=0.02)
        bar.set_label("accuracy (share of links)")
        bar.outline.set_visible(False)
        if baseline is not None:
            bar.ax.axhline(baseline.accuracy, color="white", linewidth=3.2)
            line = bar.ax.axhline(baseline.accuracy, color="black", linewidth=1.4)
            line.set_gid("baseline")
            bar.ax.annotate(
                f"offset\n{signed(baseline.offset)}",
                (0, baseline.accuracy),
                (-4, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize="small",
            )
        figure.suptitle(_relation_title(table, relation), x=0.01, ha="left", fontsize="medium")
        _caption(figure, table)
    return figure


def save(figure: Figure, folder: str | Path, name: str) -> list[Path]:
    """Write a figure as ``name.png`` (150 dpi) and ``name.svg`` (text stays text), each whole or not at all.

    The same figure gives the same bytes. Letters that a file name may not hold on some system
    (as in the relation ``nsubj:*``) become ``_``; the returned paths say what the files are called.

    Raises:
        HeadscopeError: the disk refuses a file.
    """
    stem = re.sub(r"[^\w.-]", "_", name).lstrip(".") or "figure"
    paths = []
    with mpl.rc_context(STYLE):
        for suffix in ("png", "svg"):
            path = Path(folder) / f"{stem}.{suffix}"
            with replacing(path) as temporary:
                figure.savefig(temporary, format=suffix, dpi=150, metadata={"Date": None} if suffix == "svg" else None)
            paths.append(path)
    return paths


def _by_layer(table: xr.Dataset, panels: Sequence[Panel]) -> Figure:
    """One row for each panel that the table has numbers for, one column for each stack."""
    rows = [panel for panel in panels if any(_present(table, series.variable) for series in panel.series)]
    if not rows:
        wanted = ", ".join(series.variable for panel in panels for series in panel.series)
        raise TableError(f"the head table has none of {wanted}; measure the surface statistics of the model first.")
    stacks = _stacks(table)
    with mpl.rc_context(STYLE):
        width = (5.0 if len(stacks) == 1 else 3.2) + 0.12 * max(0, table.sizes["layer"] - 16)
        figure = Figure(figsize=(2.4 + width * len(stacks), 0.5 + 2.9 * len(rows)))
        grid = figure.subplots(len(rows), len(stacks), squeeze=False, sharey="row")
        for axes_row, panel in zip(grid, rows, strict=True):
            labelled: dict[str, Any] = {}
            for axes, stack in zip(axes_row, stacks, strict=True):
                labelled |= _points(axes, table, panel, stack)
                axes.set_title("\n".join(filter(None, (panel.title if axes is axes_row[0] else "", stack))))
            axes_row[0].set_ylabel(panel.ylabel)
            axes_row[0].set_ylim(bottom=0)
            axes_row[-1].legend(
                labelled.values(),
                labelled.keys(),
                loc="upper left",
                bbox_to_anchor=(1.02, 1),
                frameon=False,
                borderaxespad=0,
            )
        for axes in grid[-1]:
            axes.set_xlabel("layer")
        _caption(figure, table, "small points are heads, lines their mean in a layer")
    return figure


def _points(axes: Axes, table: xr.Dataset, panel: Panel, stack: str) -> dict[str, Any]:
    """Draw a panel's series for one stack; the handles for its legend by label."""
    drawn = [series for series in panel.series if _present(table, series.variable, stack)]
    if CLS in drawn and FIRST in drawn:
        drawn.remove(FIRST)  # where there is a [CLS], it is the first token
    handles: dict[str, Any] = {}
    for place, series in enumerate(drawn):
        values = _part(table[series.variable], stack)
        # Side by side, or the last kind of point would hide the others.
        layers = values["layer"].values + 0.2 * (place - (len(drawn) - 1) / 2)
        x, y = np.broadcast_arrays(layers[:, None], values.values)
        axes.scatter(
            x,
            y,
            s=14,
            color=series.colour,
            marker=series.marker,
            alpha=0.55,
            linewidth=0,
            gid=series.variable,
            clip_on=False,
        )
        (handles[series.label],) = axes.plot(
            layers,
            values.mean("head"),
            color=series.colour,
            marker=series.marker,
            markersize=6,
            markeredgecolor="white",
            markeredgewidth=0.6,
            linewidth=1.6,
            gid=f"{series.variable}-mean",
        )
    if panel.baseline and _present(table, "entropy_uniform", stack):
        uniform = _part(table["entropy_uniform"], stack)
        uniform = uniform if panel.baseline == UNIFORM else cast(xr.DataArray, np.exp(-uniform))
        line = uniform.mean("head") if "head" in uniform.dims else uniform
        (handles[panel.baseline],) = axes.plot(
            line["layer"],
            line,
            color="0.25",
            linestyle=(0, (4, 3)),
            linewidth=1.2,
            gid="baseline",
        )
    if drawn:
        layers = _part(table[drawn[0].variable], stack)["layer"].values
        axes.set_xlim(layers[0] - 0.5, layers[-1] + 0.5)
        _integer_ticks(axes, "x", layers)
    return handles


def _heatmap(axes: Axes, values: xr.DataArray, scale: Normalize, direction: str, stack: str) -> None:
    """Heads of one stack and direction, layer 1 at the top, the best one outlined and named in the title."""
    title = " · ".join(filter(None, (stack, direction.replace("_", " "))))
    if not values.size:
        axes.set_axis_off()
        axes.set_title(f"{title}\nno value")
        return
    layers, heads = values["layer"].values, values["head"].values
    fine = min(1.0, 14 / len(heads))  # thinner lines for small cells, or they would cover them
    edges = [np.append(numbers - 0.5, numbers[-1] + 0.5) for numbers in (heads, layers)]
    shown = np.ma.masked_invalid(values.values)
    axes.pcolormesh(*edges, shown, cmap=COLOURS, norm=scale, edgecolors="white", linewidth=0.6 * fine)
    axes.set(xlabel="head", ylabel="layer", facecolor="0.92")
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    _integer_ticks(axes, "x", heads)
    _integer_ticks(axes, "y", layers)
    best = np.unravel_index(int(np.nanargmax(values.values)), values.shape)
    layer, head = int(layers[best[0]]), int(heads[best[1]])
    outline = Rectangle((head - 0.5, layer - 0.5), 1, 1, fill=False, edgecolor="white", clip_on=False, gid="best")
    outline.set(linewidth=1.6 * fine, path_effects=[patheffects.withStroke(linewidth=4 * fine, foreground="black")])
    axes.add_patch(outline)
    axes.set_title(f"{title}\nbest: {head_name(layer, head)} {float(values.values[best]):.2f}")


def _relation_title(table: xr.Dataset, relation: str) -> str:
    """Relation, count and best fixed offset; below it the reported head's held-out accuracy."""
    row = table.sel(relation=relation)
    first = relation
    if "relation_count" in row:
        first += f" · {int(row['relation_count']):,} links"
    baseline = best_offset(table, relation)
    if baseline is not None:
        first += f" · best fixed offset {signed(baseline.offset)}: {baseline.accuracy:.2f}"
    if not {"reported_layer", "reported_head", "heldout_accuracy"} <= set(row) or int(row["reported_layer"]) == 0:
        return first
    name = head_name(int(row["reported_layer"]), int(row["reported_head"]))
    stack, direction = (str(row[key].item()) if key in row else "" for key in ("reported_stack", "reported_direction"))
    where = " ".join(filter(None, (stack, name, direction.replace("_", " "))))
    second = f"held out: {where}: {float(row['heldout_accuracy']):.2f}"
    if {"heldout_lower", "heldout_upper"} <= set(row):
        second += f" [{float(row['heldout_lower']):.2f}, {float(row['heldout_upper']):.2f}]"
    if "twin_accuracy" in row and bool(row["twin_accuracy"].notnull()):
        second += f" · random twin {float(row['twin_accuracy']):.2f}"
    return f"{first}\n{second}"


def _accuracy(table: xr.Dataset, relation: str) -> xr.DataArray:
    """Accuracy of every head on one relation; an error that lists the relations where there is no such one."""
    if "relation_accuracy" not in table:
        raise TableError("the head table has no relation_accuracy; measure a corpus with dependencies first.")
    known = [str(name) for name in table["relation"].values]
    if relation not in known:
        raise TableError(f"the head table has no relation {relation!r}; it has {', '.join(known)}.")
    return table["relation_accuracy"].sel(relation=relation)


def _stacks(table: xr.Dataset) -> list[str]:
    """The stacks of the model; one without a name where the table has no such dim."""
    return [str(name) for name in table["stack"].values] if "stack" in table.dims else [""]


def _part(values: xr.DataArray, stack: str) -> xr.DataArray:
    """The values of one stack, layer before head, up to the last layer and head that it has."""
    if "stack" in values.dims:
        values = values.sel(stack=stack)
    values = values.transpose("layer", ...)
    for dim in values.dims:
        present = values.notnull().any([other for other in values.dims if other != dim])
        values = values.isel({dim: slice(0, int(np.flatnonzero(present).max(initial=-1)) + 1)})
    return values


def _present(table: xr.Dataset, variable: str, stack: str | None = None) -> bool:
    """Whether the table has a number for this variable (of this stack)."""
    if variable not in table:
        return False
    values = table[variable]
    if stack and "stack" in values.dims:
        values = values.sel(stack=stack)
    return bool(values.notnull().any())


def _integer_ticks(axes: Axes, which: str, positions: np.ndarray) -> None:
    """At most about twelve whole numbers."""
    step = math.ceil(len(positions) / 12) if len(positions) else 1
    (axes.set_xticks if which == "x" else axes.set_yticks)(positions[::step])


def _caption(figure: Figure, table: xr.Dataset, note: str = "") -> None:
    """Model, corpus and size, small and grey at the bottom: a figure says where it came from."""
    parts = [str(table.attrs.get(key, "")) for key in ("model", "corpus")]
    if "documents" in table.attrs:
        parts.append(f"{int(table.attrs['documents']):,} documents")
    text = textwrap.fill(" · ".join(filter(None, [*parts, note])), int(17 * figure.get_figwidth()))
    figure.supxlabel(text, x=0.01, ha="left", fontsize=7, color="0.45")
