"""The parts of every printed result: the findings in sentences, then a table that fits the terminal."""

import math
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from headscope.view.headings import describe_reading, name_corpus, name_model

FINDINGS = 5
"""The largest number of sentences of findings that are printed."""

OPTION = "--table"
"""The option that prints all rows and notes."""


def write(console: Console, text: str, **look: Any) -> None:
    """Print a text without highlighting, which the terminal wraps; a name such as grammar:100:7 gets no emoji."""
    console.print(text, soft_wrap=True, highlight=False, emoji=False, **look)


def mark_source(table: xr.Dataset) -> str:
    """Return the names of the model and the corpus of a table, in bold (as rich markup)."""
    model, corpus = name_model(table.attrs["model"]), name_corpus(table.attrs["corpus"])
    return f"[bold]{escape(model)}[/] on [bold]{escape(corpus)}[/]"


def print_reading(table: xr.Dataset, console: Console) -> None:
    """Print the form, the start token and the source of the texts, if the table names them."""
    if sentence := describe_reading(table.attrs):
        write(console, escape(sentence))


def print_findings(findings: Iterable[str], console: Console) -> None:
    """Print findings of at most `FINDINGS` sentences in all, the first in bold; no finding is cut."""
    shown, left = [], FINDINGS
    for finding in filter(None, findings):
        sentences = len(re.findall(r"[.?!](?:\s|$)", finding))
        if sentences <= left:
            shown.append(finding)
            left -= sentences
    if shown:
        console.print()
    for place, finding in enumerate(shown):
        console.print(escape(finding), style="" if place else "bold", highlight=False, emoji=False)


def print_more(hidden: Sequence[str], console: Console) -> None:
    """Print what the option `OPTION` shows in addition, such as ``12 more rows``; nothing if `hidden` is empty."""
    if parts := [part for part in hidden if part]:
        console.print(f"{OPTION} prints all: {', '.join(parts)}.", style="dim", highlight=False)


def make_grid(*columns: str, left: Collection[str] = (), wraps: Collection[str] = (), apart: int = 2) -> Table:
    """Return an empty table whose columns are right-aligned, except the first and those in `left`.

    Args:
        columns: The headings, the most important first: the last columns are left out if there is no room.
        left: The headings of further left-aligned columns.
        wraps: The headings of columns whose cells may take several lines. Any heading may wrap; words are not broken.
        apart: The number of blanks between two columns.
    """
    grid = Table(box=None, pad_edge=False, padding=(0, apart, 0, 0))
    for place, column in enumerate(columns):
        grid.add_column(
            column, justify="left" if not place or column in left else "right", no_wrap=column not in wraps,
            overflow="fold",
        )  # fmt: skip
    return grid


def print_grid(grid: Table, console: Console) -> None:
    """Print a table that fits the terminal without broken words; columns without room are named instead of shown."""
    options, (_, apart, *_) = console.options.update(max_width=1000), grid.padding
    least, most = [], []
    for column in grid.columns:
        heading, *cells = (Measurement.get(console, options, cell) for cell in (column.header, *column.cells))
        most.append(max(size.maximum for size in (heading, *cells)))
        least.append(max(heading.minimum, *(size.maximum if column.no_wrap else size.minimum for size in cells), 1))
    if sum(least) + apart * len(least) > console.width:
        apart, grid.padding = 1, (0, 1, 0, 0)
    left_out: list[str] = []
    while len(grid.columns) > 1 and sum(least[: len(grid.columns)]) + apart * len(grid.columns) > console.width:
        left_out.insert(0, str(grid.columns.pop().header))
    widths = least[: len(grid.columns)]
    room = console.width - sum(widths) - apart * len(widths)
    while room > 0 and (growing := [place for place, width in enumerate(widths) if width < most[place]]):
        widths[min(growing, key=widths.__getitem__)] += 1
        room -= 1
    for column, width in zip(grid.columns, widths, strict=True):
        column.width, column.no_wrap = width, False
    console.print(grid, highlight=False, emoji=False)
    if left_out:
        console.print(f"The terminal has {console.width} columns, no room for: {', '.join(filter(None, left_out))}.")


def format_range(lower: float, upper: float, *, digits: int = 3, sign: str = "+") -> str:
    """Return the ends of an interval as text; an empty string if the lower end is NaN."""
    return "" if math.isnan(lower) else f"{lower:{sign}.{digits}f} to {upper:{sign}.{digits}f}"
