"""A comparison as data frames, for CSV files."""

import pandas as pd
import xarray as xr

from headscope.heads import DIMENSIONS
from headscope.view.wording import check_comparison, list_groups


def make_frames(comparison: xr.Dataset) -> dict[str, pd.DataFrame]:
    """Return the data frames of a comparison by name: ``heads``, ``layers``, ``runs`` and ``columns``.

    A row is a head, a layer, or a run of a group. A variable with a value for each group becomes one column for each
    group; the name of the column ends in the name of the group. The frame ``columns`` gives the meaning, the unit and
    the source of each column of the other frames.
    """
    frames: dict[str, pd.DataFrame] = {}
    about = []
    means = check_comparison(comparison).assign(
        after=_mean(comparison["after"]),
        layer_before=_mean(comparison["before"].where(comparison["change"].notnull().all("group")), "head"),
        layer_change=_mean(comparison["layer_change"]),
    )
    for name, dims in {"heads": ("layer", "head"), "layers": ("layer",), "runs": ("group", "run")}.items():
        source = comparison if name == "runs" else means
        columns = _list_columns(source, *dims)
        frame = xr.Dataset(columns).to_dataframe(dim_order=list(dims)).dropna(how="all", subset=list(columns))
        frames[name] = frame.reset_index()
        for column in map(str, frames[name].columns):
            other = {"long_name": DIMENSIONS.get(column, "seed of the run")}
            attrs = columns[column].attrs if column in columns else other
            about.append((name, column, *(attrs.get(key, "") for key in ("long_name", "units", "source"))))
    return frames | {"columns": pd.DataFrame(about, columns=["table", "column", "what", "units", "source"])}


def read_means(comparison: xr.Dataset) -> dict[str, float]:
    """Return the single numbers of a comparison by column name, such as ``average_before`` and ``runs_task``."""
    return {name: float(values) for name, values in _list_columns(comparison).items()}


def _list_columns(comparison: xr.Dataset, *dims: str) -> dict[str, xr.DataArray]:
    """Return the variables that have exactly the dimensions `dims`, by column name.

    A variable that also has groups becomes one for each group; its name ends in the name of the group.
    """
    columns: dict[str, xr.DataArray] = {}
    for variable, values in comparison.data_vars.items():
        if set(values.dims) == set(dims):
            columns[str(variable)] = values
        elif set(values.dims) == {"group", *dims}:
            columns |= {f"{variable}_{group}": values.sel(group=group, drop=True) for group in list_groups(comparison)}
    return columns


def _mean(values: xr.DataArray, dim: str = "run") -> xr.DataArray:
    """Return the mean over a dimension, with a ``long_name`` that says so."""
    name = f"{values.attrs['long_name']}, mean over {dim}s"
    return values.mean(dim).assign_attrs(values.attrs | {"long_name": name})
