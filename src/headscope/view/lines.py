"""Lines on the terminal: sentences, tables without frames, and numbers in their cells."""

import math
from collections.abc import Collection
from typing import Any

import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headscope.view.headings import describe_reading, name_corpus, name_model


def write(console: Console, text: str, **look: Any) -> None:
    """Print a sentence, which breaks where the terminal ends; of a corpus grammar:100:7 rich would make a picture."""
    console.print(text, soft_wrap=True, highlight=False, emoji=False, **look)


def mark_source(table: xr.Dataset) -> str:
    """Return the model and the corpus of a table, in bold."""
    model, corpus = name_model(table.attrs["model"]), name_corpus(table.attrs["corpus"])
    return f"[bold]{escape(model)}[/] on [bold]{escape(corpus)}[/]"


def print_reading(table: xr.Dataset, console: Console) -> None:
    """Print the form of the texts and the start token, if the table names them."""
    if sentence := describe_reading(table.attrs):
        console.print(escape(sentence), highlight=False, emoji=False, soft_wrap=True)


def make_grid(
    *columns: str, left: Collection[str] = (), wraps: Collection[str] = (), folds: bool = False, apart: int = 2
) -> Table:
    """Return an empty table whose columns are right-aligned, except the first and those in `left`.

    Args:
        columns: their headings.
        left: the headings of further left-aligned columns.
        wraps: the headings of columns whose cells may take several lines.
        folds: whether a word that is too long is broken; otherwise it is cut.
        apart: blanks between two columns.
    """
    grid = Table(box=None, pad_edge=False, padding=(0, apart, 0, 0))
    for place, column in enumerate(columns):
        grid.add_column(
            column, justify="left" if not place or column in left else "right", no_wrap=column not in wraps,
            overflow="fold" if folds else "ellipsis",
        )  # fmt: skip
    return grid


def format_range(lower: float, upper: float, *, digits: int = 3, sign: str = "+") -> str:
    """Return the ends of an interval; empty where there are none."""
    return "" if math.isnan(lower) else f"{lower:{sign}.{digits}f} to {upper:{sign}.{digits}f}"
