"""Figures of several runs and the model before: similarity, attention to classes of tokens, paired dots.

They follow Kovaleva et al. 2019, figures 5 to 7, and take head tables instead of a comparison. `draw_pairs` takes a
data frame, which `pair_comparisons` makes from comparisons and `pair_classes` from tables with classes of tokens.
"""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from headscope.analyse.comparable import name_table
from headscope.errors import TableError
from headscope.heads import parse_head
from headscope.score import read_scores
from headscope.view.figures import style
from headscope.view.figures.draw_changes import COLOURS, MARKERS, set_signed_ticks
from headscope.view.figures.draw_heatmaps import draw_cells
from headscope.view.wording import check_comparison, format_runs, list_groups, name_group

ABREAST = 4
"""The number of panels in a row of the figure."""


@style.styled
def draw_similarity_heatmap(table: xr.Dataset, control: xr.Dataset | None = None) -> Figure:
    """Draw the similarity of each head's maps before and after fine-tuning (Kovaleva et al. 2019, figure 5).

    The heatmap shows the mean over runs for each head. Next to it are the means of the layers, with a thin line for
    each run.

    Args:
        table: A head table with ``similarity``, of several runs (dimension ``run``) or of a single model.
        control: The same table for the runs of the task's control, drawn below on the same scale.

    Raises:
        TableError: a table has no ``similarity``, or several attention types; or no head has a value.
    """
    tables = {"task": table} | ({} if control is None else {"control": control})
    variable = next((score.variable for score in read_scores(table) if score.ascending), "")
    if any(variable not in described for described in tables.values()):
        raise TableError("the head table has no similarity of the model before and the model after; measure it first.")
    similarity = {group: _with_runs(described[variable]) for group, described in tables.items()}
    if any(bool(values.isnull().all()) for values in similarity.values()):
        raise TableError("no head has a value of similarity; measure the model after on texts that the model takes.")
    least = min(float(values.mean("run").min()) for values in similarity.values())
    lowest = min(math.floor(least * 10) / 10, 0.9)
    scale = Normalize(lowest, 1.0)
    height = style.height_of_cells(table)
    figure = style.NotebookFigure(figsize=(5.8, 0.8 + height * len(similarity)))
    grid = figure.subplots(len(similarity), 2, squeeze=False, width_ratios=[3, 1.1])
    for (heat, side), (group, values) in zip(grid, similarity.items(), strict=True):
        draw_cells(heat, values.mean("run"), scale, style.COLOURS)
        heat.set_title(f"{name_group(tables[group], group)}, {format_runs(values.sizes['run'])}")
        _layer_means(side, values, group, lowest)
    long = 18 * len(similarity)
    style.add_colour_bar(figure, grid, scale, style.COLOURS, "cosine of the maps", aspect=long, pad=0.03)
    missing = ["▨ no value"] if any(bool(values.isnull().any()) for values in similarity.values()) else []
    what = "similarity of each head's maps before and after fine-tuning"
    return style.annotate(figure, table, what, "right: mean of each layer; thin lines are runs", *missing)


@style.styled
def draw_class_heatmaps(
    before: xr.Dataset,
    after: xr.Dataset,
    classes: Sequence[str] = ("cls", "sep"),
    *,
    variable: str,
) -> Figure:
    """Draw each head's attention to classes of tokens before and after tuning (Kovaleva et al. 2019, figure 6).

    Args:
        before: A head table with the variable, over layer, head and token_class.
        after: The table of the runs, or of a single model after fine-tuning; the mean over runs is drawn.
        classes: The classes to draw, each in a row of panels; classes that the corpus lacks are left out.
        variable: ``token_class_attention`` or ``token_class_mass``, or one of these with the suffix ``_from_cls``.

    Raises:
        TableError: a table lacks the variable or has several attention types, the corpus has none of the classes, or
            the table after lacks one of them.
    """
    for table in (before, after):
        _check_classes(table, variable)
    known = set(before["token_class"].values.tolist())
    present = [name for name in classes if name in known and bool(_of_class(before, variable, name).notnull().any())]
    if not present:
        raise TableError(f"the corpus has no tokens of {' or '.join(classes)}; name a class that it has.")
    start = [_with_runs(_of_class(before, variable, name)).isel(run=0) for name in present]
    runs = [_with_runs(_of_class(after, variable, name)).mean("run") for name in present]
    most = max(float(values.max()) for values in (*start, *runs))
    change = max(float(np.abs(end - begin).max()) for begin, end in zip(start, runs, strict=True))
    scales = Normalize(0, most if most > 0 else 1), CenteredNorm(0, change if change > 0 else 1)
    height = style.height_of_cells(before, 2.7)
    figure = style.NotebookFigure(figsize=(10.6, 0.8 + height * len(present)))
    grid = figure.subplots(len(present), 3, squeeze=False)
    for panels, name, begin, end in zip(grid, present, start, runs, strict=True):
        shown = {"before": begin, "after": end, "change": end - begin}
        for axes, (when, values) in zip(panels, shown.items(), strict=True):
            draw_cells(axes, values, scales[when == "change"], style.DIVERGING if when == "change" else style.COLOURS)
            axes.set_title(f"to {_class(name)}: {when}")
    units = str(before[variable].attrs["units"])
    long = 18 * len(present)
    style.add_colour_bar(figure, grid[:, :2], scales[0], style.COLOURS, units, aspect=long)
    bar = style.add_colour_bar(figure, grid[:, 2], scales[1], style.DIVERGING, f"change ({units})", aspect=long)
    set_signed_ticks(bar.ax.yaxis, change)
    missing = ["▨ no value"] if any(bool(values.isnull().any()) for values in (*start, *runs)) else []
    what = f"{variable.replace('_', ' ')} before and after fine-tuning on {name_group(after, 'task')}"
    return style.annotate(figure, before, what, f"after: mean of {format_runs(after.sizes.get('run', 1))}", *missing)


def pair_comparisons(comparisons: Mapping[str, xr.Dataset], which: str = "best") -> pd.DataFrame:
    """Return the data frame for `draw_pairs` from comparisons: a row for each comparison, group and run.

    Args:
        comparisons: The comparisons by the title of their panel.
        which: ``best`` for the head that is best before, ``average`` for the mean of all heads, or a head: ``8-4``.

    Returns:
        A data frame with the columns ``entry``, ``group``, ``run``, ``before`` and ``after``.
    """
    rows = []
    for entry, comparison in comparisons.items():
        label = entry
        if which == "average":
            before, after = comparison["average_before"], comparison["average"]
        else:
            name = str(comparison.attrs["best_head"]) if which == "best" else which
            layer, head = parse_head(name, comparison)
            before, after = (comparison[when].sel(layer=layer, head=head) for when in ("before", "after"))
            label += f", {name}"
        for group in list_groups(check_comparison(comparison)):
            ends = after.sel(group=group).dropna("run")
            rows += [
                (label, group, int(run), float(before), float(end))
                for run, end in zip(ends["run"].values, ends.values, strict=True)
            ]
    return pd.DataFrame(rows, columns=["entry", "group", "run", "before", "after"])


def pair_classes(
    before: xr.Dataset,
    after: xr.Dataset,
    control: xr.Dataset | None = None,
    *,
    variable: str,
    layer: int | None = None,
) -> pd.DataFrame:
    """Return the data frame for `draw_pairs` from classes of tokens: the mean attention of heads to each class.

    With ``token_class_attention_from_cls`` and the last layer, the figure is figure 7 of Kovaleva et al. 2019.

    Args:
        before: The head table of the model before.
        after: The table of the runs, or of a single model.
        control: The table of the task's control.
        variable: A variable over layer, head and token_class.
        layer: The layer whose heads are used; by default, all layers.

    Raises:
        TableError: a table lacks the variable, the layer, or a class of tokens that `before` has.
    """
    tables = {"task": after} | ({} if control is None else {"control": control})
    for table in (before, *tables.values()):
        _check_classes(table, variable)
    rows = []
    for name in before["token_class"].values:
        start = _of_layer(_of_class(before, variable, name), layer).mean()
        for group, table in tables.items() if bool(start.notnull()) else ():
            ends = _of_layer(_with_runs(_of_class(table, variable, name)), layer).mean(["layer", "head"])
            rows += [(_class(name), group, run, float(start), float(end)) for run, end in enumerate(ends.values, 1)]
    return pd.DataFrame(rows, columns=["entry", "group", "run", "before", "after"])


@style.styled
def draw_pairs(
    frame: pd.DataFrame, about: xr.Dataset, what: str, *, units: str = "", one_scale: bool = False
) -> Figure:
    """Draw lines from values before to values after tuning: thin for runs, thick for means; a panel for each entry.

    Args:
        frame: A data frame with the columns ``entry``, ``group`` (``task`` or ``control``), ``run``, ``before`` and
            ``after``.
        about: A head table or a comparison, for the names of the model and the corpus.
        what: The meaning of the numbers, for the title.
        units: The unit of the numbers.
        one_scale: Draw all panels on one scale; by default, each panel has its own.

    Raises:
        TableError: the frame has no rows.
    """
    if frame.empty:
        raise TableError("no entry has values before and after tuning, so nothing can be drawn; give others.")
    entries = list(dict.fromkeys(frame["entry"]))
    groups = [group for group in COLOURS if group in set(frame["group"])]
    columns = min(len(entries), ABREAST)
    deep = math.ceil(len(entries) / columns)
    figure, body = style.make_figure(0.4 + 1.9 * max(columns, 2), 0.7 + 2.4 * deep)
    grid = body.subplots(deep, columns, squeeze=False, sharey=one_scale)
    for axes, entry in zip(grid.flat, entries, strict=False):
        rows = frame[frame["entry"] == entry]
        for group in groups:
            _slopes(axes, rows[rows["group"] == group], group)
        axes.set(xlim=(-0.2, 1.2), xticks=[0, 1], xticklabels=["before", "after"])
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.set_title(textwrap.fill(entry, 24), fontsize="small")
    style.hide_rest(grid, len(entries))
    for axes in grid[:, 0]:
        axes.set_ylabel(units)
    handles = []
    for group in groups:
        count = frame[frame["group"] == group].groupby("entry").size().max()
        label = f"{name_group(about, group)}, {format_runs(int(count))}"
        line = Line2D([], [], color=COLOURS[group], marker=MARKERS[group], linewidth=2, markersize=5, label=label)
        handles.append(line)
    body.legend(handles=handles, **style.ABOVE, ncols=len(handles))
    scale = "" if one_scale or len(entries) == 1 else "; each panel has its own scale"
    return style.annotate(figure, about, what, f"thin lines are runs, thick ones their mean{scale}")


def _slopes(axes: Axes, rows: pd.DataFrame, group: str) -> None:
    """Draw the runs of a group as thin lines and their mean as a thick line; task and control are shifted apart."""
    ends = np.array([0.0, 1.0 + (0.06 if group == "control" else -0.06)])
    look: dict[str, Any] = {"color": COLOURS[group], "marker": MARKERS[group], "clip_on": False}
    for _, row in rows.iterrows():
        pair = [row["before"], row["after"]]
        axes.plot(ends, pair, **look, linewidth=0.7, markersize=3, alpha=0.55, gid=f"{group}-run")
    if len(rows):
        means = [rows["before"].mean(), rows["after"].mean()]
        axes.plot(ends, means, **look, linewidth=2, markersize=6, markeredgecolor="white", gid=f"{group}-mean")


def _layer_means(axes: Axes, values: xr.DataArray, group: str, lowest: float) -> None:
    """Draw the mean similarity of each layer next to its row of heads: thick for all runs, thin for each run."""
    layers = values["layer"].values
    for row in values.mean("head").transpose("run", "layer").values if values.sizes["run"] > 1 else ():
        axes.plot(row, layers, color=COLOURS[group], linewidth=0.6, alpha=0.5, gid="run")
    means = values.mean(["run", "head"])
    axes.plot(means, layers, color=COLOURS[group], marker=MARKERS[group], markersize=4, linewidth=1.6, gid="mean")
    lowest = min(lowest, float(values.mean("head").min()))
    limits: dict[str, Any] = {"xlim": (lowest, 1 + 0.05 * (1 - lowest)), "ylim": (layers[-1] + 0.5, layers[0] - 0.5)}
    axes.set(**limits, xlabel="mean of layer", yticks=[])
    axes.xaxis.set_major_locator(MaxNLocator(3))
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color="0.9", linewidth=0.6)


def _with_runs(values: xr.DataArray) -> xr.DataArray:
    if "attention_type" in values.dims:
        raise TableError(
            f"the head table has the attention types {', '.join(map(str, values['attention_type'].values))}, and "
            "this figure shows one; select one: table.sel(attention_type=...)."
        )
    values = values if "run" in values.dims else values.expand_dims("run")
    return values.transpose("run", "layer", "head")


def _of_class(table: xr.Dataset, variable: str, name: str) -> xr.DataArray:
    if name not in table["token_class"].values:
        raise TableError(
            f"{name_table(table, 'the head table')} has no token_class {str(name)!r}; it has "
            f"{', '.join(map(str, table['token_class'].values))}: measure the same classes in all tables."
        )
    return table[variable].sel(token_class=name).transpose(..., "layer", "head")


def _of_layer(values: xr.DataArray, layer: int | None) -> xr.DataArray:
    if layer is not None and layer not in values["layer"].values:
        raise TableError(f"there is no layer {layer}; the model has {values.sizes['layer']}.")
    return values if layer is None else values.sel(layer=[layer])


def _check_classes(table: xr.Dataset, variable: str) -> None:
    if variable not in table:
        raise TableError(
            f"the head table has no {variable}; measure attention to classes of tokens first, on a corpus with parts "
            "of speech."
        )


def _class(name: str) -> str:
    return f"[{name.upper()}]" if name in {"cls", "sep"} else str(name)
