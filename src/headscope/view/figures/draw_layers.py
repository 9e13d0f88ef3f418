"""Targets, entropy and distance of attention by layer, after Clark et al. 2019.

Heads that are outliers in their layer are named (`headscope.view.figures.draw_outliers`).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headscope.errors import TableError
from headscope.heads import get_share
from headscope.view.figures import style
from headscope.view.figures.draw_outliers import Points, name_outliers


class Series(NamedTuple):
    """One kind of points in a panel: a variable of the table, its label, and its look (colours of Okabe and Ito)."""

    variable: str
    label: str
    colour: str
    marker: str


class Panel(NamedTuple):
    """One row of a figure: values of heads by layer, with a dashed line for uniform attention if `baseline` is set.

    If a figure has only one row, the row needs no title.
    """

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
GRADIENTS = (
    CLS._replace(variable="gradient_cls"),
    FIRST._replace(variable="gradient_first"),
    Series("gradient_sep", "[SEP]", "#D55E00", "s"),
    Series("gradient_punctuation", "“.” and “,”", "#009E73", "^"),
    Series("gradient_other", "other tokens", "#E69F00", "D"),
)
ENTROPY = (Series("entropy", "heads", "#0072B2", "o"),)
FROM_CLS = (Series("entropy_from_cls", "heads", "#D55E00", "s"),)
DISTANCE = (Series("mean_distance", "heads", "#0072B2", "o"),)
UNIFORM, UNIFORM_TOKEN = "entropy", "weight"
NATS = "mean entropy (nats)"


def draw_special_tokens(table: xr.Dataset) -> Figure:
    """Draw the attention of each head to special tokens, by layer (Clark et al. 2019, figure 2).

    Args:
        table: A head table with any of ``mass_cls``, ``mass_sep``, ``mass_punctuation``; for a model without [CLS],
            ``mass_first`` takes its place. The second panel needs ``mass_sep_from_sep`` and ``mass_sep_from_other``.

    Raises:
        TableError: the table has none of these variables.
    """
    share = f"mean {get_share(table)}"
    from_where = Panel("to [SEP], by the token that attends", share, SEPARATORS)
    return _draw_by_layer(table, "Attention to special tokens", Panel("from all tokens", share, SPECIAL), from_where)


def draw_offsets(table: xr.Dataset) -> Figure:
    """Draw each head's attention to the token itself and its neighbours, by layer (Clark et al. 2019, section 3.1).

    The dashed line is e to the minus ``entropy_uniform``: the share of one token when attention is uniform.

    Raises:
        TableError: the table has none of ``mass_self``, ``mass_previous`` and ``mass_next``.
    """
    title = "Attention to the token itself and its neighbours"
    return _draw_by_layer(table, title, Panel("", f"mean {get_share(table)}", NEIGHBOURS, UNIFORM_TOKEN))


def draw_entropies(table: xr.Dataset) -> Figure:
    """Draw the entropy of each head's attention and of uniform attention, by layer (Clark et al. 2019, figure 4).

    Raises:
        TableError: the table has neither ``entropy`` nor ``entropy_from_cls``.
    """
    from_cls = Panel("from [CLS] only", NATS, FROM_CLS, UNIFORM)
    return _draw_by_layer(table, "Entropy of attention", Panel("from all tokens", NATS, ENTROPY, UNIFORM), from_cls)


def draw_distances(table: xr.Dataset) -> Figure:
    """Draw the mean distance of the tokens that each head attends to, by layer (Vig and Belinkov 2019).

    Raises:
        TableError: the table has no ``mean_distance``.
    """
    title = "Distance to the tokens attended to, before or after"
    return _draw_by_layer(table, title, Panel("", "mean distance (tokens)", DISTANCE))


def draw_gradients(table: xr.Dataset) -> Figure:
    """Draw the gradient of the loss by the attention weights of each head, by layer (Clark et al. 2019, figure 3).

    Args:
        table: A head table with any of ``gradient_cls``, ``gradient_sep``, ``gradient_punctuation`` and
            ``gradient_other``; for a model without [CLS], ``gradient_first`` takes its place.

    Raises:
        TableError: the table has none of these variables.
    """
    title, panel = "Gradient of the loss by attention", Panel("", "mean |gradient| (nats)", GRADIENTS)
    return _draw_by_layer(table, title, panel, measured="the gradients of the loss")


@style.styled
def _draw_by_layer(
    table: xr.Dataset, title: str, *panels: Panel, measured: str = "the surface statistics of the model"
) -> Figure:
    """Draw a row for each panel for which the table has numbers, with a column for each attention type."""
    rows = [panel for panel in panels if any(_present(table, series.variable) for series in panel.series)]
    if not rows:
        wanted = ", ".join(series.variable for panel in panels for series in panel.series)
        raise TableError(f"the head table has none of {wanted}; measure {measured} first.")
    attention_types = style.list_attention_types(table)
    width = max(6.5, 2.4 * len(attention_types)) + 0.12 * max(0, table.sizes["layer"] - 16)
    figure = style.NotebookFigure(figsize=(width, 0.3 + 2.7 * len(rows)))
    points: dict[Axes, list[Points]] = {}
    for part, panel in zip(figure.subfigures(len(rows), 1, squeeze=False)[:, 0], rows, strict=True):
        if panel.title:
            part.suptitle(panel.title, x=0.01, ha="left", fontsize="medium")
        body = style.add_body(part)
        columns = body.subplots(1, len(attention_types), squeeze=False, sharey=True)[0]
        labelled: dict[str, Any] = {}
        for axes, attention_type in zip(columns, attention_types, strict=True):
            handles, points[axes] = _draw_panel(axes, table, panel, attention_type)
            labelled |= handles
            axes.set_title(attention_type)
            axes.set_xlabel("layer" if panel is rows[-1] else "")
        columns[0].set_ylabel(panel.ylabel)
        body.legend(labelled.values(), labelled.keys(), **style.ABOVE, ncols=len(labelled))
    # The panels have the same unit, so they share a scale.
    highest = max(axes.get_ylim()[1] for axes in points)
    for axes in points:
        axes.set_ylim(0, highest)
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    note = "small points are heads, lines their mean in a layer"
    style.finish(figure, table, title, f"{note}; names, where there is room: far out of its layer (Tukey 1977)")
    figure.draw_without_rendering()  # everything must have its final position before names are added
    for axes, of_axes in points.items():
        name_outliers(axes, of_axes)
    return figure


def _draw_panel(
    axes: Axes, table: xr.Dataset, panel: Panel, attention_type: str
) -> tuple[dict[str, Any], list[Points]]:
    """Draw a panel's series for one attention type; return the handles of its legend by label, and the points."""
    shown = [series for series in panel.series if _present(table, series.variable, attention_type)]
    if any(series.label == CLS.label for series in shown):  # [CLS] is the first token
        shown = [series for series in shown if series.label != FIRST.label]
    handles: dict[str, Any] = {}
    points: list[Points] = []
    for place, series in enumerate(shown):
        values = style.select_type(table[series.variable], attention_type)
        # Kinds of points stand side by side, or the last kind would hide the others.
        layers = values["layer"].values + 0.2 * (place - (len(shown) - 1) / 2)
        x, y = np.broadcast_arrays(layers[:, None], values.values)
        points.append(Points(values, layers))
        look: dict[str, Any] = {"color": series.colour, "marker": series.marker}
        axes.scatter(x, y, s=14, alpha=0.55, linewidth=0, gid=series.variable, clip_on=False, **look)
        look |= {"markersize": 6, "markeredgecolor": "white", "markeredgewidth": 0.6}
        means = values.assign_coords(layer=layers).mean("head").dropna("layer")  # some layers have no attention
        gid = f"{series.variable}-mean"
        (handles[series.label],) = axes.plot(means["layer"], means, linewidth=1.6, gid=gid, **look)
    if panel.baseline and _present(table, "entropy_uniform", attention_type):
        uniform = style.select_type(table["entropy_uniform"], attention_type)
        uniform = uniform if panel.baseline == UNIFORM else cast(xr.DataArray, np.exp(-uniform))
        line = (uniform.mean("head") if "head" in uniform.dims else uniform).dropna("layer")
        look = {"color": "0.25", "linestyle": (0, (4, 3)), "linewidth": 1.2, "gid": "baseline"}
        (handles["uniform attention"],) = axes.plot(line["layer"], line, **look)
    if shown:
        layers = style.select_type(table[shown[0].variable], attention_type)["layer"].values
        axes.set_xlim(layers[0] - 0.5, layers[-1] + 0.5)
        style.set_integer_ticks(axes, "x", layers)
    return handles, points


BY_LAYER: Mapping[str, tuple[str, Callable[[xr.Dataset], Figure], Sequence[Series]]] = {
    "Attention to special tokens": ("special-tokens", draw_special_tokens, (*SPECIAL, *SEPARATORS)),
    "Attention to the token itself and its neighbours": ("offsets", draw_offsets, NEIGHBOURS),
    "Entropy of attention": ("entropies", draw_entropies, (*ENTROPY, *FROM_CLS)),
    "Distance of attention": ("distances", draw_distances, DISTANCE),
    "Gradient of the loss by attention": ("special-tokens-gradient", draw_gradients, GRADIENTS),
}
"""For each title of a figure: the name of its file, the function that draws it, and the series that it shows."""


def list_layer_figures(table: xr.Dataset) -> dict[str, tuple[str, Callable[[], Figure]]]:
    """Return, by title, the file name and the drawing function of each figure for which a table has numbers."""
    return {
        title: (name, partial(draw, table))
        for title, (name, draw, shown) in BY_LAYER.items()
        if any(_present(table, series.variable) for series in shown)
    }


def _present(table: xr.Dataset, variable: str, attention_type: str | None = None) -> bool:
    """Return True if a table has a number for a variable; with `attention_type`, only numbers of this type count."""
    if variable not in table:
        return False
    values = table[variable]
    if attention_type and "attention_type" in values.dims:
        values = values.sel(attention_type=attention_type)
    return bool(values.notnull().any())
