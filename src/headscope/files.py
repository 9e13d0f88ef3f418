"""Files: written completely or not at all; errors are one sentence."""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from io import BufferedReader
from pathlib import Path, PurePosixPath

from headscope.errors import HeadscopeError


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place when the block ends well.

    Whatever goes wrong, `path` is what it was before, and the temporary file is gone.

    Raises:
        HeadscopeError: the disk refuses the file.
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(suffix=path.suffix, prefix=_unfinished(path), dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        # A temporary file is made for its owner alone; a result is as open as the user's other files.
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise HeadscopeError(
            f"{path} could not be written ({error.strerror or error}); free some space or choose another place."
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_text(text: str, path: Path) -> None:
    """Write a text, whole or not at all; it raises what `atomic_write` raises."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def remove_unfinished(path: Path) -> None:
    """Remove the temporary files beside `path` that a killed process could not."""
    # The eight characters in between are those of `tempfile`; a longer name belongs to another file.
    for temporary in path.parent.glob(f"{escape(_unfinished(path))}????????{escape(path.suffix)}"):
        temporary.unlink(missing_ok=True)


def writable(path: Path) -> None:
    """Refuse a path that cannot be written, before any work is done.

    Raises:
        HeadscopeError: the path is a folder or a device, or its folder cannot be written to.
    """
    if path.is_dir():
        raise HeadscopeError(f"{path} is a folder; name a file to be written in it.")
    if path.exists() and not path.is_file():
        raise HeadscopeError(f"{path} is a device or a pipe, which a file would replace; name a file.")
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise HeadscopeError(f"{path} cannot be written, because {folder} does not allow it; choose another place.")


def sha256(path: Path) -> str:
    """The SHA-256 of a file of the user's.

    Raises:
        HeadscopeError: the system refuses to read it.
    """
    with reading(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find_by_suffix(folder: Path, path: str) -> Path | None:
    """The place of a file or folder under its path or the end of its path in a folder; None if it is not there.

    ``ud/UD_English-EWT/en_ewt-ud-dev.conllu`` is looked for under that path in the folder, under
    ``UD_English-EWT/en_ewt-ud-dev.conllu``, and as ``en_ewt-ud-dev.conllu``.
    """
    parts = PurePosixPath(path).parts
    places = (folder.joinpath(*parts[start:]) for start in range(len(parts)))
    return next((place for place in places if place.exists()), None)


@contextmanager
def reading(path: Path) -> Iterator[BufferedReader]:
    """The content of a user's file, opened for reading.

    Raises:
        HeadscopeError: the system refuses to read it.
    """
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise HeadscopeError(f"{path} cannot be read ({error.strerror or error}); check whose it is.") from error


def _unfinished(path: Path) -> str:
    """The beginning of the names of the temporary files of `path`."""
    return f".{path.stem}."


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
