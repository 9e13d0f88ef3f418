"""The folder of runs while they are trained: its lock, its unfinished runs, and what a killed process left there."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from headscope import runs as files
from headscope.errors import HeadscopeError, first_line
from headscope.files import remove_unfinished, writable
from headscope.runs import Runs

LOCK = ".tune.lock"
"""Held by the process that writes; the system releases it when the process ends, killed or not."""

_FULL = ("Error while serializing", "inline_container")
"""Parts of the messages of safetensors and torch when they cannot write."""


def unfinished_path(folder: Path, name: str) -> Path:
    """The folder in which a run is trained."""
    return folder / f".{name}.unfinished"


def list_unfinished(folder: Path) -> list[str]:
    """The names of the folders of unfinished runs."""
    return sorted(path.name for path in folder.glob(unfinished_path(folder, "seed-*").name))


def check_folder(folder: Path, resume: bool) -> None:
    """Refuse a folder before any work is done for it.

    Raises:
        HeadscopeError: it is a file, cannot be written to, or holds runs and `resume` does not ask to go on with them.
    """
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
def lock_folder(folder: Path) -> Iterator[None]:
    """Make the folder if it is missing, and keep other processes from tuning in it.

    Raises:
        HeadscopeError: another process tunes in it, or it cannot be written to.
    """
    lock = FileLock(folder / LOCK)
    try:
        with explain_disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire(blocking=False)
    except Timeout:
        raise HeadscopeError(
            f"another `headscope tune` is running in {folder}; wait until it has ended, or name another folder."
        ) from None
    try:
        yield
    finally:
        with suppress(OSError):  # Windows removes no file that is open
            (folder / LOCK).unlink()
        lock.release()


@contextmanager
def explain_disk_errors(folder: Path, content: str = "the runs") -> Iterator[None]:
    """Turn an error of the disk, from Python or from a library, into one sentence.

    Raises:
        HeadscopeError: the disk is full, or the folder cannot be written to.
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
    if isinstance(error, OSError):
        return not isinstance(error, Timeout)
    # Weights and the optimizer's state are not written by Python: there a full disk raises no OSError.
    return not isinstance(error, HeadscopeError) and any(sign in str(error) for sign in _FULL)


def remove_leftovers(runs: Runs) -> None:
    """Remove what a killed process left of finished runs, and of their list."""
    remove_unfinished(runs.folder / files.FILE)
    for run in runs.runs:
        shutil.rmtree(unfinished_path(runs.folder, run.name), ignore_errors=True)
