"""Read and write netCDF-4 with `xarray` and `h5netcdf`, in half of the time that they need alone.

`h5netcdf` opens an array in the file again each time it looks up its size, type or attributes: forty times for each
array that is written. `_File` opens each array once.
"""

import io
import math
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np
import xarray as xr
from xarray.backends import H5NetCDFStore

from headscope.errors import TableError, list_some
from headscope.files import check_regular, reading, suggest_path
from headscope.guards.formats import describe_claim, is_too_much

_KINDS = "biufSU"
"""The numpy kinds of numbers, truth values and texts of a fixed length."""

_MOST_ARRAYS = 2000
"""The greatest number of arrays in a group. A complete atlas has a tenth as many. Each takes milliseconds."""

_BYTES_OF_A_TEXT = 64
"""The memory for a short text in an array of texts of any length, in bytes."""

_PACKED = {"scale_factor", "add_offset", "_Unsigned"}
"""Attributes of arrays whose stored numbers encode other numbers. No file of headscope has them."""

_FILLED = {"_FillValue", "missing_value"}
"""Attributes with the number that marks missing values. In files of headscope only arrays of floats may have them."""

Encoding = Mapping[Any, Mapping[str, Any]]
"""The storage settings of each variable, as in the argument ``encoding`` of `xarray.Dataset.to_netcdf`."""


class _File(h5py.File):  # type: ignore[misc]  # h5py is untyped to mypy
    """An HDF5 file that opens each object only once and keeps it, by name."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._opened: dict[str, h5py.HLObject] = {}

    def __getitem__(self, name: Any) -> h5py.HLObject:
        """Return the object with this name or reference."""
        if not isinstance(name, str):
            return super().__getitem__(name)
        opened = self._opened.get(name)
        # A deleted object has no links; a new object may have its name.
        if opened is None or not h5py.h5o.get_info(opened.id).rc:
            opened = self._opened[name] = super().__getitem__(name)
        return opened


def require_path(path: object) -> Path:
    """Convert the path of a head table to a `Path`.

    Raises:
        TableError: the argument is not a path, such as the table itself.
    """
    if not isinstance(path, str | os.PathLike):
        raise TableError(f"the path of a head table was wanted, and {type(path).__name__} came; give a path.")
    return Path(path)


def find_file(path: object) -> Path:
    """Return the file that a path names; for a folder, the only file in it with the suffix ``.nc``.

    Raises:
        TableError: the argument is not a path, or the folder has no such file or several.
    """
    file = require_path(path)
    try:
        is_folder = file.is_dir()
    except OSError:  # of a name that no file can have, which `check_file` refuses
        is_folder = False
    if not is_folder:
        return file
    names = sorted(each.name for each in file.glob("*.nc"))
    if len(names) != 1:
        raise TableError(
            f"{file} is a folder with {list_some(names) or 'no table (.nc)'} in it; name the file of a head table."
        )
    return file / names[0]


def check_file(path: Path, wanted: str) -> None:
    """Raise an error for a missing file, or for a file that is not netCDF-4.

    Args:
        path: the path of the file.
        wanted: the end of the error message, which names the command that writes such files.

    Raises:
        TableError: the file is missing or is not netCDF-4.
        HeadscopeError: the path is a device or a pipe, or the system does not allow reading it.
    """
    check_regular(path)
    if not path.is_file():
        raise TableError(f"there is no file {path}{suggest_path(path)}; {wanted}.")
    with reading(path):  # without this, HDF5 would report an unreadable file as one of another format
        pass
    if not h5py.is_hdf5(path):
        raise TableError(f"{path} is not a netCDF-4 file; {wanted}.")


def read(
    path: Path, attribute: str, check_version: Callable[[int | None], None], *, groups: Collection[str], advice: str
) -> xr.DataTree:
    """Read a netCDF-4 file into memory, after a check of its schema version and of the size that it claims.

    HDF5 allocates the memory that a file claims, and follows its links. So both are checked before anything is read.

    Args:
        path: the path of the file.
        attribute: the name of the attribute with the version of the schema.
        check_version: a function that raises an error for an unknown version. It gets None if the file states none.
        groups: the groups that the file may have.
        advice: the end of the error message for a file that claims too much.

    Raises:
        TableError: the file claims more data than it can hold.
        Exception: the file is not valid netCDF, for example its axes contradict its dimensions. HDF5, netCDF and xarray
            each raise errors of their own.
    """
    with h5py.File(path) as root:
        version = root.attrs.get(attribute)
        check_version(None if version is None else int(np.asarray(version).item()))
        size, claimed = path.stat().st_size, _add_sizes(root, groups)
    if is_too_much(claimed, size):
        raise TableError(f"{path} {describe_claim(claimed, size)}; {advice}.")
    return decode(path)


def read_texts(path: Path, names: Collection[str]) -> dict[str, str]:
    """Return the attributes of a file that are in `names` and are text."""
    with h5py.File(path) as root:
        values = {name: root.attrs[name] for name in names if name in root.attrs}
    return {name: value for name, value in values.items() if isinstance(value, str)}


def _add_sizes(group: h5py.Group, groups: Collection[str] = ()) -> int:
    """Return the size in bytes, uncompressed, of all arrays and attributes in a group and its subgroups.

    Raises:
        ValueError: the group has too many arrays, a link to another file, or a subgroup that is not in `groups`.
    """
    if len(group) > _MOST_ARRAYS:
        raise ValueError(f"it has {len(group):,} arrays")
    total = _add_attribute_sizes(group)
    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise ValueError(f"{name} is in another file")
        item = group[name]
        if isinstance(item, h5py.Dataset) and name not in groups:
            _check_array(item, name)
            width = item.dtype.itemsize if item.dtype.kind in _KINDS else _BYTES_OF_A_TEXT
            total += width * max(item.size or 0, math.prod(item.chunks or (0,))) + _add_attribute_sizes(item)
        elif isinstance(item, h5py.Group) and name in groups:
            total += _add_sizes(item)
        else:
            raise ValueError(f"{name} is no array")
    return total


def _check_array(array: h5py.Dataset, name: str) -> None:
    """Raise an error for an array that is in another file, holds unsupported values, or contradicts its dimensions."""
    if array.is_virtual or array.external:
        raise ValueError(f"{name} is in another file")
    if array.dtype.kind not in _KINDS and h5py.check_string_dtype(array.dtype) is None:
        raise ValueError(f"{name} holds neither numbers nor texts")
    if _PACKED & {*array.attrs} or (array.dtype.kind != "f" and _FILLED & {*array.attrs}):
        raise ValueError(f"{name} holds other numbers than it says")
    for axis, size in enumerate(array.shape or ()):
        if "DIMENSION_LIST" in array.attrs and any(scale.shape != (size,) for scale in array.dims[axis].values()):
            raise ValueError(f"{name} contradicts its dimensions")


def _add_attribute_sizes(item: h5py.HLObject) -> int:
    return sum(item.attrs.get_id(name).get_storage_size() for name in item.attrs)


def encode(parts: Mapping[str, xr.Dataset], encoding: Mapping[str, Encoding]) -> memoryview:
    """Return the bytes of a netCDF-4 file with a group for each dataset in `parts`.

    A group does not repeat the coordinates of the root group "/". The file is written to memory, since HDF5
    crashes when a disk is full (findings/hdf5-full-disk.sh).
    """
    content, tree = io.BytesIO(), xr.DataTree.from_dict(dict(parts))
    with _File(content, "w", track_order=True) as file, h5netcdf.File(file, "w") as opened:
        for node in tree.subtree:
            store = H5NetCDFStore(opened, group=None if node is tree else node.path, mode="a")
            node.to_dataset(inherit=node is tree).dump_to_store(store, encoding=encoding.get(node.path))
    return content.getbuffer()


def decode(path: Path) -> xr.DataTree:
    """Read a netCDF-4 file into memory without checks; axes without a name get one."""
    with _File(path) as file, h5netcdf.File(file, "r", phony_dims="sort", decode_vlen_strings=True) as opened:
        names = ["/", *(f"/{name}" for name in opened.groups)]
        parts = {name: xr.open_dataset(H5NetCDFStore(opened, group=name)).load() for name in names}
    for part in parts.values():
        part.encoding["source"] = str(path)  # as xarray sets it, for error messages
    return xr.DataTree.from_dict(parts)
