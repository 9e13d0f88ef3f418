"""A head table as data frames, which are written to the CSV files."""

import json
from collections.abc import Iterator, Mapping

import pandas as pd
import xarray as xr

from headscope.analyse.rank import PLACE
from headscope.analyse.report import at_reported
from headscope.errors import TableError, suggest
from headscope.first_guesses import explained
from headscope.heads import DIMENSIONS, require_table
from headscope.score import HEAD, Score, read_scores
from headscope.view.glosses import gloss_row
from headscope.view.reports import row_key

_LEFT_OUT = {"fold", "permutation", "run"}

_OF_MODEL = {"layer_other", "head_other", "layer_before", "head_before"}
"""The dimensions of a second head, to which the first is compared."""


def make_frames(table: xr.Dataset) -> dict[str, pd.DataFrame]:
    """Return the data frames that are written to CSV files, by name.

    ``heads`` has a row for each head, if variables other than scores were measured. ``distances`` has a row for each
    head and bucket of distance; any other dimension of heads has such a frame too. The frames of a score begin with its
    stem: one with a row for each row of the score (``relation``), for each head and row (``relation-heads``), for each
    fixed offset (``relation-offsets``), and for each part of a breakdown, with the reported heads
    (``relation-lengths``). The last frame, ``columns``, gives the meaning, the unit and the source of each column of
    the others.
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


@explained
def to_frame(table: xr.Dataset, name: str | None = None) -> pd.DataFrame:
    """Return values of a head table as a tidy data frame: for each head, or for each head and row of a score.

    >>> table = headscope.measure("minilm", "grammar:60", ["surface", "relations"])
    >>> heads = headscope.to_frame(table)  # a row for each head
    >>> relations = headscope.to_frame(table, "relations")  # a row for each head and relation
    >>> entropy = headscope.to_frame(table, "entropy")  # a variable

    Args:
        table: A head table of any reducers.
        name: The plural of a score's rows, such as ``relations``, for all values of each head and relation, with the
            count and the plain name of the relation; a frame of `make_frames`, such as ``relation``, with the reported
            heads; or a variable, such as ``entropy``. By default, there is one row for each head. Its columns are the
            variables with one value for each head, each label of a variable with one further dimension
            (``mass_distance:4``), and each row of a score, with the larger value of two directions (``relation:obj``).
            Averages by part of the text, distances to other heads, and sums have no column there; pass their name.

    Raises:
        TableError: the table has nothing of that name.
    """
    require_table(table)
    if name is None:
        return _frame_heads(table)
    if name in table.variables and name not in table.dims:
        if not table[name].dims:
            return pd.DataFrame({name: [table[name].item()]})
        frame = _make_frame(table, [name])
        return frame.dropna(subset=name, ignore_index=True)
    frames = make_frames(table)
    scores = read_scores(table)
    by_rows = {score.rows: score for score in scores if f"{_stem(score)}-heads" in frames}
    alone = {score.rows for score in scores if score.has_report and not score.row_dimension(table)}
    if name in frames:
        return frames[name]
    if name == "heads" or name in alone:
        return _frame_heads(table)
    if name in by_rows:
        return _describe_rows(frames[f"{_stem(by_rows[name])}-heads"], table, by_rows[name])
    known = [*by_rows, *alone, *frames]
    raise TableError(
        f"the table has nothing of the name {name!r}{suggest(str(name), [*known, *map(str, table.data_vars)])}; there "
        f"are {', '.join(known)}, and its variables."
    )


def _stem(score: Score) -> str:
    """Return the prefix of the names of a score's frames."""
    return score.stem.replace("_", "-")


def _frame_heads(table: xr.Dataset) -> pd.DataFrame:
    """Return a data frame with a row for each head; in a table of runs, for each head of each run."""
    place = {dim for dim in (*PLACE, "run") if dim in table.dims}
    scores = {score.variable: score for score in read_scores(table)}
    rows = {score.row_dimension(table) for score in scores.values()}
    columns: dict[str, xr.DataArray] = {}
    for name, values in ((str(name), values) for name, values in table.data_vars.items()):
        further = {*map(str, values.dims)} - place
        if not {"layer", "head"} <= {*values.dims}:
            continue
        if not further:
            columns[name] = values
        elif name in scores and further <= {*rows, "direction"}:
            larger = values.max("direction") if "direction" in further else values
            for where in scores[name].places(table):
                columns[row_key(scores[name], where)] = larger.sel(where, drop=True)
        elif len(further) == 1 and not further & {*rows, *_LEFT_OUT, *_OF_MODEL, "direction"}:
            (dim,) = further
            columns |= {f"{name}:{label}": values.sel({dim: label}, drop=True) for label in table[dim].values.tolist()}
    if columns:
        return _frame(xr.Dataset(columns), list(columns))
    dims = [dim for dim in (*PLACE, "run") if dim in place]
    return pd.MultiIndex.from_product([table[dim].values for dim in dims], names=dims).to_frame(index=False)


def _describe_rows(frame: pd.DataFrame, table: xr.Dataset, score: Score) -> pd.DataFrame:
    """Add the count and the plain name of each row of a score to the data frame of its heads."""
    row, count = score.row_dimension(table), f"{score.stem}_count"
    ways = frame["direction"] if "direction" in frame else [""] * len(frame)
    names = {
        (label, way): gloss_row(row_key(score, {row: label}), way, score.label.format(label)).title
        for label, way in {*zip(frame[row], ways, strict=True)}
    }
    described = frame.assign(**{f"{row}_name": [names[each] for each in zip(frame[row], ways, strict=True)]})
    if count in table and count not in frame and table[count].dims and {*table[count].dims} <= {*frame.columns}:
        described = described.join(table[count].to_series(), on=[*map(str, table[count].dims)])
    first = [column for column in (row, f"{row}_name", count) if column in described]
    place = [column for column in frame.columns if column in HEAD]
    return described[[*place, *first, *(each for each in described.columns if each not in {*place, *first})]]


def _score_frames(table: xr.Dataset, score: Score) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the name and the data frame of each frame of a score."""
    name, row = _stem(score), score.row_dimension(table)
    dims = {row} if row else set()
    own = _list_own(table, score)
    if about := [variable for variable in own if set(table.variables[variable].dims) == dims]:
        yield name, _make_frame(table, about) if row else pd.DataFrame([
            {variable: table[variable].item() for variable in about}
        ])  # fmt: skip
    if row and (by_head := [variable for variable in _select(table, dims) if variable in own]):
        yield f"{name}-heads", _frame(table, by_head)
    if offsets := [variable for variable in own if set(table.variables[variable].dims) == dims | {"offset"}]:
        yield f"{name}-offsets", _make_frame(table, offsets)
    values, count = f"{score.breakdown}_{score.measure}", f"{score.breakdown}_count"
    layer = f"{score.report_prefix}reported_layer"
    if {values, count, layer} <= {*table.data_vars}:
        heads = [head for dim in HEAD if (head := f"{score.report_prefix}reported_{dim}") in table]
        parts = table[[count, *heads]].assign({values: at_reported(table, values, score.report_prefix)})
        parts = parts.sel({row: parts[layer] > 0}) if row else parts
        yield f"{name}-{score.breakdown}s", _make_frame(parts, [count, values, *heads])


def _list_own(table: xr.Dataset, score: Score) -> list[str]:
    """Return the variables for the frames of a score, without the variables of other scores with the same rows."""
    prefixes = {other.stem: (f"{other.stem}_", other.report_prefix or "_") for other in read_scores(table)}
    names = [name for name in map(str, table.variables) if name not in table.dims]
    row = score.row_dimension(table)
    sharing = {other.stem for other in read_scores(table) if other.row_dimension(table) == row} - {score.stem}
    if row and (not sharing or not score.report_prefix):
        others = tuple(prefix for stem in sharing for prefix in prefixes[stem])
        return [name for name in names if not name.startswith(others)]
    return [name for name in names if name.startswith(prefixes[score.stem])]


def _select(table: xr.Dataset, dims: set[str]) -> list[str]:
    """Return the variables of heads with the further dimensions `dims`, and with directions unless `dims` is empty."""
    return [
        str(name)
        for name, values in table.variables.items()
        if name not in table.coords
        and {"layer", "head"} | dims <= set(values.dims) <= {*HEAD} | dims
        and ("direction" in values.dims) <= ("direction" in dims or bool(dims))
    ]


def _make_frame(table: xr.Dataset, names: list[str]) -> pd.DataFrame:
    """Return variables (numbers or labels) as columns, after the columns of their dimensions."""
    return table[names].reset_coords()[names].to_dataframe().reset_index()


def _frame(table: xr.Dataset, names: list[str]) -> pd.DataFrame:
    frame = _make_frame(table, names).dropna(how="all", subset=names, ignore_index=True)
    for name in names:
        if "names" in table.variables[name].attrs:
            frame[name] = frame[name].map(dict(enumerate(json.loads(table.variables[name].attrs["names"]))))
    return frame


def _columns(frames: Mapping[str, pd.DataFrame], table: xr.Dataset) -> pd.DataFrame:
    """Return the meaning of each column of each frame: a variable, or a dimension of the head table."""
    rows = []
    for name, frame in frames.items():
        for column in map(str, frame.columns):
            about = {"long_name": DIMENSIONS[column]} if column in DIMENSIONS else table.variables[column].attrs
            rows.append((name, column, *(about.get(key, "") for key in ("long_name", "units", "source"))))
    return pd.DataFrame(rows, columns=["table", "column", "what", "units", "source"])
