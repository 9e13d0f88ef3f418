"""Sets of heads: the two scores by which they were chosen, and the loss of the model without them."""

from collections.abc import Collection, Mapping
from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from headscope.corpora.text import format_count
from headscope.view.figures.intervals import lay_out_rows
from headscope.view.figures.style import ABOVE, finish, make_figure, styled
from headscope.view.headings import name_corpus
from headscope.view.lesions_report import list_lesions

COLOURS = ("#0072B2", "#D55E00", "#009E73")
"""The colours of the first set, of the second set, and of heads in both (of Okabe and Ito)."""

RANDOM: Mapping[str, dict[str, Any]] = {
    "as many random heads": {"color": "0.3", "marker": "o", "markerfacecolor": "white"},
    "as many random heads in each layer": {"color": "0.3", "marker": "s", "markerfacecolor": "white"},
}
"""The label and the look of the marks for each kind of random sets, in the order of the tables of `draw_drops`."""


@styled
def draw_two_scores(
    table: xr.Dataset,
    across: Mapping[str, float],
    up: Mapping[str, float],
    sets: Mapping[str, Collection[str]],
    *,
    title: str,
    labels: tuple[str, str],
) -> Figure:
    """Draw a dot for each head: one score is its horizontal position, the other its height; the colour is its set.

    Args:
        table: The table that the scores come from.
        across: The first score of each head, by name.
        up: The second score of each head, by name.
        sets: The names of the heads of two sets, by the name of the set.
        title: The title of the figure.
        labels: The labels of the two axes.
    """
    (first, heads), (second, others) = ((name, {*of_set}) for name, of_set in sets.items())
    groups = {
        "neither": {*across} - heads - others,
        first: heads - others,
        second: others - heads,
        "both": heads & others,
    }
    figure, body = make_figure(5.6, 4.6)
    axes = body.subplots()
    for (group, names), colour in zip(groups.items(), ("0.75", *COLOURS), strict=True):
        shown = sorted(names & {*across} & {*up})
        axes.plot(
            [across[head] for head in shown], [up[head] for head in shown], linestyle="none", marker="o",
            markersize=4.5, color=colour, label=f"{group} ({len(names)})", gid=group,
        )  # fmt: skip
    axes.set(xlabel=labels[0], ylabel=labels[1], xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    body.legend(**ABOVE, ncols=4, fontsize="small", columnspacing=1.2, handletextpad=0.2)
    return finish(figure, table, title)


@styled
def draw_drops(lesions: Mapping[str, tuple[xr.Dataset, xr.Dataset]]) -> Figure:
    """Draw the drop of the accuracy when each set of heads is disabled, next to the mean drop for random sets.

    The line through the dot of a set is the interval of its drop, clustered by text. The line through the mark of the
    random sets spans 95 % of them.

    Args:
        lesions: Two tables by the title of their panel. The random sets of the first have the same number of heads; the
            random sets of the second have the same number of heads in each layer.
    """
    first = next(iter(lesions.values()))[0]
    names = [str(name) for name in first["set"].values]
    figure, body = make_figure(7.2, 1.6 + 0.42 * len(names))
    panels = body.subplots(1, len(lesions), sharey=True, squeeze=False)[0]
    for axes, (title, tables) in zip(panels, lesions.items(), strict=True):
        _draw_panel(axes, names, tables)
        whole = 100 * float(tables[0]["whole_accuracy"].isel(subset=0))
        axes.set(title=f"{title} (whole model: {whole:.1f} %)", xlabel="drop of the accuracy in points")
    sizes = [int(first["set_member"].sel(set=name).sum()) for name in names]
    labels = [f"{name} ({format_count(size, 'head')})" for name, size in zip(names, sizes, strict=True)]
    lay_out_rows(panels[0], labels)
    handles = [Line2D([], [], color=COLOURS[0], marker="o", label="the set")]
    handles += [Line2D([], [], label=label, **look) for label, look in RANDOM.items()]
    body.legend(handles=handles, **ABOVE, ncols=3)
    examples = [
        f"{int(table['examples'].isel(subset=0)):,} {table.attrs['content']} ({name_corpus(table.attrs['corpus'])})"
        for table, _ in lesions.values()
    ]
    note = " · ".join([*examples, f"{int(first.attrs['random_sets'])} random sets of each kind or more"])
    model = xr.Dataset(attrs={"model": first.attrs["model"]})
    return finish(figure, model, "What the model loses without sets of heads, and without random heads", note)


def _draw_panel(axes: Axes, names: list[str], tables: tuple[xr.Dataset, xr.Dataset]) -> None:
    of_metric = (list_lesions(table).query("metric == 'accuracy'") for table in tables)
    frames = [frame.drop_duplicates("set").set_index("set") for frame in of_metric]
    for row, name in enumerate(names):
        own = -100 * frames[0].loc[name, ["change", "lower", "upper"]]
        axes.plot(own[["upper", "lower"]], [row - 0.2] * 2, color=COLOURS[0], linewidth=1.6)
        axes.plot(own["change"], row - 0.2, "o", color=COLOURS[0], gid=f"drop {name}")
        for place, (frame, look) in enumerate(zip(frames, RANDOM.values(), strict=True)):
            of_set, height = frame.loc[name], row + 0.2 * place
            mean, half = -100 * of_set["random"], 50 * (of_set["excess_upper"] - of_set["excess_lower"])
            axes.plot([mean - half, mean + half], [height] * 2, color=look["color"], linewidth=0.9)
            axes.plot(mean, height, linestyle="none", **look, gid=f"random {place} {name}")
    axes.axvline(0, color="0.8", linewidth=0.8, zorder=0)
    axes.grid(axis="x", color="0.92", linewidth=0.8)
