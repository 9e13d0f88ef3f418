"""Head tables from the folder of an atlas or the file of a table. No torch here."""

from pathlib import Path

import xarray as xr

from headscope.analyse.comparable import name_table
from headscope.analyse.need import check_effects
from headscope.commands.atlas.atlas_result import TABLE, refuse_incomplete
from headscope.errors import TableError
from headscope.files import check_regular, expand_home, suggest_path
from headscope.heads import read_table, require_table


def find_table(source: object) -> xr.Dataset | None:
    """Read the head table in the folder of an atlas or in a ``.nc`` file; None for anything else, such as a model.

    Raises:
        HeadscopeError: there is no such file, or it is damaged or no file at all.
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
    """Read the head table in the folder of an atlas or in a file.

    Raises:
        TableError: there is none, or it is damaged.
    """
    table = find_table(source)
    if table is None:
        raise TableError(
            f"{source} is neither the folder of an atlas nor a head table (.nc){suggest_path(str(source))}; give what "
            "`headscope atlas` or `headscope measure` wrote."
        )
    return table


def name_source(table: xr.Dataset) -> str:
    """Return the file that a table was read from, or words for a table in memory."""
    return name_table(table, "the head table")


def open_effects(effects: str | Path | xr.Dataset) -> xr.Dataset:
    """Return the effects of disabling heads.

    Args:
        effects: the folder that `headscope disable` wrote, its ``effects.nc``, or the table itself.

    Raises:
        TableError: there is no such table, it is damaged, or it does not tell which heads are needed.
    """
    table, name = _open_written(effects, "effects.nc", "effects are written by `headscope disable`")
    return check_effects(table, name or "the table of effects")


def open_probes(probes: str | Path | xr.Dataset) -> xr.Dataset:
    """Return the table of probes.

    Args:
        probes: the folder that `headscope probe` wrote, its ``probe.nc``, or the table itself.

    Raises:
        TableError: there is no such table, or it is none of probes.
    """
    table, _ = _open_written(probes, "probe.nc", "probes are written by `headscope probe`")
    require_table(table)
    if "probe_accuracy" not in table:
        raise TableError("the table given as probes has no accuracies of probes; give one of `headscope probe`.")
    return table


def _open_written(source: str | Path | xr.Dataset, file: str, advice: str) -> tuple[xr.Dataset, str]:
    """Return a table that a command wrote to its folder, and where it is; one that is given, as it is."""
    if not isinstance(source, str | Path):
        return source, ""
    path = Path(source).expanduser()
    path = path / file if path.is_dir() else path
    if not path.is_file():
        raise TableError(f"there is no file {path}{suggest_path(path)}; {advice}, into the folder -o.")
    return read_table(path), str(path)
