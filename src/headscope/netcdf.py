"""Reads and writes netCDF-4 by `xarray` and `h5netcdf`, in half of their time.

`h5netcdf` opens an array in the file again at each look at its sizes, type or attributes: forty times for one that is
written. `_File` opens it once.
"""

import io
import math
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np
import xarray as xr
from xarray.backends import H5NetCDFStore

from headscope.errors import TableError
from headscope.files import check_regular, reading, suggest_path
from headscope.guards.formats import describe_claim, is_too_much

_KINDS = "biufSU"
"""The kinds of values that are numbers, truth values or texts of a fixed length."""

_MOST_ARRAYS = 2000
"""In a group: an atlas with everything has a tenth of it, and each takes milliseconds to read."""

_BYTES_OF_A_TEXT = 64
"""Memory that a text takes, a short one, in an array whose texts are of any length."""

_PACKED = {"scale_factor", "add_offset", "_Unsigned"}
"""Attributes of arrays whose numbers stand for others; no file of ours has them."""

_FILLED = {"_FillValue", "missing_value"}
"""Attributes of arrays with a number for missing ones; only those of ours that are no whole numbers may have them."""

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
    """Refuse what is no netCDF-4 file, and say what writes the file that is wanted.

    Raises:
        TableError: it is none.
        HeadscopeError: it is a device or a pipe, or the system refuses to read it.
    """
    check_regular(path)
    if not path.is_file():
        raise TableError(f"there is no file {path}{suggest_path(path)}; {wanted}.")
    with reading(path):  # HDF5 would say of a file that may not be read that it is none of its own
        pass
    if not h5py.is_hdf5(path):
        raise TableError(f"{path} is not a netCDF-4 file; {wanted}.")


def read(
    path: Path, attribute: str, check_version: Callable[[int | None], None], *, groups: Collection[str], advice: str
) -> xr.DataTree:
    """Return what is in a file, loaded.

    HDF5 makes room for what a file asks for, and follows its links, so all of that is looked at before it is read.

    Args:
        path: of the file.
        attribute: that states the version of its schema.
        check_version: raises an error for a version that is not read; None where the file states none.
        groups: that it may have within.
        advice: the end of the sentence on one that claims too much.

    Raises:
        TableError: it claims more than it can hold.
        Exception: something in it is not as netCDF has it, such as axes that contradict its dimensions; HDF5, netCDF
            and xarray each have errors of their own.
    """
    with h5py.File(path) as root:
        version = root.attrs.get(attribute)
        check_version(None if version is None else int(np.asarray(version).item()))
        size, claimed = path.stat().st_size, _add_sizes(root, groups)
    if is_too_much(claimed, size):
        raise TableError(f"{path} {describe_claim(claimed, size)}; {advice}.")
    return decode(path)


def read_texts(path: Path, names: Collection[str]) -> dict[str, str]:
    """Return the attributes of a file among these that are text, by name."""
    with h5py.File(path) as root:
        values = {name: root.attrs[name] for name in names if name in root.attrs}
    return {name: value for name, value in values.items() if isinstance(value, str)}


def _add_sizes(group: h5py.Group, groups: Collection[str] = ()) -> int:
    """The bytes of all arrays and attributes in a group and the groups within, unpacked."""
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
    """Refuse an array that is in another file, holds neither numbers nor texts, or contradicts its dimensions."""
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
