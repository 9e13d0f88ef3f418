"""The folder of runs during training: unfinished runs, and leftovers of killed commands."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headscope import runs as files
from headscope.errors import HeadscopeError, first_line
from headscope.files import check_regular, remove_unfinished, writable
from headscope.runs import Runs

_FULL = ("Error while serializing", "inline_container")
"""Parts of the messages of safetensors and torch for a disk that cannot be written."""


def unfinished_path(folder: Path, name: str) -> Path:
    """Return the hidden folder in which a run is trained."""
    return folder / f".{name}.unfinished"


def list_unfinished(folder: Path) -> list[str]:
    """Return the names of the hidden folders in which unfinished runs are trained."""
    return sorted(path.name for path in folder.glob(unfinished_path(folder, "seed-*").name))


def check_folder(folder: Path, resume: bool) -> None:
    """Raise an error if a path is a file, cannot be written, or holds runs although `resume` is not set."""
    check_regular(folder)
    if folder.exists() and not folder.is_dir():
        raise HeadscopeError(f"{folder} is a file; name a folder for the runs, which may be a new one.")
    writable(folder / files.FILE)
    if resume:
        return
    listed = [run.name for run in files.read(folder, empty=True).runs] if (folder / files.FILE).is_file() else []
    if names := [*listed, *list_unfinished(folder)]:
        raise HeadscopeError(
            f"{folder} holds runs ({', '.join(names)}); add --resume to go on with them, or name another folder."
        )


@contextmanager
def explain_disk_errors(folder: Path, content: str) -> Iterator[None]:
    """In the block, turn an error of the disk into one sentence; `content` names what is written.

    The errors of Python and of the libraries that write weights are recognised; other errors are raised unchanged.

    Raises:
        HeadscopeError: The disk is full, or the folder cannot be written to.
    """
    try:
        yield
    except Exception as error:
        if not _is_disk_error(error):
            raise
        reason = (isinstance(error, OSError) and error.strerror) or first_line(error)
        raise HeadscopeError(
            f"{content} could not be written to {folder} ({reason}); free some space and add --resume to go on."
        ) from error


def _is_disk_error(error: Exception) -> bool:
    # Other libraries write weights and the optimizer's state; on a full disk they do not raise an OSError.
    full = not isinstance(error, HeadscopeError) and any(sign in str(error) for sign in _FULL)
    return isinstance(error, OSError) or full


def remove_leftovers(runs: Runs) -> None:
    """Remove what a killed command left: unfinished folders of finished runs, and a temporary list of runs."""
    remove_unfinished(runs.folder / files.FILE)
    for run in runs.runs:
        shutil.rmtree(unfinished_path(runs.folder, run.name), ignore_errors=True)
