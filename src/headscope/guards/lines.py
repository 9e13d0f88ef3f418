"""Lines of a text, gzipped or not: none is longer than a line can be, and they unpack to no more than a text does."""

import gzip
import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import BinaryIO, cast

from headscope.guards.formats import MEGABYTE, FileFormat, describe_claim, is_too_much, open_file

LONGEST_LINE = MEGABYTE
"""Bytes of a line: a vector of ten thousand numbers has a fifth."""

_GZIP = b"\x1f\x8b"
"""The first bytes of a gzipped file."""


def read_lines(path: Path, format: FileFormat) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text in UTF-8 with their numbers, counted from 1; without a byte order mark.

    Raises:
        HeadscopeError: it is no file, or the system refuses to read it.
        LineError: what is wrong with a line, or with the file behind it.
    """
    with open_file(path, format) as file:
        size, unpacked, number = path.stat().st_size, 0, 0
        zipped = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        lines = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if zipped else file
        try:
            for number, line in split_lines(lines, LONGEST_LINE):
                unpacked += len(line)
                if zipped and is_too_much(unpacked, size):
                    raise LineError(number, describe_claim(unpacked, size))
                text = line.decode("utf-8")
                yield number, text.removeprefix("\ufeff") if number == 1 else text
        except UnicodeDecodeError as error:
            raise LineError(number, f"is no text in UTF-8 ({error})") from error
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise LineError(number + 1, f"is damaged ({error})") from error


def split_lines(file: BinaryIO, longest: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers, counted from 1.

    Raises:
        LineError: one of them has more than `longest` bytes, of which no more are read.
    """
    for number in count(1):
        line = file.readline(longest + 1)
        if len(line) > longest:
            raise LineError(number, f"has a line of more than {longest:,} bytes")
        if not line:
            return
        yield number, line


class LineError(ValueError):
    """A line that cannot be read.

    Attributes:
        number: of the line, counted from 1.
    """

    def __init__(self, number: int, fault: str) -> None:
        super().__init__(fault)
        self.number = number
