"""GGUF files: checks that a file has its whole header, since the reader of `gguf` continues after the end of a file."""

import mmap
import struct
from pathlib import Path
from typing import Any

from headscope.errors import ModelError
from headscope.guards.formats import GGUF, MEGABYTE, open_file

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""The size of a number in bytes, by the code of its type."""

_STRING, _ARRAY = 8, 9
_DEEPEST = 3
"""The greatest depth of nested arrays; no known key has nested arrays."""

_MOST_AXES = 8
_MOST_KEYS = 10_000
_LONGEST = 48 * MEGABYTE
"""The greatest size of a header in bytes; for a vocabulary of 262,144 tokens it has 20 million."""


def check_gguf(path: Path) -> None:
    """Raise an error for a file that ends before its header does, or whose header is invalid.

    Raises:
        ModelError: the file is damaged or incomplete.
        HeadscopeError: the path is not a file, or the system does not allow reading it.
    """
    with open_file(path, GGUF) as file:
        try:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                _Header(content).check()
        except (ValueError, struct.error) as error:
            raise ModelError(
                f"the GGUF file {str(path)!r} is damaged or incomplete ({error}); download it again."
            ) from error


def open_gguf(path: Path) -> Any:
    """Return the `gguf.GGUFReader` of a file after `check_gguf`; the reader raises errors of its own."""
    from gguf import GGUFReader  # imported here because only GGUF files need it

    check_gguf(path)
    return GGUFReader(path)


class _Header:
    """The header of a file, and the position up to which it is read."""

    def __init__(self, content: mmap.mmap) -> None:
        self.content, self.place, self.order = content, 8, "<"
        (version,) = struct.unpack_from("<I", content, 4)
        if version & 0xFFFF == 0:  # written by a machine that stores the largest byte first
            self.order = ">"

    def check(self) -> None:
        """Raise an error if the header is invalid, or does not end within the file."""
        tensors, keys = self._read("Q"), self._read("Q")
        if keys > _MOST_KEYS:
            raise ValueError(f"it has {keys:,} keys")
        for _ in range(keys):
            self._skip_text()
            self._skip_value(self._read("I"))
        for _ in range(tensors):
            self._skip_text()
            axes = self._read("I")
            if axes > _MOST_AXES:
                raise ValueError(f"a tensor has {axes:,} axes")
            self._skip(8 * axes + 4 + 8)

    def _read(self, kind: str) -> int:
        number: int
        (number,) = struct.unpack_from(f"{self.order}{kind}", self.content, self.place)
        self.place += struct.calcsize(f"{self.order}{kind}")
        return number

    def _skip(self, size: int) -> None:
        self.place += size
        if self.place > len(self.content):
            raise ValueError("its header ends after the end of the file")
        if self.place > _LONGEST:
            raise ValueError(f"its header is longer than {_LONGEST:,} bytes")

    def _skip_text(self) -> None:
        self._skip(self._read("Q"))

    def _skip_value(self, kind: int, depth: int = 0) -> None:
        if kind in _SIZES:
            self._skip(_SIZES[kind])
        elif kind == _STRING:
            self._skip_text()
        elif kind == _ARRAY and depth < _DEEPEST:
            inner, count = self._read("I"), self._read("Q")
            if inner in _SIZES:
                self._skip(_SIZES[inner] * count)
            else:
                for _ in range(count):
                    self._skip_value(inner, depth + 1)
        else:
            raise ValueError(f"a key has a value of the type {kind}")
