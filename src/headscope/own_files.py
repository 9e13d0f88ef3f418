"""Distinguish files that headscope wrote from files of the user, which no command overwrites."""

from pathlib import Path

from headscope.errors import HeadscopeError
from headscope.files import reading

SEAL = b"headscope sha256"
"""The mark after the last byte of a head table; the SHA-256 of all bytes before it follows. HDF5 stops at the end that
its own header states, so other programs ignore the mark, and a file that they write has none.
"""

HEAD_LIST_FORMAT = "headscope heads"
"""The field ``format`` at the beginning of a list of heads."""

MODEL_CARD_TITLE = "## Attention heads"
"""The first line of a section for a model card."""

_BEGINNINGS = (f'{{\n "format": "{HEAD_LIST_FORMAT}"'.encode(), f"{MODEL_CARD_TITLE}\n".encode())
_SUMS = '{"schema": '.encode("utf-32-le")
"""The beginning of the header in a file of sums; the header is the first array in this archive."""

_SEEN_BYTES = 1000


def refuse_foreign(path: Path, content: str | None = None) -> None:
    """Raise an error if an existing file, which a command would overwrite, was not written by headscope.

    Args:
        path: a file that may exist.
        content: the text to be written, if its format has no mark. A file with the same content passes.

    Raises:
        HeadscopeError: the file has no mark of headscope, and is not empty.
    """
    if not path.is_file() or not path.stat().st_size or _has_mark(path):
        return
    written = b"" if content is None else content.encode()
    with reading(path) as file:
        if written and file.read(len(written) + 1) == written:
            return
    raise describe_foreign(path, "name another file, or remove this one")


def describe_foreign(path: Path, advice: str) -> HeadscopeError:
    """Return the error about a file that headscope did not write and would overwrite; `advice` ends its message."""
    return HeadscopeError(
        f"{path} is there already, is not known to be written by headscope, and would be overwritten; {advice}."
    )


def _has_mark(path: Path) -> bool:
    with reading(path) as file:
        beginning = file.read(_SEEN_BYTES)
        file.seek(max(0, path.stat().st_size - _SEEN_BYTES))
        is_sealed = SEAL in file.read()
    return is_sealed or beginning.startswith(_BEGINNINGS) or _SUMS in beginning
