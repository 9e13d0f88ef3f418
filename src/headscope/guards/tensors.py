"""Files of safetensors: their header, before it is parsed."""

from pathlib import Path

from headscope.errors import HeadscopeError
from headscope.guards.formats import MEGABYTE, FileFormat, open_file

LONGEST_HEADER = 16 * MEGABYTE
"""Bytes of a header: that of a text of 100,000 tokens has a fifth."""

_LENGTH = 8
"""Bytes at the beginning of a file, which say how long the header behind them is."""


def check_header(path: Path, format: FileFormat) -> None:
    """Refuse a file that is no regular one, or whose header is longer than it can be.

    Raises:
        HeadscopeError: it is no file, the system refuses to read it, or its header is too long.
    """
    with open_file(path, format) as file:
        length = int.from_bytes(file.read(_LENGTH), "little")
        size = path.stat().st_size
    if length > min(size, LONGEST_HEADER):
        raise HeadscopeError(
            f"the header of {path} claims to have {length:,} bytes, and the file has {size:,}, of which "
            f"{LONGEST_HEADER:,} at most are a header; save it again."
        )
