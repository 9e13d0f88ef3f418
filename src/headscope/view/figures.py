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
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.errors import TableError
from headscope.files import atomic_write

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
            with atomic_write(path) as temporary:
                figure.savefig(temporary, format=suffix, dpi=150, metadata={"Date": None} if suffix == "svg" else None)
            paths.append(path)
    return paths


def _by_layer(table: xr.Dataset, panels: Sequence[Panel]) -> Figure:
    """One row for each panel that the table has numbers for, one column for each attention type."""
    rows = [panel for panel in panels if any(_present(table, series.variable) for series in panel.series)]
    if not rows:
        wanted = ", ".join(series.variable for panel in panels for series in panel.series)
        raise TableError(f"the head table has none of {wanted}; measure the surface statistics of the model first.")
    attention_types = attention_types_of(table)
    with mpl.rc_context(STYLE):
        width = (5.0 if len(attention_types) == 1 else 3.2) + 0.12 * max(0, table.sizes["layer"] - 16)
        figure = Figure(figsize=(2.4 + width * len(attention_types), 0.5 + 2.9 * len(rows)))
        grid = figure.subplots(len(rows), len(attention_types), squeeze=False, sharey="row")
        for axes_row, panel in zip(grid, rows, strict=True):
            labelled: dict[str, Any] = {}
            for axes, attention_type in zip(axes_row, attention_types, strict=True):
                labelled |= _points(axes, table, panel, attention_type)
                axes.set_title("\n".join(filter(None, (panel.title if axes is axes_row[0] else "", attention_type))))
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
        caption(figure, table, "small points are heads, lines their mean in a layer")
    return figure


def _points(axes: Axes, table: xr.Dataset, panel: Panel, attention_type: str) -> dict[str, Any]:
    """Draw a panel's series for one attention type; the handles for its legend by label."""
    drawn = [series for series in panel.series if _present(table, series.variable, attention_type)]
    if CLS in drawn and FIRST in drawn:
        drawn.remove(FIRST)  # where there is a [CLS], it is the first token
    handles: dict[str, Any] = {}
    for place, series in enumerate(drawn):
        values = part(table[series.variable], attention_type)
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
    if panel.baseline and _present(table, "entropy_uniform", attention_type):
        uniform = part(table["entropy_uniform"], attention_type)
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
        layers = part(table[drawn[0].variable], attention_type)["layer"].values
        axes.set_xlim(layers[0] - 0.5, layers[-1] + 0.5)
        integer_ticks(axes, "x", layers)
    return handles


def attention_types_of(table: xr.Dataset) -> list[str]:
    """The attention types of the model; one without a name where the table has no such dim."""
    return [str(name) for name in table["attention_type"].values] if "attention_type" in table.dims else [""]


def part(values: xr.DataArray, attention_type: str) -> xr.DataArray:
    """The values of one attention type, layer before head, up to the last layer and head that it has."""
    if "attention_type" in values.dims:
        values = values.sel(attention_type=attention_type)
    values = values.transpose("layer", ...)
    for dim in values.dims:
        present = values.notnull().any([other for other in values.dims if other != dim])
        values = values.isel({dim: slice(0, int(np.flatnonzero(present).max(initial=-1)) + 1)})
    return values


def _present(table: xr.Dataset, variable: str, attention_type: str | None = None) -> bool:
    """Whether the table has a number for this variable (of this attention type)."""
    if variable not in table:
        return False
    values = table[variable]
    if attention_type and "attention_type" in values.dims:
        values = values.sel(attention_type=attention_type)
    return bool(values.notnull().any())


def integer_ticks(axes: Axes, which: str, positions: np.ndarray) -> None:
    """At most about twelve whole numbers."""
    step = math.ceil(len(positions) / 12) if len(positions) else 1
    (axes.set_xticks if which == "x" else axes.set_yticks)(positions[::step])


def caption(figure: Figure, table: xr.Dataset, note: str = "") -> None:
    """Model, corpus and size, small and grey at the bottom: a figure says where it came from."""
    # Not the folders, which mean nothing elsewhere: the table has them.
    parts = [str(table.attrs.get("model", "")), Path(str(table.attrs.get("corpus", ""))).name]
    if "documents" in table.attrs:
        parts.append(f"{int(table.attrs['documents']):,} documents")
    text = textwrap.fill(" · ".join(filter(None, [*parts, note])), int(17 * figure.get_figwidth()))
    figure.supxlabel(text, x=0.01, ha="left", fontsize=7, color="0.45")
