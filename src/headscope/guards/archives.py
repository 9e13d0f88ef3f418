"""Arrays of `numpy.save` and `numpy.savez`: headers are read before memory is allocated for any array."""

import math
import zipfile
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as numpy_format

from headscope.guards.formats import FileFormat, describe_claim, is_too_much, open_file

_SUFFIX = ".npy"
_PLAIN = "biufcUS"
"""The numpy kinds of numbers, truth values and texts."""


def load_arrays(path: Path, format: FileFormat, *, packed: bool = True) -> dict[str, np.ndarray]:
    """Return all arrays of a file by their names.

    Args:
        path: the path of the archive.
        format: the format of the file.
        packed: whether the file may be compressed.

    Raises:
        HeadscopeError: the path is not a file, or the system does not allow reading it.
        ValueError: the file is not an archive of plain arrays, is damaged, or claims to hold more than it can.
    """
    with open_file(path, format) as file:
        size = path.stat().st_size
        try:
            _check_archive(file, size, format, packed)
            file.seek(0)
            with np.load(file, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        except OSError:
            raise
        # NumPy's parser of headers, the zip file and its compression each raise errors of their own.
        except Exception as error:
            raise ValueError(str(error) or type(error).__name__) from error


def map_array(path: Path, format: FileFormat) -> np.ndarray:
    """Return the array of a file as a memory map, which reads only the values that are used.

    Raises:
        HeadscopeError: the path is not a file, or the system does not allow reading it.
        ValueError: the file holds no plain array, or its size differs from its header.
    """
    with open_file(path, format) as file:
        try:
            shape, by_columns, kind = _read_header(file, path.name, path.stat().st_size)
            return np.memmap(file, kind, "r", file.tell(), shape, "F" if by_columns else "C")
        except OSError:
            raise
        except Exception as error:  # NumPy's parser of headers raises errors of its own
            raise ValueError(str(error) or type(error).__name__) from error


def _check_archive(file: BinaryIO, size: int, format: FileFormat, packed: bool) -> None:
    """Raise an error for an archive that unpacks to too much, or whose arrays differ in size from their headers."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        claimed = sum(member.file_size for member in members)
        if is_too_much(claimed, size) if packed else claimed > size:
            raise ValueError(f"it {describe_claim(claimed, size)}")
        if format.most_unpacked is not None and claimed > format.most_unpacked:
            most = f"{format.most_unpacked / 1e9:,.1f}"
            raise ValueError(f"it unpacks to {claimed / 1e9:,.1f} GB, and {format.title} to {most} at most")
        names = [member.filename for member in members]
        if len({*names}) < len(names):
            raise ValueError("it has an array twice")
        for member in members:
            if not member.filename.endswith(_SUFFIX):
                raise ValueError(f"{member.filename} is no array")
            with archive.open(member) as opened:
                _read_header(opened, member.filename, member.file_size)


def _read_header(opened: IO[bytes], name: str, size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return an array's shape, whether it is stored by columns, and its type; raise an error for a wrong size."""
    version = numpy_format.read_magic(opened)
    read_header = {1: numpy_format.read_array_header_1_0, 2: numpy_format.read_array_header_2_0}[version[0]]
    shape, by_columns, kind = read_header(opened)
    if kind.kind not in _PLAIN or not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"{name} holds values of the type {kind}")
    if opened.tell() + math.prod(shape) * kind.itemsize != size:
        raise ValueError(f"{name} has not as many values as it says")
    return shape, by_columns, kind
