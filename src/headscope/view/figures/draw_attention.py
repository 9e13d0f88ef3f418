"""The attention of heads on one text: a heatmap for each head, with the words at its axes."""

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from headscope.errors import TableError
from headscope.heads import SHARE, head_name
from headscope.view.figures import style

LABELLED = 12
"""The largest number of heads whose maps have words at their axes; more heads get small maps without words."""

ABREAST = 3
"""The number of maps with words in a row of the figure."""

CELL, NARROWEST = 0.21, 1.6
"""The size of the cell of a word, and the smallest size of a map with words, in inches."""

THUMBNAIL = 0.55
"""The size of a map without words, in inches."""

MOST_WORDS = 60
"""The largest number of words at an axis of a map; for longer texts, only every second (third ...) word is named."""


def draw_attention(attention: xr.DataArray, ax: Axes | None = None) -> Figure:
    """Draw a heatmap of attention for each head: from the words at its left to the words below it.

    All heads share one scale. For weights, the scale goes from 0 to the largest weight; for differences, which can be
    negative, 0 is in the middle. Up to 12 heads have the words at their axes. More heads are drawn as small maps, one
    row for each layer.

    Args:
        attention: An array with the dimensions ``query`` and ``key``, and optionally ``layer`` and ``head``.
        ax: Axes for the map of a single head; by default, a new figure is made.

    Raises:
        TableError: there is another dimension, no head has a value, or `ax` was passed for several heads.
    """
    if others := {*map(str, attention.dims)} - {"layer", "head", "query", "key"}:
        raise TableError(
            f"the attention has the dimension {min(others)!r}, and a heatmap is of words and heads; choose one of it, "
            f"as in attention.isel({min(others)}=0)."
        )
    maps = _list_maps(attention)
    if not maps:
        raise TableError("the attention has no value to draw; choose heads that were asked for.")
    scale, colours = _choose_scale(attention)
    if ax is not None:
        if len(maps) > 1:
            raise TableError(
                f"axes were given for the map of one head, and there are {len(maps)}; choose one, as in "
                "attention.sel(layer=3, head=1), or leave out `ax`."
            )
        _draw_map(ax, maps[0], scale, colours)
        figure = ax.get_figure(root=True)
        assert figure is not None
        return figure
    return _draw_panels(attention, maps, scale, colours)


@style.styled
def _draw_panels(attention: xr.DataArray, maps: Sequence[xr.DataArray], scale: Normalize, colours: str) -> Figure:
    """Draw a map for each head into a new figure."""
    labelled = len(maps) <= LABELLED
    if labelled:
        abreast = min(ABREAST, len(maps))
        words = math.ceil(max(attention.sizes["query"], attention.sizes["key"]))
        cells = max(NARROWEST, CELL * min(words, MOST_WORDS))
        width, height = cells + 0.9, cells + 1.1
    else:
        abreast = max(1, attention.sizes.get("head", 1))
        width = height = THUMBNAIL
    rows = math.ceil(len(maps) / abreast)
    figure, body = style.make_figure(abreast * width + 0.9, rows * height)
    grid = body.subplots(rows, abreast, squeeze=False)
    for axes, values in zip(grid.flat, maps, strict=False):
        _draw_map(axes, values, scale, colours, labelled=labelled)
    style.hide_rest(grid, len(maps))
    label = str(attention.attrs.get("units", SHARE))
    style.add_colour_bar(body, grid, scale, colours, label)
    what = str(attention.attrs.get("long_name", "attention"))
    about = xr.Dataset(attrs=attention.attrs)
    return style.finish(figure, about, what[:1].upper() + what[1:], str(attention.attrs.get("edited", "")))


def _list_maps(attention: xr.DataArray) -> list[xr.DataArray]:
    """Return the map of each head that has values, layer by layer."""
    dims = [dim for dim in ("layer", "head") if dim in attention.dims]
    stacked = [attention]
    for dim in dims:
        stacked = [each.isel({dim: place}) for each in stacked for place in range(attention.sizes[dim])]
    return [each.transpose("query", "key") for each in stacked if bool(each.notnull().any())]


def _choose_scale(attention: xr.DataArray) -> tuple[Normalize, str]:
    """Return the scale of all maps and its colours: from 0 or, with negative values, with 0 in the middle."""
    if float(attention.min()) < 0:
        return style.centre(attention), style.DIVERGING
    return Normalize(0, float(attention.max()) or 1.0), style.COLOURS


def _draw_map(axes: Axes, values: xr.DataArray, scale: Normalize, colours: str, *, labelled: bool = True) -> None:
    """Draw the map of a head, a cell for each pair of words, the first words at the top left; NaN stays empty."""
    axes.pcolormesh(np.ma.masked_invalid(values.values), cmap=colours, norm=scale)
    axes.invert_yaxis()
    axes.set_aspect("equal")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    place = [values.coords.get(dim) for dim in ("layer", "head")]
    if all(each is not None and each.ndim == 0 for each in place):
        axes.set_title(head_name(*(int(each) for each in place if each is not None)), fontsize="small", pad=3)
    if not labelled:
        axes.set(xticks=[], yticks=[])
        return
    for dim, which in (("key", "x"), ("query", "y")):
        step = math.ceil(values.sizes[dim] / MOST_WORDS)
        ticks = np.arange(0, values.sizes[dim], step)
        names = values[dim].values if dim in values.coords else np.arange(values.sizes[dim])
        set_ticks = axes.set_xticks if which == "x" else axes.set_yticks
        set_ticks(ticks + 0.5, [str(names[tick]) for tick in ticks], fontsize="x-small")
    axes.tick_params(axis="x", labelrotation=90)
    axes.set(xlabel="attended to", ylabel="attends")
