"""The command `rerun`: measure a head table again by the request that it records, and compare both tables.

table --restore_request--> request --run--> table --compare--> the variables that differ
"""

import json

import numpy as np
import xarray as xr
from rich.console import Console

from headscope.commands.progress import Progress
from headscope.commands.rerun.request import Rerun
from headscope.commands.rerun.rerun_result import RerunResult
from headscope.errors import TableError
from headscope.runner.provenance import list_versions

DIFFERENT = 3
"""The exit code if a number differs; the exit code of an error is 2."""

SHOWN = 8
"""The maximum number of names of variables that are printed."""


def run(request: Rerun, progress: Progress) -> RerunResult:
    """Run the request that a table records, and compare the result with the table.

    Raises:
        TableError: The request gives no head table.
    """
    before, command = request.table, request.recorded.function
    result = request.recorded.run(progress)
    # An atlas has one table; a study has several, and each records its name.
    tables = getattr(result, "tables", {})
    after = getattr(result, "table", tables.get(before.attrs.get("measurement"), result))
    if not isinstance(after, xr.Dataset):
        raise TableError(f"{command} gives no head table that could be compared.")
    names = sorted({*map(str, before.variables), *map(str, after.variables)})
    differing = tuple(name for name in names if not _are_same(before, after, name))
    return RerunResult(after, command, len(names), differing, _compare_versions(before))


def _are_same(before: xr.Dataset, after: xr.Dataset, name: str) -> bool:
    """Return True if both tables have the variable, with equal type, dimensions and bits."""
    if name not in before.variables or name not in after.variables:
        return False
    ours, theirs = before[name].variable, after[name].variable
    if ours.dims != theirs.dims or ours.shape != theirs.shape:
        return False
    return bool(np.array_equal(ours.values, theirs.values, equal_nan=ours.dtype.kind == theirs.dtype.kind == "f"))


def _compare_versions(before: xr.Dataset) -> tuple[str, ...]:
    """Return a text for each package whose version differs from the recorded one, with both versions."""
    then, now = json.loads(before.attrs.get("versions", "{}")), list_versions()
    return tuple(f"{name} {then[name]}, now {now[name]}" for name in sorted(then) if now.get(name, "") != then[name])


def show(request: Rerun, result: RerunResult, console: Console) -> int | None:
    """Print whether all numbers are the same and, if not, the variables that differ; return the exit code."""
    if result.is_same:
        sentence = f"All {result.compared} variables of {result.command} are the same to the last bit."
    else:
        names = ", ".join(result.differing[:SHOWN])
        others = len(result.differing) - SHOWN
        rest = f" and {others} others" if others > 0 else ""
        sentence = f"{len(result.differing)} of {result.compared} variables differ: {names}{rest}."
    console.print(sentence, soft_wrap=True, markup=False, highlight=False)
    if result.versions:
        versions = "; ".join(result.versions)
        console.print(f"Other versions: {versions}.", soft_wrap=True, markup=False, highlight=False, style="yellow")
    return None if result.is_same else DIFFERENT
