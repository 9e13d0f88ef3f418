"""The style and the shared parts of all figures: panels by attention type, ticks, captions; `save` writes a figure.

The module does not use pyplot, and opens no window.
"""

import io
import math
import re
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Normalize
from matplotlib.figure import Figure, FigureBase, SubFigure

from headscope.files import atomic_write
from headscope.view.headings import name_corpus, name_model

STYLE: dict[Any, Any] = {
    **sns.axes_style("ticks"),
    **sns.plotting_context("paper"),
    "font.family": ["DejaVu Sans"],
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
    "pdf.fonttype": 42,  # TrueType, which publishers require
    "svg.fonttype": "none",
    "svg.hashsalt": "headscope",  # without it, the ids in an SVG are random and no two runs give the same file
    "text.parse_math": False,  # names of models and relations may contain dollar signs
}
"""The settings of matplotlib while a figure is made or written."""

COLOURS, DIVERGING = "viridis", "RdBu_r"

ABOVE: dict[str, Any] = {"loc": "outside upper left", "frameon": False}
"""The settings of a legend above the panels of a subfigure, where it covers no point of them."""

TITLE, CAPTION = "title", "caption"
"""The ids of the title and of the caption of a figure."""

Arguments = ParamSpec("Arguments")

FORMATS: dict[str, dict[str, None]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""The file formats of a figure, each with the metadata that is left out (dates), so that files are reproducible."""


class NotebookFigure(Figure):
    """A figure that a notebook shows as the value of a cell, without pyplot."""

    def _repr_png_(self) -> bytes:
        """Return the figure as PNG (100 dpi)."""
        content = io.BytesIO()
        with mpl.rc_context(STYLE):
            self.savefig(content, format="png", dpi=100)
        return content.getvalue()


def save(figure: Figure, folder: str | Path, name: str, *, bare: bool = False, pdf: bool = True) -> list[Path]:
    """Write a figure as ``name.png`` (150 dpi), ``name.svg`` and ``name.pdf``, each completely or not at all.

    In SVG and PDF, text stays text. The same figure gives the same bytes. Characters that some system forbids in a file
    name (as in the relation ``nsubj:*``) become ``_``; the returned paths have the actual names.

    Args:
        figure: A figure from a function of these modules.
        folder: The folder of the files, which is created if it is missing.
        name: The name of the files, without a suffix.
        bare: Leave out the title above the panels and the small line below them, for a paper with its own caption. The
            panels keep their size. ``figure.get_suptitle()`` and ``figure.get_supxlabel()`` return the omitted text.
        pdf: Write the PDF too. It takes longer than the other two together, since it holds the letters of its fonts.

    Raises:
        HeadscopeError: the disk refuses a file.
    """
    stem, paths = file_stem(name), []
    with mpl.rc_context(STYLE), _without_words(figure) if bare else nullcontext(), _laid_out(figure):
        for suffix, dates in FORMATS.items():
            if suffix == "pdf" and not pdf:
                continue
            path = Path(folder) / f"{stem}.{suffix}"
            with atomic_write(path) as temporary:
                figure.savefig(temporary, format=suffix, dpi=150, metadata=dates)
            paths.append(path)
    return paths


@contextmanager
def _laid_out(figure: Figure) -> Iterator[None]:
    """Lay out the figure once for all files in the block, since each layout takes longer than writing a file."""
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
    # With any layout engine, even "none", matplotlib draws everything twice for each file.
    with mpl.rc_context({"figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)
        try:
            yield
        finally:
            figure.set_layout_engine(layout)


@contextmanager
def _without_words(figure: Figure) -> Iterator[None]:
    """Hide the title and the caption in the block, and reduce the height of the figure by their heights."""
    words, height = [text for text in figure.texts if text.get_gid() in {TITLE, CAPTION}], figure.get_figheight()
    layout = figure.get_layout_engine()
    room = 2 * layout.get()["h_pad"] if layout else 0.0  # the padding of matplotlib around each of them
    figure.set_figheight(height - sum(text.get_window_extent().height / figure.dpi + room for text in words))
    for text in words:
        text.set(visible=False, in_layout=False)
    try:
        yield
    finally:
        for text in words:
            text.set(visible=True, in_layout=True)
        figure.set_figheight(height)


def file_stem(name: str) -> str:
    """Return the name of a file without its suffix; characters that some system forbids become ``_``."""
    return re.sub(r"[^\w.-]", "_", name).lstrip(".") or "figure"


def styled(draw: Callable[Arguments, Figure]) -> Callable[Arguments, Figure]:
    """Wrap a drawing function so that its figure has the style of all figures (`STYLE`)."""

    @wraps(draw)
    def draw_styled(*arguments: Arguments.args, **settings: Arguments.kwargs) -> Figure:
        with mpl.rc_context(STYLE):
            return draw(*arguments, **settings)

    return draw_styled


def list_attention_types(table: xr.Dataset) -> list[str]:
    """Return the attention types of the model; a single empty name if the table has no such dimension."""
    return [str(name) for name in table["attention_type"].values] if "attention_type" in table.dims else [""]


def select_type(values: xr.DataArray, attention_type: str) -> xr.DataArray:
    """Return the values of one attention type, layer first, without the last layers and heads that have no value."""
    if "attention_type" in values.dims:
        values = values.sel(attention_type=attention_type)
    values = values.transpose("layer", ...)
    for dim in values.dims:
        present = values.notnull().any([other for other in values.dims if other != dim])
        values = values.isel({dim: slice(0, int(np.flatnonzero(present).max(initial=-1)) + 1)})
    return values


def set_integer_ticks(axes: Axes, which: str, positions: np.ndarray) -> None:
    """Set at most twelve ticks on an axis (``x`` or ``y``), at some of the positions at equal distances."""
    step = math.ceil(len(positions) / 12) if len(positions) else 1
    (axes.set_xticks if which == "x" else axes.set_yticks)(positions[::step])


def height_of_cells(table: xr.Dataset, wide: float = 2.9) -> float:
    """Return the height of a panel of width `wide` with a cell for each head, in inches."""
    return min(5.0, max(1.8, wide * table.sizes["layer"] / table.sizes["head"]))


def add_colour_bar(
    figure: FigureBase, panels: Any, scale: Normalize, colours: str, label: str, **look: Any
) -> Colorbar:
    """Add a colour bar without a frame to some panels of a figure, and return the bar."""
    bar = figure.colorbar(ScalarMappable(scale, colours), ax=panels, **{"pad": 0.02, "aspect": 18, **look})
    bar.set_label(label)
    bar.outline.set_visible(False)
    return bar


def annotate(figure: Figure, table: xr.Dataset, what: str, note: str, *keys: str) -> Figure:
    """Add a title (`what`, the model and the meaning of marks) and a caption to a figure, and return the figure."""
    title = "\n".join([what, name_model(table.attrs["model"]), *keys])
    return finish(figure, table.assign_attrs(model=""), title, note)


def make_figure(width: float, height: float) -> tuple[Figure, SubFigure]:
    """Return a figure of a size in inches, which a title makes higher, and its part for panels and a legend."""
    figure = NotebookFigure(figsize=(width, height))
    return figure, add_body(figure)


def finish(figure: Figure, table: xr.Dataset, title: str, note: str = "") -> Figure:
    """Add a title, and a caption that names the source of the numbers, to a figure, and return the figure."""
    add_title(figure, title)
    add_caption(figure, table, note)
    return figure


def centre(values: xr.DataArray | pd.DataFrame) -> Normalize:
    """Return the scale from minus the largest absolute value to the largest absolute value."""
    most = float(np.nanmax(np.abs(values.to_numpy()))) or 1.0
    return Normalize(-most, most)


def hide_rest(grid: np.ndarray, used: int) -> None:
    """Hide the panels of a grid after the first `used` panels."""
    for axes in grid.flat[used:]:
        axes.set_axis_off()


def add_body(figure: FigureBase) -> SubFigure:
    """Add a subfigure below the title of a figure, with room for a legend above its panels (`ABOVE`)."""
    return figure.add_subfigure(figure.add_gridspec()[0])


def add_title(figure: Figure, text: str) -> None:
    """Add a title at the top left of a figure; long lines are wrapped, and the figure gets higher by its lines."""
    text = wrap(text, int(12 * figure.get_figwidth()))
    figure.set_figheight(figure.get_figheight() + 0.19 * len(text.split("\n")))
    figure.suptitle(text, x=0.01, ha="left", fontsize="medium", gid=TITLE)


def wrap(text: str, width: int) -> str:
    """Return a text in lines of at most `width` characters; words are broken only if they are longer."""
    return "\n".join(part for line in text.split("\n") for part in textwrap.wrap(line, width, break_on_hyphens=False))


def add_caption(figure: Figure, table: xr.Dataset, note: str = "") -> None:
    """Add the model, the corpus and the number of documents to a figure, in small grey type at the bottom."""
    # The names have no folders, which mean nothing elsewhere; the table has them.
    parts = [name_model(table.attrs.get("model", "")), name_corpus(table.attrs.get("corpus", ""))]
    if "documents" in table.attrs:
        parts.append(f"{int(table.attrs['documents']):,} documents")
    if "view" in table.attrs:
        parts.append(f"view {table.attrs['view']}")
    text = textwrap.fill(" · ".join(filter(None, [*parts, note])), int(17 * figure.get_figwidth()))
    figure.supxlabel(text, x=0.01, ha="left", fontsize=7, color="0.45", gid=CAPTION)
