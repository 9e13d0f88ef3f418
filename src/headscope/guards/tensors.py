"""Files of safetensors: their header is looked at before it is parsed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from headscope.errors import HeadscopeError, ModelError, first_line
from headscope.guards.formats import MEGABYTE, FileFormat, open_file

LONGEST_HEADER = 16 * MEGABYTE
"""Bytes of a header: that of a text of 100,000 tokens has a fifth."""

_LENGTH = 8
"""Bytes at the beginning of a file, which say how long the header behind them is."""


@contextmanager
def open_tensors(path: Path, format: FileFormat) -> Iterator[Any]:
    """Open a file of tensors for torch, as `safetensors.safe_open` does.

    Raises:
        HeadscopeError: it is no file, the system refuses to read it, or its header is too long.
        ModelError: it cannot be read as safetensors, or in the block something is taken that cannot.
    """
    with open_file(path, format) as file:
        length = int.from_bytes(file.read(_LENGTH), "little")
        size = path.stat().st_size
    if length > min(size, LONGEST_HEADER):
        raise HeadscopeError(
            f"the header of {path} claims to have {length:,} bytes, and the file has {size:,}, of which "
            f"{LONGEST_HEADER:,} at most are a header; save it again."
        )
    try:
        with safe_open(path, framework="pt") as tensors:
            yield tensors
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path} cannot be read as safetensors ({first_line(error)}); save it again.") from error
