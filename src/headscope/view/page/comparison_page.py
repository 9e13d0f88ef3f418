"""The page of a comparison: head tables before and after tuning, in one grid on one scale."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import xarray as xr

from headscope.analyse.comparable import runs_of
from headscope.analyse.match import DISTANCE, match_heads
from headscope.files import atomic_write
from headscope.predictions import CONTROL, GROUP
from headscope.score import read_scores
from headscope.view.headings import name_model
from headscope.view.page.atlas_page import fill_page
from headscope.view.page.numbers import PageView


def write_comparison_page(
    before: xr.Dataset,
    after: xr.Dataset,
    control: xr.Dataset | None,
    path: str | Path,
    *,
    changes: Mapping[str, xr.Dataset] = MappingProxyType({}),
) -> Path:
    """Write a page whose grid shows the values after tuning minus the values before, or the values of each table.

    Args:
        before: A head table.
        after: A table of the same heads. For several runs, the page opens with their mean, and each run can be chosen.
        control: A table of the same heads after tuning on the task's control.
        path: The path of the page, which is written completely or not at all.
        changes: The tested differences of each variable, for a single model after tuning
            (`headscope.view.difference.compare_tables`).

    Raises:
        TableError: a table does not follow the schema of `headscope.heads`.
        HeadscopeError: the disk refuses the file.
    """
    tuned = list(_list_views("after", after))
    others = [] if control is None else list(_list_views("control", control))
    first = match_heads(tuned[0].table) if DISTANCE in after else tuned[0].table
    runs = [*runs_of(after), *({**run, GROUP: CONTROL} for run in ([] if control is None else runs_of(control)))]
    attrs = {"model": f"{name_model(str(before.attrs['model']))} after tuning, compared with the model before"}
    attrs |= {"runs": json.dumps(runs)} if runs else {}
    views = [
        PageView("after", first.assign_attrs(attrs), tuned[0].python, changes),
        PageView("before", before, _read(before, "before")),
        *tuned[1:],
        *others,
    ]
    path = Path(path)
    with atomic_write(path) as temporary:
        temporary.write_bytes(fill_page(views, against="before").encode("utf-8", errors="replace"))
    return path


def _list_views(name: str, table: xr.Dataset) -> Iterator[PageView]:
    """Yield a table as a view of the page; for a table of runs, yield the mean of the runs and then each run."""
    python = _read(table, name)
    if "run" not in table.dims:
        yield PageView(name, table, python)
        return
    # The interval of a run is about texts; the mean of several is not an interval of the mean. A head without a value
    # in one run has no mean.
    ends = [f"{score.variable}_{end}" for score in read_scores(table) for end in ("lower", "upper")]
    mean = table.drop_vars(ends, errors="ignore").mean("run", skipna=False, keep_attrs=True)
    yield PageView(name, mean, f'{python}.mean("run", skipna=False)')
    for run in table["run"].values.tolist() if table.sizes["run"] > 1 else []:
        yield PageView(f"{name}, run {run}", table.sel(run=run), f"{python}.sel(run={run!r})")


def _read(table: xr.Dataset, otherwise: str) -> str:
    """Return the Python code that reads a table from its file; for a table in memory, the name `otherwise`."""
    source = table.encoding.get("source")
    return f"headscope.read_table({str(source)!r})" if source else otherwise
