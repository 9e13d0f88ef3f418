"""The context ledger: what heads read from each part of a prompt, and what is read at each token that is written."""

import numpy as np
import pandas as pd
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.analyse.ledger import FIRST_SLOT, find_selected, rank_readers
from headscope.heads import head_name
from headscope.view.figures.style import ABOVE, finish, make_figure, styled

HEADS = 20
"""Heads that have a bar."""

PANELS = 3
"""Panels of the shares of each token: all heads together, and the two that read most."""

LABELLED = 40
"""Tokens up to which each has its label."""

OTHERS = ("#999999", "#E6E6E6", "#555555", "#D55E00")
"""The colours of what is no document: the system text, the template, the question and the model's own text."""


def draw_ledger(table: xr.Dataset, tokens: pd.DataFrame) -> dict[str, Figure]:
    """The figures of a ledger by name: the shares of the heads that read most, and those of each token of a prompt.

    Args:
        table: of `headscope.analyse.ledger.tabulate_ledger`.
        tokens: the shares of each token, of `headscope.analyse.ledger.tabulate_tokens`; those of the first prompt are
            shown.
    """
    return {"ledger-heads": draw_heads(table), "ledger-tokens": draw_tokens(table, tokens)}


@styled
def draw_heads(table: xr.Dataset) -> Figure:
    """The share of each part, a bar for each of the heads that read most, above them uniform attention.

    Beside them stands the content effect with its interval, if it is known which documents hold the answers. A dot is
    filled if the head reads them beyond their place and their length.
    """
    parts, ranked = [str(part) for part in table["part"].values], rank_readers(table)[:HEADS]
    rows = {"uniform attention": table["ledger_mass_uniform"].values}
    rows["all heads"] = table["ledger_mass"].mean(["layer", "head"]).values
    masses = table["ledger_mass"]
    rows |= {head_name(layer, head): masses.sel(layer=layer, head=head).values for layer, head in ranked}
    has_content = "ledger_content" in table
    figure, body = make_figure(7.2 if has_content else 5.2, 1.4 + 0.19 * len(rows))
    ratios = [3, 2] if has_content else [1]
    panels = body.subplots(1, len(ratios), sharey=True, squeeze=False, width_ratios=ratios)[0]
    places = np.arange(len(rows)) + (np.arange(len(rows)) > 1) * 0.5
    left = np.zeros(len(rows))
    for part, colour in _choose_colours(parts).items():
        widths = np.array([values[parts.index(part)] for values in rows.values()])
        panels[0].barh(places, widths, left=left, color=colour, height=0.82, label=part, linewidth=0)
        left += widths
    panels[0].set_yticks(places, [*rows])
    panels[0].invert_yaxis()
    panels[0].set(xlim=(0, 1), xlabel="share of attention, documents in the given order")
    panels[0].tick_params(axis="y", length=0)
    if has_content:
        _draw_content(panels[1], table, ranked, places[-len(ranked) :])
    handles, labels = panels[0].get_legend_handles_labels()
    body.legend(handles, labels, **ABOVE, ncols=4 if has_content else 3, fontsize=7)
    what = "of the document with the answer, beyond its place" if has_content else "of the documents"
    title = f"What heads read while the model writes: the {len(ranked)} that read most {what}"
    key = "filled dot: above 0 and above what lengths explain, q below 0.05" * has_content
    return _finish(figure, table, title, key)


def _draw_content(axes: Axes, table: xr.Dataset, ranked: list[tuple[int, int]], places: np.ndarray) -> None:
    """The content effects of some heads, and a tick where lengths alone would have them."""
    selected = find_selected(table)
    for (layer, head), place in zip(ranked, places, strict=True):
        of_head = table.sel(layer=layer, head=head)
        ends = [float(of_head[f"ledger_content_{end}"]) for end in ("lower", "upper")]
        filled = bool(selected.sel(layer=layer, head=head))
        axes.plot(ends, [place, place], color="black", linewidth=0.9)
        axes.plot(
            float(of_head["ledger_content"]), place, marker="o", markersize=4, color="black",
            markerfacecolor="black" if filled else "white", gid=f"content {head_name(layer, head)}",
        )  # fmt: skip
        axes.plot(float(of_head["ledger_content_length"]), place, marker="|", markersize=6, color="#D55E00")
    axes.axvline(0, color="0.8", linewidth=0.8, zorder=0)
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel="content effect (tick: by lengths)")


@styled
def draw_tokens(table: xr.Dataset, tokens: pd.DataFrame) -> Figure:
    """The share of each part at the prediction of each token of the model's own text, for the first prompt."""
    parts, first = [str(part) for part in table["part"].values], tokens["prompt"].iloc[0]
    of_prompt = tokens[tokens["prompt"] == first]
    names = list(dict.fromkeys(of_prompt["head"]))[:PANELS]
    count = int(of_prompt["number"].max())
    figure, body = make_figure(max(4.4, 1.6 + 0.2 * count), 1.3 + 1.35 * len(names))
    panels = body.subplots(len(names), sharex=True, squeeze=False)[:, 0]
    for axes, name in zip(panels, names, strict=True):
        _draw_panel(axes, of_prompt[of_prompt["head"] == name], parts)
        axes.set(title="all heads" if name == "all" else f"head {name}", ylabel="share")
    words = of_prompt[of_prompt["head"] == names[0]]["token"]
    step = 1 + count // LABELLED
    labels = [_shorten(str(word)) for word in words][::step]
    panels[-1].set_xticks(range(0, count, step), labels, rotation=60, ha="right", rotation_mode="anchor")
    handles, labels = panels[0].get_legend_handles_labels()
    body.legend(handles, labels, **ABOVE, ncols=4, fontsize=7)
    return _finish(figure, table, f"What is read at each token that the model writes, prompt {first}")


def _finish(figure: Figure, table: xr.Dataset, title: str, note: str = "") -> Figure:
    """A figure with its title and where it came from, with the number of prompts."""
    # A document is a part of a prompt here.
    about = {name: value for name, value in table.attrs.items() if name != "documents"}
    prompts = f"{int(table.attrs['documents']):,} prompts"
    return finish(figure, xr.Dataset(attrs=about), title, " · ".join(filter(None, [prompts, note])))


def _draw_panel(axes: Axes, frame: pd.DataFrame, parts: list[str]) -> None:
    """The shares of one head as bars, one above the other."""
    below = np.zeros(len(frame))
    for part, colour in _choose_colours(parts).items():
        heights = frame[part].to_numpy(dtype=float)
        axes.bar(range(len(frame)), heights, bottom=below, color=colour, width=0.9, label=part, linewidth=0)
        below += heights
    axes.set(ylim=(0, 1), xlim=(-0.6, len(frame) - 0.4))


def _choose_colours(parts: list[str]) -> dict[str, object]:
    """The colour of each part, in the order in which they are stacked: documents first."""
    documents = parts[FIRST_SLOT:-3]
    system, question, template, own = parts[0], *parts[-3:]
    colours: dict[str, object] = dict(zip(documents, sns.color_palette("viridis", len(documents)), strict=True))
    return colours | dict(
        zip((question, own, system, template), (OTHERS[2], OTHERS[3], OTHERS[0], OTHERS[1]), strict=True)
    )


def _shorten(word: str) -> str:
    visible = word.strip().replace("\n", "\\n") or "·"
    return visible if len(visible) <= 10 else f"{visible[:9]}…"
