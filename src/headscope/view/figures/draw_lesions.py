"""The lesion map: the harm to each kind of example when a set of heads is disabled."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.analyse.lesions import SUFFERS
from headscope.analyse.metrics import read_metrics
from headscope.view.figures.style import DIVERGING, NotebookFigure, add_colour_bar, centre, finish, styled
from headscope.view.lesions_report import describe_random_sets, list_lesions

LEVELS = ("phenomenon", "paradigm")
"""The levels of minimal pairs that have a map."""


def draw_lesions(table: xr.Dataset) -> dict[str, Figure]:
    """Draw the lesion maps of each metric by name: for phenomena and paradigms or, without these, for all examples."""
    names, figures = [str(name) for name in table["subset"].values], {}
    levels = [level for level in LEVELS if any(name.startswith(f"{level} ") for name in names)] or [""]
    for metric in read_metrics(table):
        if metric["better"]:
            for level in levels:
                figures["-".join(filter(None, ("lesions", level, metric["name"])))] = draw_lesion_map(
                    table, metric, level
                )
    return figures


@styled
def draw_lesion_map(table: xr.Dataset, metric: Mapping[str, Any], level: str = "phenomenon") -> Figure:
    """Draw the change of a metric without each set of heads, minus the change without random sets, for each subset.

    The subsets are the phenomena or paradigms (`level`), each in a row.

    Red is worse. A dot marks a subset that suffers: its change is worse than the changes of all random sets.
    """
    frame = list_lesions(table)
    at_level = frame["subset"].str.partition(" ")[0] == level if level else frame["subset"] == frame["subset"].iloc[0]
    frame = frame[(frame["metric"] == metric["name"]) & at_level]
    names, parts = [str(name) for name in table["set"].values], list(dict.fromkeys(frame["subset"]))
    excess, verdict = (
        frame.pivot(index="subset", columns="set", values=column).loc[parts, names] for column in ("excess", "verdict")
    )
    scale = centre(excess)
    colours = DIVERGING.removesuffix("_r") if metric["better"] > 0 else DIVERGING
    figure = NotebookFigure(figsize=(4.2 + 0.42 * len(names), 1.9 + 0.2 * len(parts)))
    axes = figure.subplots()
    axes.pcolormesh(
        np.arange(len(names) + 1) - 0.5, np.arange(len(parts) + 1) - 0.5, excess, cmap=colours, norm=scale,
        edgecolors="white", linewidth=0.6,
    )  # fmt: skip
    down, across = np.nonzero(verdict.to_numpy() == SUFFERS)
    axes.plot(across, down, linestyle="none", marker="o", markersize=3.5, color="black", clip_on=False)
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(parts)), [_label(part, frame) for part in parts])
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    add_colour_bar(figure, axes, scale, colours, f"beyond random sets ({metric['units']})")
    title = f"Heads disabled together: change of the {metric['title']} beyond random heads"
    result = "dot: worse than all of these (p at most .05 for the table)" if len(down) else "none is surely worse"
    return finish(figure, table, title, f"compared with {describe_random_sets(table)}; {result}")


def _label(part: str, frame: pd.DataFrame) -> str:
    """Return the name of a subset without its level, with the metric of the whole model on it."""
    whole = float(frame.loc[frame["subset"] == part, "whole"].iloc[0])
    return f"{(part.partition(' ')[2] or part).replace('_', ' ')} ({whole:.2f})"
