"""The context ledger: the attention of heads to each part of a prompt, as means and at each written token."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.analyse.ledger import FIRST_SLOT, SELECTED, rank_readers
from headscope.heads import head_name
from headscope.view.figures.style import ABOVE, finish, make_figure, styled
from headscope.view.ledger_report import average_parts, list_content, list_parts

HEADS = 20
"""The number of heads that have a bar."""

PANELS = 3
"""The number of panels with the shares at each token: all heads together, and the two heads that read most."""

LABELLED = 40
"""The largest number of tokens at which every token has a label."""

OTHERS = ("#999999", "#E6E6E6", "#555555", "#D55E00")
"""The colours of the parts that are not documents: system text, template, question and the model's own text."""


def draw_ledger(table: xr.Dataset, tokens: pd.DataFrame) -> dict[str, Figure]:
    """Draw the figures of a ledger by name: the shares of the heads that read most, and the shares at each token.

    Args:
        table: A table of `headscope.analyse.ledger.tabulate_ledger`.
        tokens: The shares at each token (`headscope.analyse.ledger.tabulate_tokens`); the first prompt is drawn.
    """
    return {"ledger-heads": draw_heads(table), "ledger-tokens": draw_tokens(table, tokens)}


@styled
def draw_heads(table: xr.Dataset) -> Figure:
    """Draw the share of each part of the prompt in a bar for uniform attention, for all heads, and for the top heads.

    If the prompts mark the documents with the answers, the content effect with its interval is drawn next to the bars.
    Its dot is filled if the effect is not explained by the slots and the lengths of the documents.
    """
    parts, has_content = list_parts(table), "ledger_content" in table
    ranked = parts.pivot(index=["layer", "head"], columns="part", values="mass").loc[rank_readers(table)[:HEADS]]
    labels = ["uniform attention", "all heads", *(head_name(*place) for place in ranked.index)]
    rows = pd.concat([average_parts(parts)[["uniform", "mass"]].T, ranked]).set_axis(labels)
    figure, body = make_figure(7.2 if has_content else 5.2, 1.4 + 0.19 * len(rows))
    ratios = [3, 2] if has_content else [1]
    panels = body.subplots(1, len(ratios), sharey=True, squeeze=False, width_ratios=ratios)[0]
    places = np.arange(len(rows)) + (np.arange(len(rows)) > 1) * 0.5
    _draw_bars(panels[0].barh, places, rows, 0.82)
    panels[0].set_yticks(places, rows.index)
    panels[0].invert_yaxis()
    panels[0].set(xlim=(0, 1), xlabel="share of attention, documents in the given order")
    panels[0].tick_params(axis="y", length=0)
    if has_content:
        _draw_content(panels[1], list_content(table).head(HEADS), places[2:])
    handles, labels = panels[0].get_legend_handles_labels()
    body.legend(handles, labels, **ABOVE, ncols=4 if has_content else 3, fontsize=7)
    what = "of the document with the answer, beyond its place" if has_content else "of the documents"
    title = f"What heads read while the model writes: the {len(ranked)} that read most {what}"
    key = "filled dot: above 0 and above what lengths explain, q below 0.05" * has_content
    return _finish(figure, table, title, key)


def _draw_content(axes: Axes, content: pd.DataFrame, places: np.ndarray) -> None:
    """Draw the content effect of each head in `content`, with a tick at the effect that lengths alone explain."""
    for row, place in zip(content.to_dict("records"), places, strict=True):
        axes.plot([row["lower"], row["upper"]], [place, place], color="black", linewidth=0.9)
        axes.plot(
            row["content"], place, marker="o", markersize=4, color="black",
            markerfacecolor="black" if row["verdict"] == SELECTED else "white",
            gid=f"content {head_name(row['layer'], row['head'])}",
        )  # fmt: skip
        axes.plot(row["length"], place, marker="|", markersize=6, color="#D55E00")
    axes.axvline(0, color="0.8", linewidth=0.8, zorder=0)
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel="content effect (tick: by lengths)")


@styled
def draw_tokens(table: xr.Dataset, tokens: pd.DataFrame) -> Figure:
    """Draw the share of each part of the first prompt, at each token that the model writes."""
    parts, first = [str(part) for part in table["part"].values], tokens["prompt"].iloc[0]
    of_prompt = tokens[tokens["prompt"] == first]
    names = list(dict.fromkeys(of_prompt["head"]))[:PANELS]
    count = int(of_prompt["number"].max())
    figure, body = make_figure(max(4.4, 1.6 + 0.2 * count), 1.3 + 1.35 * len(names))
    panels = body.subplots(len(names), sharex=True, squeeze=False)[:, 0]
    for axes, name in zip(panels, names, strict=True):
        _draw_bars(axes.bar, range(count), of_prompt.loc[of_prompt["head"] == name, parts], 0.9)
        title = "all heads" if name == "all" else f"head {name}"
        axes.set(ylim=(0, 1), xlim=(-0.6, count - 0.4), title=title, ylabel="share")
    words = of_prompt[of_prompt["head"] == names[0]]["token"]
    step = 1 + count // LABELLED
    labels = [_shorten(str(word)) for word in words][::step]
    panels[-1].set_xticks(range(0, count, step), labels, rotation=60, ha="right", rotation_mode="anchor")
    handles, labels = panels[0].get_legend_handles_labels()
    body.legend(handles, labels, **ABOVE, ncols=4, fontsize=7)
    return _finish(figure, table, f"What is read at each token that the model writes, prompt {first}")


def _finish(figure: Figure, table: xr.Dataset, title: str, note: str = "") -> Figure:
    """Return the figure with its title, and with the number of prompts in its caption."""
    # The attribute counts prompts; in a ledger, a document is a part of a prompt.
    about = {name: value for name, value in table.attrs.items() if name != "documents"}
    prompts = f"{int(table.attrs['documents']):,} prompts"
    return finish(figure, xr.Dataset(attrs=about), title, " · ".join(filter(None, [prompts, note])))


def _draw_bars(draw: Callable[..., Any], places: range | np.ndarray, shares: pd.DataFrame, wide: float) -> None:
    """Draw a stacked bar for each row of `shares`; `draw` is `Axes.bar` or `Axes.barh`."""
    begin = np.zeros(len(shares))
    for part, colour in _choose_colours([*shares]).items():
        draw(places, shares[part], wide, begin, color=colour, label=part, linewidth=0)
        begin = begin + shares[part]


def _choose_colours(parts: list[str]) -> dict[str, object]:
    """Return the colour of each part, in the order in which the parts are stacked: documents first."""
    documents = parts[FIRST_SLOT:-3]
    system, question, template, own = parts[0], *parts[-3:]
    colours: dict[str, object] = dict(zip(documents, sns.color_palette("viridis", len(documents)), strict=True))
    return colours | dict(
        zip((question, own, system, template), (OTHERS[2], OTHERS[3], OTHERS[0], OTHERS[1]), strict=True)
    )


def _shorten(word: str) -> str:
    visible = word.strip().replace("\n", "\\n") or "·"
    return visible if len(visible) <= 10 else f"{visible[:9]}…"
