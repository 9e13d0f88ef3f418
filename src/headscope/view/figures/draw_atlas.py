"""The figures of an atlas: figures by layer, and figures of each score that a table describes."""

from collections.abc import Callable
from functools import partial

import xarray as xr
from matplotlib.figure import Figure

from headscope.files import tell_apart
from headscope.score import Score, read_scores
from headscope.view.figures.draw_head_map import draw_head_map, draw_head_tree
from headscope.view.figures.draw_heatmaps import draw_score_heatmap
from headscope.view.figures.draw_layers import list_layer_figures
from headscope.view.figures.draw_lengths import draw_score_by_length
from headscope.view.figures.draw_replication import draw_replication, has_replication
from headscope.view.figures.draw_reported import draw_reported_heads
from headscope.view.figures.style import file_stem
from headscope.view.reports import read_report

Drawing = Callable[[], Figure]
"""A function without arguments that draws a figure."""


def list_figures(table: xr.Dataset) -> dict[str, tuple[str, Drawing]]:
    """Return, by title, the file name of each figure of a head table, and the function that draws it."""
    figures = list_layer_figures(table)
    if "head_map_x" in table:
        figures["Heads that attend alike"] = ("head-map", partial(draw_head_map, table))
        figures["Heads joined by how far apart their attention is"] = ("head-tree", partial(draw_head_tree, table))
    for score in read_scores(table):
        if (score.has_report or not score.is_ratio) and table[score.variable].notnull().any():
            figures |= list_score_figures(table, score)
    if has_replication(table):
        title = "Lift of the reported heads, here and on another corpus"
        figures[title] = ("replication", partial(draw_replication, table))
    # A row a:b and a row a/b would otherwise share a file.
    stems = tell_apart(file_stem(name) for name, _ in figures.values())
    return {title: (stem, draw) for (title, (_, draw)), stem in zip(figures.items(), stems, strict=True)}


def list_score_figures(table: xr.Dataset, score: Score) -> dict[str, tuple[str, Drawing]]:
    """Return, by title, the file name of each figure of a score, and the function that draws it.

    The first figure has the reported heads, the second all rows. In place of the second, a score with directions has a
    figure by length, and a figure for each row with a reported head.
    """
    name, heatmap = score.stem.replace("_", "-"), partial(draw_score_heatmap, table, score.variable)
    report = read_report(table, score)
    reported = report.rows_with_heads if report else ()
    figures: dict[str, tuple[str, Drawing]] = {}
    if reported:
        beside = partial(draw_reported_heads, table, score.variable)
        figures[f"{score.title}: reported heads and their rivals"] = (f"{name}-reported", beside)
    if "direction" not in table[score.variable].dims or not score.row_dimension(table):
        return figures | {score.title: (name, heatmap)}
    if any(row.parts for row in reported):
        by_length = partial(draw_score_by_length, table)
        figures[f"{score.title}, by {score.breakdown}"] = (f"{name}-{score.breakdown}s", by_length)
    rows = [row.name for row in reported]
    return figures | {f"{score.title}: {row}": (f"{name}-{row}", partial(heatmap, row)) for row in rows}
