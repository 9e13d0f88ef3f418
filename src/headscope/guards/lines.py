"""Lines of a text, gzipped or not: none is longer than a line can be, and they unpack to no more than a text does."""

import gzip
import zlib
from collections.abc import Iterator
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
        while True:
            number += 1
            try:
                line = lines.readline(LONGEST_LINE + 1)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise LineError(number, f"is damaged ({error})") from error
            if not line:
                return
            unpacked += len(line)
            if len(line) > LONGEST_LINE:
                raise LineError(number, f"has a line of more than {LONGEST_LINE:,} bytes")
            if zipped and is_too_much(unpacked, size):
                raise LineError(number, describe_claim(unpacked, size))
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise LineError(number, f"is no text in UTF-8 ({error})") from error
            yield number, text.removeprefix("\ufeff") if number == 1 else text


class LineError(ValueError):
    """A line that cannot be read.

    Attributes:
        number: of the line, counted from 1.
    """

    def __init__(self, number: int, fault: str) -> None:
        super().__init__(fault)
        self.number = number
