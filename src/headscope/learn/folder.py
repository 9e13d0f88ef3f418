"""The folder of runs while they are made: who may write in it, and what a kill left there."""

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
"""Held by the process that writes; the system lets go of it when the process ends, however it does."""

_FULL = ("Error while serializing", "inline_container")
"""What safetensors and torch say when they cannot write."""


def making(folder: Path, name: str) -> Path:
    """The folder in which a run is made."""
    return folder / f".{name}.unfinished"


def unfinished(folder: Path) -> list[str]:
    """The names of the folders of runs in the making."""
    return sorted(path.name for path in folder.glob(making(folder, "seed-*").name))


def check_folder(folder: Path, resume: bool) -> None:
    """Refuse a folder before any work is done for it.

    Raises:
        HeadscopeError: it is a file, cannot be written to, or holds runs and `resume` does not ask to go on with them.
    """
    if folder.exists() and not folder.is_dir():
        raise HeadscopeError(f"{folder} is a file; name a folder for the runs, or a place where one can be made.")
    writable(folder / files.FILE)
    if resume:
        return
    listed = [run.name for run in files.read(folder, empty=True).runs] if (folder / files.FILE).is_file() else []
    if there := [*listed, *unfinished(folder)]:
        raise HeadscopeError(
            f"{folder} holds runs ({', '.join(there)}); add --resume to go on with them, or name another folder."
        )


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Nobody else tunes in the folder meanwhile; it is made if it is not there.

    Raises:
        HeadscopeError: somebody does, or the disk refuses.
    """
    lock = FileLock(folder / LOCK)
    try:
        with written(folder):
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire(blocking=False)
    except Timeout:
        raise HeadscopeError(
            f"another `headscope tune` is at work in {folder}; wait until it has ended, or name another folder."
        ) from None
    try:
        yield
    finally:
        with suppress(OSError):  # Windows removes no file that is open
            (folder / LOCK).unlink()
        lock.release()


@contextmanager
def written(folder: Path, what: str = "the runs") -> Iterator[None]:
    """What is written meanwhile is refused in one sentence if the disk refuses it.

    Raises:
        HeadscopeError: the disk is full, or the folder cannot be written to.
    """
    try:
        yield
    except Exception as error:
        if not _of_disk(error):
            raise
        reason = (isinstance(error, OSError) and error.strerror) or first_line(error)
        raise HeadscopeError(
            f"{what} could not be written to {folder} ({reason}); free some space and add --resume to go on."
        ) from error


def _of_disk(error: Exception) -> bool:
    if isinstance(error, OSError):
        return not isinstance(error, Timeout)
    # Weights and the optimizer's state are not written by Python: there a full disk is no OSError.
    return not isinstance(error, HeadscopeError) and any(sign in str(error) for sign in _FULL)


def clear(runs: Runs) -> None:
    """Remove what a kill left of finished runs, and of their list."""
    remove_unfinished(runs.folder / files.FILE)
    for run in runs.runs:
        shutil.rmtree(making(runs.folder, run.name), ignore_errors=True)
