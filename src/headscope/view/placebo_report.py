"""Sentences and tables on the heads that an adapter changes more than its placebos do."""

from collections.abc import Iterator

import pandas as pd
import xarray as xr

from headscope.analyse.placebos import CHANGED, FEWEST
from headscope.analyse.report import UNDECIDED
from headscope.errors import list_some
from headscope.view.wording import format_number, format_p, name_variable

MOST = 10
"""The number of changes that a page lists, the largest first."""


def describe_placebo_test(test: xr.Dataset) -> str:
    """Return a sentence that says whether an adapter changes any head more than its placebos do."""
    count, first = test.sizes["placebo"], test.isel(change=0)
    placebos = f"{count} placebo adapter{'s' * (count > 1)}"
    if first["verdict"].item() == UNDECIDED:
        return (
            f"Cannot decide whether this adapter changes any head more than placebos do: {placebos} can give no "
            f"p-value below {format_p(1 / (1 + count))}; measure {FEWEST} or more."
        )
    p, largest = format_p(first["p"].item()), f"{_name_row(first)} from {_describe_levels(first)}"
    if first["verdict"].item() != CHANGED:
        return (
            f"No head is changed more than by {placebos} (p = {p}); the largest change is that of head "
            f"{first['place'].item()}, {largest}."
        )
    heads = list(dict.fromkeys(test["place"].values[test["verdict"].values == CHANGED]))
    which = f"head {heads[0]}" if len(heads) == 1 else f"{len(heads)} heads ({list_some(heads)})"
    most = "" if len(heads) == 1 else f"most in head {heads[0]}, "
    change = "change" if count > 1 else "changes"
    return f"This adapter changes {which} more than {placebos} {change} any head (p = {p}): {most}{largest}."


def make_placebo_frame(test: xr.Dataset) -> pd.DataFrame:
    """Return a data frame of the changes of heads by an adapter, the largest first.

    Its ``attrs`` have the sentence of `describe_placebo_test` (``verdict``), the largest change by each placebo
    (``largest``), and the attributes of `test`.
    """
    frame = test.drop_dims("placebo").to_dataframe().reset_index(drop=True)
    frame.attrs = {"verdict": describe_placebo_test(test), "largest": test["largest"].values.tolist(), **test.attrs}
    return frame


def list_placebo_section(test: xr.Dataset) -> Iterator[str]:
    """Yield the lines of a section in Markdown: the verdict, the largest changes, and how they were judged."""
    yield from ("## Against placebo adapters", "", f"**{describe_placebo_test(test)}**", "")
    yield "| score | head | before | after | size | p | verdict |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | --- |"
    for place in range(min(MOST, test.sizes["change"])):
        row = test.isel(change=place)
        cells = (
            _name_row(row), row["place"].item(), *(format_number(row[name].item()) for name in ("before", "after")),
            format_number(row["size"].item(), 2), format_p(row["p"].item()), row["verdict"].item(),
        )  # fmt: skip
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    largest = test["largest"].values
    ends = f"from {format_number(largest.min(), 2)} to {format_number(largest.max(), 2)}"
    yield from ("", f"The largest changes by placebos have sizes {ends}. {test.attrs['method']}", "")


def _name_row(row: xr.Dataset) -> str:
    return f"{name_variable(row['score'].item())} {row['row'].item().replace('_', ' ')}".strip()


def _describe_levels(row: xr.Dataset) -> str:
    """Return the values before and after, with the direction in which a link was followed, if there is one."""
    direction = row["direction"].item().replace("_", " ")
    levels = f"{format_number(row['before'].item())} to {format_number(row['after'].item())}"
    return f"{levels} ({direction})" if direction else levels
