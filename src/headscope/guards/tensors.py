"""Files of safetensors: the length of the header is checked before it is parsed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from headscope.errors import HeadscopeError, ModelError, first_line
from headscope.guards.formats import MEGABYTE, FileFormat, open_file

LONGEST_HEADER = 16 * MEGABYTE
"""The greatest size of a header in bytes; for a text of 100,000 tokens it has a fifth of it."""

_LENGTH = 8
"""The number of bytes at the beginning of a file that state the length of the header after them."""


@contextmanager
def open_tensors(path: Path, format: FileFormat) -> Iterator[Any]:
    """Open a file of tensors for torch, in the same way as `safetensors.safe_open`.

    Raises:
        HeadscopeError: the path is not a file, the system does not allow reading it, or its header is too long.
        ModelError: the file, or a tensor that the block takes from it, cannot be read as safetensors.
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
