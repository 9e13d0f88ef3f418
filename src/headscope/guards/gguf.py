"""GGUF files: what their header counts must be in them, since its reader goes on behind the end of a file."""

import mmap
import struct
from pathlib import Path
from typing import Any

from headscope.errors import ModelError
from headscope.guards.formats import GGUF, MEGABYTE, open_file

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a number, by the number of its type."""

_STRING, _ARRAY = 8, 9
_DEEPEST = 3
"""Arrays within arrays; no known key has any."""

_MOST_AXES = 8
_MOST_KEYS = 10_000
_LONGEST = 48 * MEGABYTE
"""Bytes of a header: that of a vocabulary of 262,144 tokens has 20 million."""


def check_gguf(path: Path) -> None:
    """Refuse a file that is not as long as its header says.

    Raises:
        ModelError: it is damaged or incomplete.
        HeadscopeError: it is no file, or the system refuses to read it.
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
    """Return the `gguf.GGUFReader` of a file, which raises errors of its own; before it, what `check_gguf` raises."""
    from gguf import GGUFReader  # not above: only for GGUF files is it needed

    check_gguf(path)
    return GGUFReader(path)


class _Header:
    """The header of a file, and how far it is read."""

    def __init__(self, content: mmap.mmap) -> None:
        self.content, self.place, self.order = content, 8, "<"
        (version,) = struct.unpack_from("<I", content, 4)
        if version & 0xFFFF == 0:  # written by a machine that has the largest byte first
            self.order = ">"

    def check(self) -> None:
        """Read it to its end."""
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
