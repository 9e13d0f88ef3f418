"""Lines of a text, gzipped or not: limits on the length of a line and on the size of the unpacked text."""

import gzip
import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import BinaryIO, cast

from headscope.guards.formats import MEGABYTE, FileFormat, describe_claim, is_too_much, open_file

LONGEST_LINE = MEGABYTE
"""The greatest size of a line in bytes; a vector of ten thousand numbers has a fifth of it."""

_GZIP = b"\x1f\x8b"
"""The first bytes of a gzipped file."""


def read_lines(path: Path, format: FileFormat) -> Iterator[tuple[int, str]]:
    """Yield the number (from 1) and the text of each line of a UTF-8 file; a byte order mark is dropped.

    Raises:
        HeadscopeError: the path is not a file, or the system does not allow reading it.
        LineError: a line is too long or not UTF-8, the file unpacks to too much, or the file is damaged after a line.
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
    """Yield the number, counted from 1, and the bytes of each line of a file.

    Raises:
        LineError: a line has more than `longest` bytes; no more of it is read.
    """
    for number in count(1):
        line = file.readline(longest + 1)
        if len(line) > longest:
            raise LineError(number, f"has a line of more than {longest:,} bytes")
        if not line:
            return
        yield number, line


class LineError(ValueError):
    """An error: a line of a file cannot be read.

    Attributes:
        number: the number of the line, counted from 1.
    """

    def __init__(self, number: int, fault: str) -> None:
        super().__init__(fault)
        self.number = number
