"""The style of all figures, and what they share: panels by attention type, ticks, captions; `save` writes a figure.

No global state of pyplot is used, and nothing is shown.
"""

import math
import re
import textwrap
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

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

COLOURS, DIVERGING = "viridis", "RdBu_r"

OUTSIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.02, 1), "frameon": False, "borderaxespad": 0}
"""Of a legend: to the right of its axes."""

ABREAST = 4
"""Panels side by side; more stand below."""


def save(figure: Figure, folder: str | Path, name: str) -> list[Path]:
    """Write a figure as ``name.png`` (150 dpi) and ``name.svg`` (text stays text), each whole or not at all.

    The same figure gives the same bytes. Letters that a file name may not hold on some system
    (as in the relation ``nsubj:*``) become ``_``; the returned paths say what the files are called.

    Raises:
        HeadscopeError: the disk refuses a file.
    """
    stem, paths, layout = file_stem(name), [], figure.get_layout_engine()
    with mpl.rc_context(STYLE):
        for suffix in ("png", "svg"):
            path = Path(folder) / f"{stem}.{suffix}"
            with atomic_write(path) as temporary:
                figure.savefig(temporary, format=suffix, dpi=150, metadata={"Date": None} if suffix == "svg" else None)
            paths.append(path)
            # To find out where everything goes takes half of the time; in the next file it goes to the same places.
            figure.set_layout_engine("none")
    figure.set_layout_engine(layout)
    return paths


def file_stem(name: str) -> str:
    """The name of a file without its suffix, in which letters that some system does not take are ``_``."""
    return re.sub(r"[^\w.-]", "_", name).lstrip(".") or "figure"


def list_attention_types(table: xr.Dataset) -> list[str]:
    """The attention types of the model; one without a name where the table has no such dim."""
    return [str(name) for name in table["attention_type"].values] if "attention_type" in table.dims else [""]


def select_type(values: xr.DataArray, attention_type: str) -> xr.DataArray:
    """The values of one attention type, layer before head, up to the last layer and head that it has."""
    if "attention_type" in values.dims:
        values = values.sel(attention_type=attention_type)
    values = values.transpose("layer", ...)
    for dim in values.dims:
        present = values.notnull().any([other for other in values.dims if other != dim])
        values = values.isel({dim: slice(0, int(np.flatnonzero(present).max(initial=-1)) + 1)})
    return values


def set_integer_ticks(axes: Axes, which: str, positions: np.ndarray) -> None:
    """At most about twelve whole numbers."""
    step = math.ceil(len(positions) / 12) if len(positions) else 1
    (axes.set_xticks if which == "x" else axes.set_yticks)(positions[::step])


def height_of_cells(table: xr.Dataset, wide: float = 2.9) -> float:
    """The height of a panel with a cell for each head that is so wide, in inches."""
    return min(5.0, max(1.8, wide * table.sizes["layer"] / table.sizes["head"]))


def add_colour_bar(figure: Figure, panels: Any, scale: Normalize, colours: str, label: str, **look: Any) -> Colorbar:
    """The colour bar of some panels, without a frame."""
    bar = figure.colorbar(ScalarMappable(scale, colours), ax=panels, **{"pad": 0.02, "aspect": 18, **look})
    bar.set_label(label)
    bar.outline.set_visible(False)
    return bar


def annotate(figure: Figure, table: xr.Dataset, what: str, note: str, *keys: str) -> None:
    """Add a caption, and above the title, the model and the key of the marks; the figure grows by their lines."""
    width = int(11.5 * figure.get_figwidth())
    lines = [line for part in (what, str(table.attrs["model"]), *keys) for line in textwrap.wrap(part, width)]
    figure.set_figheight(figure.get_figheight() + 0.19 * len(lines))
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize="medium")
    add_caption(figure, table.assign_attrs(model=""), note)


def add_caption(figure: Figure, table: xr.Dataset, note: str = "") -> None:
    """Model, corpus and size, small and grey at the bottom: a figure says where it came from."""
    # Not the folders, which mean nothing elsewhere: the table has them.
    parts = [str(table.attrs.get("model", "")), Path(str(table.attrs.get("corpus", ""))).name]
    if "documents" in table.attrs:
        parts.append(f"{int(table.attrs['documents']):,} documents")
    text = textwrap.fill(" · ".join(filter(None, [*parts, note])), int(17 * figure.get_figwidth()))
    figure.supxlabel(text, x=0.01, ha="left", fontsize=7, color="0.45")
