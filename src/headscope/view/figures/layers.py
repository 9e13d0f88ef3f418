"""Targets, width and distance of attention by layer, after Clark et al. 2019."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.errors import TableError
from headscope.view.figures.style import (
    OUTSIDE,
    STYLE,
    add_caption,
    list_attention_types,
    select_type,
    set_integer_ticks,
)


class Series(NamedTuple):
    """One kind of point: a variable of the table, and its look (colours of Okabe and Ito)."""

    variable: str
    label: str
    colour: str
    marker: str


class Panel(NamedTuple):
    """One row of a figure: variables against layer, over a dashed baseline where there is one."""

    title: str
    ylabel: str
    series: Sequence[Series]
    baseline: str = ""


CLS = Series("mass_cls", "[CLS]", "#0072B2", "o")
FIRST = Series("mass_first", "first token", "#CC79A7", "v")
SPECIAL = (
    CLS,
    FIRST,
    Series("mass_sep", "[SEP]", "#D55E00", "s"),
    Series("mass_punctuation", "“.” and “,”", "#009E73", "^"),
)
SEPARATORS = (
    Series("mass_sep_from_sep", "from [SEP]", "#E69F00", "D"),
    Series("mass_sep_from_other", "from other tokens", "#56B4E9", "o"),
)
NEIGHBOURS = (
    Series("mass_self", "the token itself", "#0072B2", "o"),
    Series("mass_previous", "the token before", "#D55E00", "s"),
    Series("mass_next", "the token after", "#009E73", "^"),
)
ENTROPY = (Series("entropy", "heads", "#0072B2", "o"),)
FROM_CLS = (Series("entropy_from_cls", "heads", "#D55E00", "s"),)
DISTANCE = (Series("mean_distance", "heads", "#0072B2", "o"),)
UNIFORM, UNIFORM_TOKEN = "uniform attention", "one token under\nuniform attention"
SHARE, NATS = "mean share of attention", "mean entropy (nats)"


def draw_special_tokens(table: xr.Dataset) -> Figure:
    """Attention of each head to special tokens, by layer (Clark et al. 2019, figure 2).

    Args:
        table: a head table with any of ``mass_cls``, ``mass_sep``, ``mass_punctuation``; where the model has no [CLS],
            ``mass_first`` stands in. The second panel needs ``mass_sep_from_sep`` and ``mass_sep_from_other``.

    Raises:
        TableError: the table has none of these.
    """
    from_where = Panel("Attention to [SEP], by the token that attends", SHARE, SEPARATORS)
    return _draw_by_layer(table, Panel("Attention to special tokens", SHARE, SPECIAL), from_where)


def draw_offsets(table: xr.Dataset) -> Figure:
    """Attention of each head to the token itself and to its neighbours, by layer (Clark et al. 2019, section 3.1).

    The dashed line is e to the minus ``entropy_uniform``: what one token gets when attention is uniform.

    Raises:
        TableError: the table has none of ``mass_self``, ``mass_previous`` and ``mass_next``.
    """
    title = "Attention to the token itself and its neighbours"
    return _draw_by_layer(table, Panel(title, SHARE, NEIGHBOURS, UNIFORM_TOKEN))


def draw_entropies(table: xr.Dataset) -> Figure:
    """Entropy of the attention of each head, by layer, with the uniform distribution (Clark et al. 2019, figure 4).

    Raises:
        TableError: the table has neither ``entropy`` nor ``entropy_from_cls``.
    """
    from_cls = Panel("Entropy of attention, from [CLS] only", NATS, FROM_CLS, UNIFORM)
    return _draw_by_layer(table, Panel("Entropy of attention, all tokens", NATS, ENTROPY, UNIFORM), from_cls)


def draw_distances(table: xr.Dataset) -> Figure:
    """Distance of the tokens that each head attends to, by layer (Vig and Belinkov 2019).

    Raises:
        TableError: the table has no ``mean_distance``.
    """
    title = "Distance to the tokens attended to, before or after"
    return _draw_by_layer(table, Panel(title, "mean distance (tokens)", DISTANCE))


def _draw_by_layer(table: xr.Dataset, *panels: Panel) -> Figure:
    """One row for each panel that the table has numbers for, one column for each attention type."""
    rows = [panel for panel in panels if any(_present(table, series.variable) for series in panel.series)]
    if not rows:
        wanted = ", ".join(series.variable for panel in panels for series in panel.series)
        raise TableError(f"the head table has none of {wanted}; measure the surface statistics of the model first.")
    attention_types = list_attention_types(table)
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
            axes_row[-1].legend(labelled.values(), labelled.keys(), **OUTSIDE)
        for axes in grid[-1]:
            axes.set_xlabel("layer")
        add_caption(figure, table, "small points are heads, lines their mean in a layer")
    return figure


def _points(axes: Axes, table: xr.Dataset, panel: Panel, attention_type: str) -> dict[str, Any]:
    """Draw a panel's series for one attention type; the handles for its legend by label."""
    shown = [series for series in panel.series if _present(table, series.variable, attention_type)]
    if CLS in shown and FIRST in shown:
        shown.remove(FIRST)  # where there is a [CLS], it is the first token
    handles: dict[str, Any] = {}
    for place, series in enumerate(shown):
        values = select_type(table[series.variable], attention_type)
        # Side by side, or the last kind of point would hide the others.
        layers = values["layer"].values + 0.2 * (place - (len(shown) - 1) / 2)
        x, y = np.broadcast_arrays(layers[:, None], values.values)
        look: dict[str, Any] = {"color": series.colour, "marker": series.marker}
        axes.scatter(x, y, s=14, alpha=0.55, linewidth=0, gid=series.variable, clip_on=False, **look)
        look |= {"markersize": 6, "markeredgecolor": "white", "markeredgewidth": 0.6}
        means = values.mean("head")
        (handles[series.label],) = axes.plot(layers, means, linewidth=1.6, gid=f"{series.variable}-mean", **look)
    if panel.baseline and _present(table, "entropy_uniform", attention_type):
        uniform = select_type(table["entropy_uniform"], attention_type)
        uniform = uniform if panel.baseline == UNIFORM else cast(xr.DataArray, np.exp(-uniform))
        line = uniform.mean("head") if "head" in uniform.dims else uniform
        look = {"color": "0.25", "linestyle": (0, (4, 3)), "linewidth": 1.2, "gid": "baseline"}
        (handles[panel.baseline],) = axes.plot(line["layer"], line, **look)
    if shown:
        layers = select_type(table[shown[0].variable], attention_type)["layer"].values
        axes.set_xlim(layers[0] - 0.5, layers[-1] + 0.5)
        set_integer_ticks(axes, "x", layers)
    return handles


def _present(table: xr.Dataset, variable: str, attention_type: str | None = None) -> bool:
    """True where the table has a number for this variable (of this attention type)."""
    if variable not in table:
        return False
    values = table[variable]
    if attention_type and "attention_type" in values.dims:
        values = values.sel(attention_type=attention_type)
    return bool(values.notnull().any())
