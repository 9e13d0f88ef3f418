"""Head tables, read from the folder of an atlas or from a file. This module needs no torch."""

from pathlib import Path

import xarray as xr

from headscope.analyse.comparable import name_table
from headscope.analyse.need import check_effects
from headscope.commands.atlas.atlas_result import TABLE, refuse_incomplete
from headscope.errors import TableError
from headscope.files import check_regular, expand_home, suggest_path
from headscope.heads import read_table, require_table


def find_table(source: object) -> xr.Dataset | None:
    """Read the head table in an atlas folder or in a ``.nc`` file; return None for anything else, such as a model.

    Raises:
        HeadscopeError: The ``.nc`` file is missing or damaged, or the atlas is not complete.
    """
    if isinstance(source, xr.Dataset):
        return source
    if not isinstance(source, str | Path):
        return None
    path = expand_home(source)
    check_regular(path)
    if path.is_dir():
        refuse_incomplete(path)
    if path.is_dir() and (path / TABLE).is_file():
        return read_table(path / TABLE)
    return read_table(path) if path.suffix == ".nc" else None


def open_table(source: str | Path | xr.Dataset) -> xr.Dataset:
    """Read the head table in the folder of an atlas or in a ``.nc`` file.

    Raises:
        TableError: There is no table, or it is damaged.
    """
    table = find_table(source)
    if table is None:
        raise TableError(
            f"{source} is neither the folder of an atlas nor a head table (.nc){suggest_path(str(source))}; give what "
            "`headscope atlas` or `headscope measure` wrote."
        )
    return table


def name_source(table: xr.Dataset) -> str:
    """Return the file from which a table was read, or the words "the head table" for a table in memory."""
    return name_table(table, "the head table")


def open_effects(effects: str | Path | xr.Dataset) -> xr.Dataset:
    """Read a table of the effects of disabling heads.

    Args:
        effects: The folder that `headscope disable` wrote, its ``effects.nc``, or the table itself.

    Raises:
        TableError: The table is missing or damaged, or does not say which heads are needed.
    """
    table, name = _open_written(effects, "effects.nc", "effects are written by `headscope disable`")
    return check_effects(table, name or "the table of effects")


def open_probes(probes: str | Path | xr.Dataset) -> xr.Dataset:
    """Read a table of probes.

    Args:
        probes: The folder that `headscope probe` wrote, its ``probe.nc``, or the table itself.

    Raises:
        TableError: The table is missing or damaged, or is not a table of probes.
    """
    table, _ = _open_written(probes, "probe.nc", "probes are written by `headscope probe`")
    require_table(table)
    if "probe_accuracy" not in table:
        raise TableError("the table given as probes has no accuracies of probes; give one of `headscope probe`.")
    return table


def _open_written(source: str | Path | xr.Dataset, file: str, advice: str) -> tuple[xr.Dataset, str]:
    """Read a table that a command wrote to its folder; a table in memory is returned unchanged.

    Returns:
        The table, and its path (empty for a table in memory).
    """
    if not isinstance(source, str | Path):
        return source, ""
    path = Path(source).expanduser()
    path = path / file if path.is_dir() else path
    if not path.is_file():
        raise TableError(f"there is no file {path}{suggest_path(path)}; {advice}, into the folder -o.")
    return read_table(path), str(path)
