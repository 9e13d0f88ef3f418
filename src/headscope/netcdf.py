"""Reads and writes netCDF-4 by `xarray` and `h5netcdf`, in half of their time.

`h5netcdf` opens an array in the file again at each look at its sizes, type or attributes: forty times for one that is
written. `_File` opens it once.
"""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np
import xarray as xr
from xarray.backends import H5NetCDFStore

from headscope.errors import TableError
from headscope.files import check_regular, suggest_path

Encoding = Mapping[Any, Mapping[str, Any]]
"""How each variable is stored, as `xarray.Dataset.to_netcdf` takes it."""


class _File(h5py.File):  # type: ignore[misc]  # h5py is untyped to mypy
    """A file that keeps what it has opened by name."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._opened: dict[str, h5py.HLObject] = {}

    def __getitem__(self, name: Any) -> h5py.HLObject:
        """Return the object of this name, or of this reference."""
        if not isinstance(name, str):
            return super().__getitem__(name)
        opened = self._opened.get(name)
        # What has been deleted has no links; there may be a new object of its name.
        if opened is None or not h5py.h5o.get_info(opened.id).rc:
            opened = self._opened[name] = super().__getitem__(name)
        return opened


def check_file(path: Path, wanted: str) -> None:
    """Refuse what is no netCDF-4 file, and say what writes the file that is wanted."""
    check_regular(path)
    if not path.is_file() or not h5py.is_hdf5(path):
        fault = f"{path} is not a netCDF-4 file" if path.is_file() else f"there is no file {path}{suggest_path(path)}"
        raise TableError(f"{fault}; {wanted}.")


def read_version(root: h5py.File, attribute: str) -> int | None:
    """Return the version of the schema that a file states in an attribute; None if it states none."""
    version = root.attrs.get(attribute)
    return None if version is None else int(np.asarray(version).item())


def encode(parts: Mapping[str, xr.Dataset], encoding: Mapping[str, Encoding]) -> memoryview:
    """Return the bytes of a netCDF-4 file with a group for each part; a group leaves out the coordinates of "/".

    HDF5 crashes where a disk refuses a write (findings/hdf5-full-disk.sh), so it writes to memory.
    """
    content, tree = io.BytesIO(), xr.DataTree.from_dict(dict(parts))
    with _File(content, "w", track_order=True) as file, h5netcdf.File(file, "w") as opened:
        for node in tree.subtree:
            store = H5NetCDFStore(opened, group=None if node is tree else node.path, mode="a")
            node.to_dataset(inherit=node is tree).dump_to_store(store, encoding=encoding.get(node.path))
    return content.getbuffer()


def decode(path: Path) -> xr.DataTree:
    """Return what is in a netCDF-4 file, loaded; axes without names get some."""
    with _File(path) as file, h5netcdf.File(file, "r", phony_dims="sort", decode_vlen_strings=True) as opened:
        names = ["/", *(f"/{name}" for name in opened.groups)]
        parts = {name: xr.open_dataset(H5NetCDFStore(opened, group=name)).load() for name in names}
    for part in parts.values():
        part.encoding["source"] = str(path)  # as xarray has it, for messages
    return xr.DataTree.from_dict(parts)
