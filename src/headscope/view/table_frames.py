"""A head table as data frames: what the CSV files hold."""

import json
from collections.abc import Iterator, Mapping

import pandas as pd
import xarray as xr

from headscope.analyse.report import at_reported
from headscope.errors import TableError
from headscope.heads import DIMENSIONS
from headscope.score import HEAD, Score, read_scores

_LEFT_OUT = {"fold", "permutation", "run"}


def make_frames(table: xr.Dataset) -> dict[str, pd.DataFrame]:
    """The data frames by name, which are those of the CSV files.

    ``heads`` has a row for each head, where more than scores was measured, and ``distances`` one for each head and
    bucket of distance; so has any other dimension of heads. For each score there is, named by its stem, a frame with a
    row for each of its rows (``relation``), for each head and row (``relation-heads``), for each fixed offset
    (``relation-offsets``), and for each part of a breakdown, with the reported heads (``relation-lengths``). The last,
    ``columns``, says what each column of the others is, in which unit, and which source defines it.
    """
    by_head, scores = _select(table, set()), read_scores(table)
    frames = {"heads": _frame(table, by_head)} if by_head else {}
    rows = {score.row_dimension(table) for score in scores}
    inner = {dim for score in scores if (dim := score.breakdown)} | {"offset", "regressor", "regressor_other"}
    for dim in map(str, table.dims):
        names = _select(table, {dim})
        if names and not {dim} & (rows | inner | _LEFT_OUT | {*HEAD}):
            frames[f"{dim.replace('_', '-')}s"] = _frame(table, names)
    for score in scores:
        frames |= {name: frame for name, frame in _score_frames(table, score) if name not in frames}
    return frames | {"columns": _columns(frames, table)}


def to_frame(table: xr.Dataset, name: str) -> pd.DataFrame:
    """A part of a head table as a tidy data frame: a row for each head and row that has a value.

    Args:
        table: a head table.
        name: what a score has a row for, such as ``relations``: all that is known of each head and relation; a frame of
            `make_frames`, such as ``relation``, with the reported heads; or a variable, such as ``entropy``.

    Raises:
        TableError: there is nothing of that name.
    """
    if name in table.data_vars:
        frame = table[name].to_dataframe().reset_index()
        return frame.dropna(subset=name, ignore_index=True)
    frames = make_frames(table)
    scores = {score.rows: f"{score.stem.replace('_', '-')}-heads" for score in read_scores(table)}
    chosen = name if name in frames else scores.get(name, name)
    if chosen not in frames:
        rows = [rows for rows, frame in scores.items() if frame in frames]
        raise TableError(
            f"the table has nothing of the name {name!r}; there are {', '.join([*rows, *frames])}, and its variables."
        )
    return frames[chosen]


def _score_frames(table: xr.Dataset, score: Score) -> Iterator[tuple[str, pd.DataFrame]]:
    """The frames of a score."""
    name, row = score.stem.replace("_", "-"), score.row_dimension(table)
    dims = {row} if row else set()
    own = _list_own(table, score)
    if about := [variable for variable in own if set(table.variables[variable].dims) == dims]:
        yield name, table[about].to_dataframe().reset_index() if row else pd.DataFrame([
            {variable: table[variable].item() for variable in about}
        ])  # fmt: skip
    if row and (by_head := [variable for variable in _select(table, dims) if variable in own]):
        yield f"{name}-heads", _frame(table, by_head)
    if offsets := [variable for variable in own if set(table.variables[variable].dims) == dims | {"offset"}]:
        yield f"{name}-offsets", table[offsets].to_dataframe().reset_index()
    values, count = f"{score.breakdown}_{score.measure}", f"{score.breakdown}_count"
    layer = f"{score.report_prefix}reported_layer"
    if {values, count, layer} <= {*table.data_vars}:
        heads = [head for dim in HEAD if (head := f"{score.report_prefix}reported_{dim}") in table]
        parts = table[[count, *heads]].assign({values: at_reported(table, values, score.report_prefix)})
        parts = parts.sel({row: parts[layer] > 0}) if row else parts
        yield f"{name}-{score.breakdown}s", parts[[count, values, *heads]].to_dataframe().reset_index()


def _list_own(table: xr.Dataset, score: Score) -> list[str]:
    """The variables that the frames of a score can hold: of its rows, where it has any, and no other score's."""
    prefixes = {other.stem: (f"{other.stem}_", other.report_prefix or "_") for other in read_scores(table)}
    row = score.row_dimension(table)
    sharing = {other.stem for other in read_scores(table) if other.row_dimension(table) == row} - {score.stem}
    if row and (not sharing or not score.report_prefix):
        others = tuple(prefix for stem in sharing for prefix in prefixes[stem])
        return [name for name in map(str, table.data_vars) if not name.startswith(others)]
    return [name for name in map(str, table.data_vars) if name.startswith(prefixes[score.stem])]


def _select(table: xr.Dataset, dims: set[str]) -> list[str]:
    """The variables of each head along some other dimensions, in one direction or both."""
    return [
        str(name)
        for name, values in table.variables.items()
        if name not in table.coords
        and {"layer", "head"} | dims <= set(values.dims) <= {*HEAD} | dims
        and ("direction" in values.dims) <= ("direction" in dims or bool(dims))
    ]


def _frame(table: xr.Dataset, names: list[str]) -> pd.DataFrame:
    frame = table[names].to_dataframe().dropna(how="all", subset=names).reset_index()
    for name in names:
        if "names" in table.variables[name].attrs:
            frame[name] = frame[name].map(dict(enumerate(json.loads(table.variables[name].attrs["names"]))))
    return frame


def _columns(frames: Mapping[str, pd.DataFrame], table: xr.Dataset) -> pd.DataFrame:
    """The meaning of each column of each table: a variable, or a dimension of the head table."""
    rows = []
    for name, frame in frames.items():
        for column in map(str, frame.columns):
            about = {"long_name": DIMENSIONS[column]} if column in DIMENSIONS else table.variables[column].attrs
            rows.append((name, column, *(about.get(key, "") for key in ("long_name", "units", "source"))))
    return pd.DataFrame(rows, columns=["table", "column", "what", "units", "source"])
