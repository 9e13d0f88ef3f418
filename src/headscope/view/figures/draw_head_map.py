"""The map of the heads of a model, and the tree of their clusters: Clark et al. 2019, section 6."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from headscope.analyse.behaviour import name_behaviours
from headscope.errors import TableError
from headscope.heads import head_name
from headscope.view.figures import style

MARKS = tuple(zip(
    ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C564B"),
    ("o", "s", "^", "D", "v", "P", "X", "*"), strict=True,
))  # fmt: skip
"""A colour (of Okabe and Ito, and a brown) and a marker for each behaviour, the most frequent first."""

UNKNOWN = "0.75"
"""The colour of heads without a behaviour."""

MOST_LEAVES = 150
"""The largest number of leaves of a tree. In a larger model, heads that are joined first share a leaf."""


@style.styled
def draw_head_map(table: xr.Dataset) -> Figure:
    """Draw each head of a model as a point; heads that attend alike are close (Clark et al. 2019, figure 6).

    On the left, colours show the behaviour of the heads; on the right, their layer.

    Args:
        table: A head table with ``head_map_x``, ``head_map_y`` and ``behaviour`` (`headscope.analyse.add_head_map` and
            `headscope.analyse.add_behaviours`).

    Raises:
        TableError: the table has no map.
    """
    _require(table, "head_map_x")
    types = style.list_attention_types(table)
    figure, body = style.make_figure(9.6, 0.9 + 4.2 * len(types))
    grid = body.subplots(len(types), 2, squeeze=False)
    scale = Normalize(1, table.sizes["layer"])
    counts = Counter(name_behaviours(table).values.ravel().tolist())
    marks = dict(zip((name for name, _ in counts.most_common() if name), MARKS, strict=False))
    for (left, right), attention_type in zip(grid, types, strict=True):
        heads = _list_heads(table, attention_type)
        _draw_behaviours(left, heads, marks)
        points = np.array([place for _, place, _ in heads])
        layers = [layer for (layer, _), _, _ in heads]
        look: dict[str, Any] = {"norm": scale, "cmap": style.COLOURS, "s": 22, "linewidths": 0}
        right.scatter(points[:, 0], points[:, 1], c=layers, **look, gid="heads by layer")
        for axes in (left, right):
            axes.set_aspect("equal", adjustable="datalim")
            axes.set_title(attention_type, fontsize="small")
            axes.set(xlabel="nats", ylabel="nats")
    style.add_colour_bar(body, grid, scale, style.COLOURS, "layer", aspect=24 * len(types))
    body.legend(*grid[0, 0].get_legend_handles_labels(), **style.ABOVE, ncols=4, fontsize="small")
    title = "Heads that attend alike lie near one another: by what they do, and by layer"
    return style.finish(figure, table, title, _describe(table))


@style.styled
def draw_head_tree(table: xr.Dataset) -> Figure:
    """Draw the tree that joins the heads of a model by average linkage, heads that attend alike first.

    Args:
        table: A head table with ``cluster_merge`` (`headscope.analyse.add_head_map`); the colours show its clusters.

    Raises:
        TableError: the table has no clusters.
    """
    _require(table, "cluster_merge")
    types = style.list_attention_types(table)
    leaves = [min(len(_list_heads(table, attention_type)), MOST_LEAVES) for attention_type in types]
    figure = style.NotebookFigure(figsize=(6.4, 0.9 + 0.115 * sum(leaves) + 0.4 * len(types)))
    grid = figure.subplots(len(types), 1, squeeze=False, height_ratios=leaves)
    for axes, attention_type in zip(grid[:, 0], types, strict=True):
        _draw_tree(axes, table, attention_type)
        axes.set_title(attention_type, fontsize="small")
    title = "Heads joined by how far apart their attention is (average linkage)"
    return style.finish(figure, table, title, _describe(table))


Head = tuple[tuple[int, int], np.ndarray, str]
"""The layer and number of a head, its coordinates in the map, and its behaviour."""


def _list_heads(table: xr.Dataset, attention_type: str) -> list[Head]:
    """Return the heads of an attention type that have coordinates in its map, layer by layer."""
    chosen = table.sel(attention_type=attention_type) if attention_type else table
    sides = [chosen[name].transpose("layer", "head").values for name in ("head_map_x", "head_map_y")]
    places = np.stack(sides, axis=-1)
    behaviours = name_behaviours(chosen).transpose("layer", "head").values if "behaviour" in chosen else None
    return [
        ((layer + 1, head + 1), places[layer, head], "" if behaviours is None else str(behaviours[layer, head]))
        for layer, head in np.ndindex(*places.shape[:2])
        if not np.isnan(places[layer, head]).any()
    ]


def _draw_behaviours(axes: Axes, heads: Sequence[Head], marks: dict[str, tuple[str, str]]) -> None:
    """Draw heads as points in the colour and with the marker of their behaviour, with their names."""
    for behaviour in ("", *marks):
        members = [head for head in heads if (head[2] if head[2] in marks else "") == behaviour]
        if not members:
            continue
        colour, marker = marks.get(behaviour, (UNKNOWN, "o"))
        label = behaviour or "none of these"
        points = np.array([place for _, place, _ in members])
        look: dict[str, Any] = {"color": colour, "marker": marker, "s": 22, "linewidths": 0}
        axes.scatter(points[:, 0], points[:, 1], label=label, gid=f"heads: {label}", **look)
        for (layer, head), place, _ in members if behaviour else ():
            name = head_name(layer, head)
            axes.annotate(name, (place[0], place[1]), (3, 2), textcoords="offset points", fontsize=5, color=colour)


def _draw_tree(axes: Axes, table: xr.Dataset, attention_type: str) -> None:
    """Draw the tree of an attention type, with the leaves (heads) at the left and the last merge at the right."""
    chosen = table.sel(attention_type=attention_type) if attention_type else table
    heads = [place for place, _, _ in _list_heads(table, attention_type)]
    merges = chosen["cluster_merge"].dropna("step").transpose("step", "merge").values
    clusters = [int(chosen["cluster"].sel(layer=layer, head=head)) for layer, head in heads]
    shorten = {"truncate_mode": "lastp", "p": MOST_LEAVES} if len(heads) > MOST_LEAVES else {}
    tree = scipy.cluster.hierarchy.dendrogram(
        merges, labels=[head_name(*head) for head in heads], no_plot=True, **shorten
    )
    lines = [np.stack(line, axis=-1) for line in zip(tree["dcoord"], tree["icoord"], strict=True)]
    axes.add_collection(LineCollection(lines, colors="0.45", linewidths=0.8, gid="tree"))
    ticks = 5 + 10 * np.arange(len(tree["ivl"]))
    axes.set_yticks(ticks, tree["ivl"], fontsize=5)
    for label, leaf in zip(axes.get_yticklabels(), tree["leaves"], strict=True):
        if leaf < len(heads):
            label.set_color(MARKS[(clusters[leaf] - 1) % len(MARKS)][0])
    axes.set_xlim(0, 1.03 * max(map(max, tree["dcoord"])))
    axes.set_ylim(0, 10 * len(ticks))
    axes.set_xlabel("mean Jensen-Shannon divergence (nats)")


def _describe(table: xr.Dataset) -> str:
    """Return a note with the number of documents, the stress of the map, and the quality of the clusters."""
    numbers = {
        "stress {:.2f}": "head_map_stress", "silhouette of the clusters {:.2f}": "cluster_silhouette",
        "their agreement over halves of the corpus {:.2f}": "cluster_stability",
    }  # fmt: skip
    parts = [
        text.format(values) for text, name in numbers.items()
        for values in np.atleast_1d(table[name].values) if not np.isnan(values)
    ]  # fmt: skip
    documents = int(np.max(table["head_map_documents"].values))
    return ", ".join([f"heads compared on {documents:,} of them", *parts])


def _require(table: xr.Dataset, name: str) -> None:
    if name not in table:
        raise TableError(f"the head table has no {name}; add it by headscope.analyse.add_head_map first.")
