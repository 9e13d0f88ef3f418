"""Heatmaps of heads by layer: how well each marks a relation, a scope or an aspect, and what each looks at."""

import math
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from headscope.analyse import consistency
from headscope.errors import TableError
from headscope.heads import head_name
from headscope.view.figures import COLOURS, STYLE, attention_types_of, caption, integer_ticks, part
from headscope.view.offset import Offset, best_offset, signed

ABREAST = 4
"""Panels side by side; more stand below."""

DIVERGING = "RdBu_r"


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
    panels = {str(name).replace("_", " "): accuracy.sel(direction=name) for name in accuracy["direction"].values}
    title = _relation_title(table, relation)
    return _heads(table, panels, best_offset(table, relation), title, "accuracy (share of links)")


def scope_heads(table: xr.Dataset) -> Figure:
    """The F1 of every head on the scopes of negations (Zhao and Bethard 2020, figure 2), the best head outlined.

    Raises:
        TableError: the table has no ``scope_f1``.
    """
    if "scope_f1" not in table:
        raise TableError("the head table has no scope_f1; measure a corpus with negations first.")
    offsets = table["scope_offset_f1"]
    best = Offset(int(offsets["offset"].values[int(offsets.values.argmax())]), float(offsets.max()))
    everything = float(table["scope_all_f1"])
    title = (
        f"negation scope · {int(table['scope_count']):,} negations\n"
        f"best fixed offset {signed(best.offset)}: {best.accuracy:.2f} · all words: {everything:.2f}"
    )
    title += _held_out(_report(table, "scope_"), "f1")
    return _heads(table, {"": table["scope_f1"]}, best, title, "F1 (share of words)")


def consistency_heads(one: xr.Dataset, other: xr.Dataset, variable: str = "scope_f1") -> Figure:
    """A score of every head on two corpora, side by side on one scale (Zhao and Bethard 2020, figures 2, A1 to A4).

    Args:
        one: a head table of a model on one corpus.
        other: of the same model on another corpus.
        variable: one value for each head, as `headscope.consistency` wants it.

    Raises:
        TableError: the heads cannot be compared.
    """
    found = consistency(one, other, variable)
    names = [Path(str(table.attrs["corpus"])).name for table in (one, other)]
    if names[0] == names[1]:
        names = [f"{name} ({place})" for place, name in enumerate(names, start=1)]
    panels = {name: table[variable] for name, table in zip(names, (one, other), strict=True)}
    title = f"{variable.replace('_', ' ').replace(' f1', ' F1')} on two corpora\nKendall's τ {found.tau:.3f}"
    if not math.isnan(found.lower):
        title += f" [{found.lower:.2f}, {found.upper:.2f}]"
    documents = sum(int(table.attrs["documents"]) for table in (one, other))
    both = one.assign_attrs(corpus=" and ".join(names), documents=documents)
    return _heads(both, panels, None, title, str(one[variable].attrs["units"]))


def antecedent_heads(table: xr.Dataset) -> Figure:
    """How often every head finds the antecedent, a panel for each class of mentions (Clark et al. 2019, section 4.3).

    The best head of a panel is chosen on the data it is scored on, so its accuracy is an
    overestimate; the held-out accuracy over all mentions stands in the title where the table has it.

    Raises:
        TableError: the table has no ``antecedent_accuracy``.
    """
    if "antecedent_accuracy" not in table:
        raise TableError("the head table has no antecedent_accuracy; measure a corpus with coreference first.")
    table = table.isel(mention=table["antecedent_count"].values > 0)
    panels = {str(name): table["antecedent_accuracy"].sel(mention=name) for name in table["mention"].values}
    everything = table.sel(mention="all")
    title = (
        f"antecedents · {int(everything['antecedent_count']):,} mentions\n"
        f"nearest mention: {float(everything['antecedent_nearest']):.2f} · "
        f"same head word: {float(everything['antecedent_head_match']):.2f} · "
        f"rules: {float(everything['antecedent_rules']):.2f}"
    )
    title += _held_out(_report(everything, "antecedent_"), "accuracy")
    return _heads(table, panels, None, title, "accuracy (share of mentions)")


def aspect_heads(table: xr.Dataset) -> Figure:
    """How often every head points from the aspect that a question names at each target, a panel for each target.

    The best head of a panel is chosen on the data it is scored on, so its accuracy is an overestimate.

    Raises:
        TableError: the table has no ``aspect_accuracy``.
    """
    if "aspect_accuracy" not in table:
        raise TableError("the head table has no aspect_accuracy; measure a corpus with questions after aspects first.")
    panels = {}
    for name in table["target"].values[table["aspect_count"].values > 0]:
        row = table.sel(target=name)
        offset = best_offset(table, name, "aspect_offset", "target")
        held = f"{int(row['aspect_count']):,} pairs · blindly {float(row['aspect_chance']):.2f}"
        if offset is not None and offset.accuracy > 0:
            held += f" · offset {signed(offset.offset)}: {offset.accuracy:.2f}"
        panels[f"{str(name).replace('_', ' ')}\n{held}"] = row["aspect_accuracy"]
    title = "aspects in question · of all other words, those that name the aspect attend most to …"
    return _heads(table, panels, None, title, "accuracy (share of pairs)")


def token_class_heads(table: xr.Dataset) -> Figure:
    """How much every head attends to each class of tokens, beside the share of the tokens that it is.

    A panel for each class that the corpus has (Kovaleva et al. 2019, section 4.4, whose figure 6 has [CLS] and
    [SEP]). Red heads give a class more than its share, blue ones less; the scale reaches as far down as up.

    Raises:
        TableError: the table has no ``token_class_mass``.
    """
    if "token_class_mass" not in table:
        raise TableError("the head table has no token_class_mass; measure a corpus with parts of speech first.")
    table = table.isel(token_class=table["token_class_count"].values > 0)
    times = table["token_class_mass"] / table["token_class_share"]
    most = max(2.0, float(times.max()))
    panels = {}
    for name in table["token_class"].values:
        of = table.sel(token_class=name)
        what = f"{name} ({float(of['token_class_share']):.0%}) · {int(of['token_class_count']):,} documents"
        panels[what] = times.sel(token_class=name).clip(min=1 / most)
    title = "attention to classes of tokens, in multiples of the share of the tokens (in brackets) that they are"
    return _heads(
        table, panels, None, title, "times the share of tokens", scale=LogNorm(1 / most, most), colours=DIVERGING
    )


def role_heads(table: xr.Dataset) -> Figure:
    """The largest weight between a predicate and what fills a role of it (Kovaleva et al. 2019, figure 3).

    Beside it, on the same scale, that between any two words of the sentence that are no neighbours.

    Raises:
        TableError: the table has no ``role_weight``.
    """
    if "role_weight" not in table:
        raise TableError("the head table has no role_weight; measure a corpus with semantic roles first.")
    offsets = table["role_weight_offset"]
    title = (
        f"semantic roles · {int(table['role_count']):,} links · all weight at the best fixed offset "
        f"(±{abs(int(offsets['offset'].values[int(offsets.values.argmax())]))}): {float(offsets.max()):.2f}"
    )
    title += _held_out(_report(table, "role_"), "weight")
    panels = {"predicate and role": table["role_weight"], "any two words": table["role_weight_anywhere"]}
    return _heads(table, panels, None, title, "largest weight, mean over links")


def _report(table: xr.Dataset, prefix: str) -> dict[str, xr.DataArray]:
    """What a table says of the reported head under names with a prefix, without it."""
    names = [name for name in map(str, table.data_vars) if name.startswith(prefix)]
    return {name.removeprefix(prefix): table[name] for name in names}


def _heads(
    table: xr.Dataset,
    panels: Mapping[str, xr.DataArray],
    baseline: Offset | None,
    title: str,
    label: str,
    *,
    scale: Normalize | None = None,
    colours: str = COLOURS,
) -> Figure:
    """A panel for each direction and attention type, on one scale: by default one to the best head or the baseline."""
    of_model = attention_types_of(table)
    marks = [*(float(values.max()) for values in panels.values()), baseline.accuracy if baseline else math.nan]
    least = min(0.0, *(float(values.min()) for values in panels.values()))
    scale = scale or Normalize(least, max((mark for mark in marks if mark > 0), default=1.0))
    sizes = table.sizes
    height = min(5.0, max(1.8, 2.9 * sizes["layer"] / sizes["head"]))
    columns = len(of_model) if of_model[0] else min(len(panels), ABREAST)
    rows = math.ceil(len(panels) * len(of_model) / columns)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(1.2 + 3.1 * columns, 1.1 + height * rows))
        grid = figure.subplots(rows, columns, squeeze=False)
        places = [(attention_type, direction) for direction in panels for attention_type in of_model]
        for axes, (attention_type, direction) in zip(grid.flat, places, strict=False):
            _heatmap(axes, part(panels[direction], attention_type), scale, direction, attention_type, colours)
        for axes in grid.flat[len(places) :]:
            axes.set_axis_off()
        bar = figure.colorbar(ScalarMappable(scale, colours), ax=grid, aspect=18 * rows, pad=0.02)
        bar.set_label(label)
        bar.outline.set_visible(False)
        if isinstance(scale, LogNorm):
            most = int(math.log2(scale.vmax or 1))
            powers = range(-most, most + 1)
            bar.set_ticks([2.0**n for n in powers], labels=[str(2**n) if n >= 0 else f"1/{2**-n}" for n in powers])
            bar.minorticks_off()
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
        figure.suptitle(title, x=0.01, ha="left", fontsize="medium")
        caption(figure, table)
    return figure


def _heatmap(
    axes: Axes, values: xr.DataArray, scale: Normalize, direction: str, attention_type: str, colours: str
) -> None:
    """Heads of one attention type and direction, layer 1 at the top, the best one outlined and named in the title."""
    title = " · ".join(filter(None, (attention_type, direction)))
    if not values.size:
        axes.set_axis_off()
        axes.set_title(f"{title}\nno value")
        return
    layers, heads = values["layer"].values, values["head"].values
    fine = cells(axes, values, scale, colours)
    best = np.unravel_index(int(np.nanargmax(values.values)), values.shape)
    layer, head = int(layers[best[0]]), int(heads[best[1]])
    outline = Rectangle((head - 0.5, layer - 0.5), 1, 1, fill=False, edgecolor="white", clip_on=False, gid="best")
    outline.set(linewidth=1.6 * fine, path_effects=[patheffects.withStroke(linewidth=4 * fine, foreground="black")])
    axes.add_patch(outline)
    axes.set_title(f"{title}\nbest: {head_name(layer, head)} {float(values.values[best]):.2f}")


def cells(axes: Axes, values: xr.DataArray, scale: Normalize, colours: str) -> float:
    """A cell for each head of ``(layer, head)``, layer 1 at the top, hatched where it has no value.

    Returns:
        how fine lines must be beside cells so small, 1 at most.
    """
    layers, heads = values["layer"].values, values["head"].values
    fine = min(1.0, 14 / len(heads))  # thinner lines for small cells, or they would cover them
    edges = [np.append(numbers - 0.5, numbers[-1] + 0.5) for numbers in (heads, layers)]
    shown = np.ma.masked_invalid(values.values)
    axes.pcolormesh(*edges, shown, cmap=colours, norm=scale, edgecolors="white", linewidth=0.6 * fine)
    axes.set(xlabel="head", ylabel="layer", facecolor="0.92")
    if shown.mask.any():
        axes.patch.set(hatch="/////", edgecolor="0.6", linewidth=0)
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    integer_ticks(axes, "x", heads)
    integer_ticks(axes, "y", layers)
    return fine


def _relation_title(table: xr.Dataset, relation: str) -> str:
    """Relation, count and best fixed offset; below it the reported head's held-out accuracy."""
    row = table.sel(relation=relation)
    first = relation
    if "relation_count" in row:
        first += f" · {int(row['relation_count']):,} links"
    baseline = best_offset(table, relation)
    if baseline is not None:
        first += f" · best fixed offset {signed(baseline.offset)}: {baseline.accuracy:.2f}"
    return first + _held_out({str(name): row[name] for name in row.data_vars}, "accuracy")


def _held_out(report: Mapping[str, xr.DataArray], score: str) -> str:
    """The reported head with its held-out score and the untrained model's, as a second line; nothing where there is
    no report.
    """
    if not {"reported_layer", "reported_head", f"heldout_{score}"} <= set(report) or int(report["reported_layer"]) == 0:
        return ""
    name = head_name(int(report["reported_layer"]), int(report["reported_head"]))
    attention_type, direction = (
        str(report[key].item()) if key in report else "" for key in ("reported_attention_type", "reported_direction")
    )
    where = " ".join(filter(None, (attention_type, name, direction.replace("_", " "))))
    second = f"held out: {where}: {float(report[f'heldout_{score}']):.2f}"
    if {"heldout_lower", "heldout_upper"} <= set(report):
        second += f" [{float(report['heldout_lower']):.2f}, {float(report['heldout_upper']):.2f}]"
    if f"untrained_{score}" in report and bool(report[f"untrained_{score}"].notnull()):
        second += f" · untrained model {float(report[f'untrained_{score}']):.2f}"
    return f"\n{second}"


def _accuracy(table: xr.Dataset, relation: str) -> xr.DataArray:
    """Accuracy of every head on one relation; an error that lists the relations where there is no such one."""
    if "relation_accuracy" not in table:
        raise TableError("the head table has no relation_accuracy; measure a corpus with dependencies first.")
    known = [str(name) for name in table["relation"].values]
    if relation not in known:
        raise TableError(f"the head table has no relation {relation!r}; it has {', '.join(known)}.")
    return table["relation_accuracy"].sel(relation=relation)
