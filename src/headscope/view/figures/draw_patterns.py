"""Patterns of attention maps (Kovaleva et al. 2019, figure 2): their shares in models, layers and heads."""

from collections.abc import Mapping

import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from headscope.view.figures import style

NOTE = "one map a head and text, classified by a network; heterogeneous maps follow no structure"


@style.styled
def draw_shares(tables: Mapping[str, xr.Dataset]) -> Figure:
    """Draw the share of each pattern in all maps, in a bar for each table, as a mean over its runs."""
    bars = {name: _average(table) for name, table in tables.items()}
    figure, body = style.make_figure(6.6, 1.6 + 0.42 * len(bars))
    axes: Axes = body.subplots()
    patterns = _draw_bars(axes, list(bars), [share.values for share in bars.values()], next(iter(bars.values())))
    axes.set_xlabel("share of maps, %")
    axes.invert_yaxis()
    body.legend(handles=patterns, ncols=len(patterns), **style.ABOVE)
    return style.finish(figure, next(iter(tables.values())), "Patterns of attention maps", NOTE)


@style.styled
def draw_layers(table: xr.Dataset) -> Figure:
    """Draw the share of each pattern in the maps of each layer."""
    types = style.list_attention_types(table)
    figure, body = style.make_figure(6.6, 1.5 + len(types) * (0.5 + 0.2 * table.sizes["layer"]))
    panels = body.subplots(len(types), 1, squeeze=False)[:, 0]
    for axes, attention_type in zip(panels, types, strict=True):
        shares = style.select_type(_average_runs(table["pattern_share"]), attention_type).mean("head")
        shares = shares.transpose("layer", "pattern").dropna("layer", how="all")
        names = [str(layer) for layer in shares["layer"].values]
        patterns = _draw_bars(axes, names, list(shares.values), shares)
        axes.set(xlabel="share of maps, %", ylabel="layer", title=attention_type if len(types) > 1 else "")
        axes.invert_yaxis()
    body.legend(handles=patterns, ncols=len(patterns), **style.ABOVE)
    return style.finish(figure, table, "Patterns of attention maps, by layer", NOTE)


@style.styled
def draw_heads(table: xr.Dataset) -> Figure:
    """Draw the most frequent pattern of each head; a cell is paler if fewer of the head's maps show the pattern."""
    types = style.list_attention_types(table)
    width = 1.6 + max(3.2, 0.36 * table.sizes["head"])
    figure, body = style.make_figure(width * len(types), 1.6 + 0.3 * table.sizes["layer"])
    panels = body.subplots(1, len(types), squeeze=False)[0]
    names = [str(name) for name in table["pattern"].values]
    colours = _choose_colours(len(names))
    for axes, attention_type in zip(panels, types, strict=True):
        shares = style.select_type(_average_runs(table["pattern_share"]), attention_type)
        known = shares.transpose("layer", "head", "pattern").fillna(0).values
        layers, heads, _ = known.shape
        axes.imshow(
            known.argmax(-1), cmap=ListedColormap(colours), alpha=known.max(-1), aspect="auto",
            norm=BoundaryNorm(np.arange(len(names) + 1) - 0.5, len(names)),
            extent=(0.5, heads + 0.5, layers + 0.5, 0.5),
        )  # fmt: skip
        axes.set(xlabel="head", ylabel="layer", title=attention_type if len(types) > 1 else "")
        style.set_integer_ticks(axes, "x", np.arange(1, heads + 1))
        style.set_integer_ticks(axes, "y", np.arange(1, layers + 1))
    handles = [Patch(color=colour, label=name) for name, colour in zip(names, colours, strict=True)]
    body.legend(handles=handles, ncols=3, **style.ABOVE)
    note = "the paler a cell, the fewer of the head's maps show the pattern"
    return style.finish(figure, table, "The most frequent pattern of each head", note)


def _draw_bars(axes: Axes, names: list[str], shares: list[np.ndarray], labelled: xr.DataArray) -> list[Patch]:
    """Draw a stacked bar of the patterns' shares for each name, and return the handles of the legend."""
    patterns = [str(name) for name in labelled["pattern"].values]
    colours = _choose_colours(len(patterns))
    values = 100 * np.array(shares)
    left = np.zeros(len(names))
    for number, colour in enumerate(colours):
        axes.barh(names, values[:, number], left=left, color=colour)
        for place, value in enumerate(values[:, number]):
            if value >= 6:
                axes.text(left[place] + value / 2, place, f"{value:.0f}", ha="center", va="center", fontsize="small")
        left += values[:, number]
    axes.set_xlim(0, 100)
    return [Patch(color=colour, label=name) for name, colour in zip(patterns, colours, strict=True)]


def _average(table: xr.Dataset) -> xr.DataArray:
    """Return the share of each pattern in the maps of all heads."""
    shares = _average_runs(table["pattern_share"])
    return shares.mean([dim for dim in shares.dims if dim != "pattern"])


def _average_runs(shares: xr.DataArray) -> xr.DataArray:
    return shares.mean("run") if "run" in shares.dims else shares


def _choose_colours(count: int) -> list[tuple[float, float, float]]:
    """Return a colour for each pattern; the last, for maps without a pattern, is grey."""
    return [*sns.color_palette("pastel", count - 1), (0.85, 0.85, 0.85)]
