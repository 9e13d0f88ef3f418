"""A head table measured again by the request that it records.

table --restore_request--> request --run--> table --compare--> the variables that differ
"""

import json

import numpy as np
import xarray as xr

from headscope.commands.progress import Progress
from headscope.commands.rerun.request import Rerun
from headscope.commands.rerun.result import RerunResult
from headscope.errors import TableError
from headscope.runner.provenance import list_versions


def run(request: Rerun, progress: Progress) -> RerunResult:
    """Run the request of a table, and compare what it gives with the table."""
    before, command = request.table, request.recorded.function
    result = request.recorded.run(progress)
    # An atlas has one table; a study has several, of which each knows its name.
    tables = getattr(result, "tables", {})
    after = getattr(result, "table", tables.get(before.attrs.get("measurement"), result))
    if not isinstance(after, xr.Dataset):
        raise TableError(f"{command} gives no head table that could be compared.")
    names = sorted({*map(str, before.variables), *map(str, after.variables)})
    differing = tuple(name for name in names if not _are_same(before, after, name))
    return RerunResult(after, command, len(names), differing, _compare_versions(before))


def _are_same(before: xr.Dataset, after: xr.Dataset, name: str) -> bool:
    """Return True if both tables have a variable, with the same type, dimensions and bits."""
    if name not in before.variables or name not in after.variables:
        return False
    ours, theirs = before[name].variable, after[name].variable
    if ours.dims != theirs.dims or ours.shape != theirs.shape:
        return False
    return bool(np.array_equal(ours.values, theirs.values, equal_nan=ours.dtype.kind == theirs.dtype.kind == "f"))


def _compare_versions(before: xr.Dataset) -> tuple[str, ...]:
    """Return the packages whose versions differ from those with which a table was measured."""
    then, now = json.loads(before.attrs.get("versions", "{}")), list_versions()
    return tuple(f"{name} {then[name]}, now {now[name]}" for name in sorted(then) if now.get(name, "") != then[name])
