"""A file of the web in the user's cache: downloaded once, whole or not at all, and compared each time it is used.

The SHA-256 of a file is in a file next to it, which ``sha256sum -c`` reads. Unless it is known beforehand, it is the
SHA-256 of the first download: the first version is trusted, and a different one raises an error later.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import cast
from urllib.error import HTTPError
from urllib.request import urlopen

from headscope.errors import CorpusError, HeadscopeError
from headscope.files import atomic_write, lock, reading, remove_unfinished, sha256, write_text

TIMEOUT = 30
"""The time that a server may take to answer, in seconds."""

_BLOCK = 1 << 16
_GONE = (404, 410)

Progress = Callable[[str, int, int], None]
_progress: ContextVar[Progress] = ContextVar("progress", default=lambda step, done, total: None)


class MissingFileError(HeadscopeError):
    """An error: the server does not have the file."""


@contextmanager
def show_downloads(progress: Progress) -> Iterator[None]:
    """Report each download in the block: call `progress` with a text, the bytes so far and the bytes in total."""
    token = _progress.set(progress)
    try:
        yield
    finally:
        _progress.reset(token)


def fetch(address: str, path: Path, known: str = "") -> Path:
    """Return the path of a file in the cache; download the file if it is missing.

    Processes that need the file at the same time wait for the first process, which downloads it. On a disk without
    locks, each process downloads the file, and the last download stays.

    Args:
        address: the address of the file on the web.
        path: the path of the file in the cache.
        known: the expected SHA-256; by default the SHA-256 in the file next to it.

    Raises:
        MissingFileError: the server does not have the file.
        CorpusError: the server cannot be reached or stops half-way, or the SHA-256 differs.
        HeadscopeError: the cache cannot be written to.
    """
    record = path.with_name(f"{path.name}.sha256")
    expected = known or (_read_record(record) if record.exists() else "")
    if not path.exists():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with lock(path.with_name(".lock")) as is_alone:
                if not path.exists():
                    if is_alone:
                        remove_unfinished(path)
                    _download(address, path, expected)
        except OSError as error:
            raise HeadscopeError(
                f"{path.parent} cannot be written ({error.strerror or error}); free some space, or name another place "
                "in the environment variable HEADSCOPE_CACHE."
            ) from error
    digest = sha256(path)
    if expected and digest != expected:
        raise CorpusError(
            f"{path} is not what was downloaded (SHA-256 {digest[:12]} and not {expected[:12]}); delete it, and it is "
            "downloaded again."
        )
    if not record.exists():
        write_text(f"{digest}  {path.name}\n", record)
    return path


def _read_record(path: Path) -> str:
    """Return the SHA-256 in a file of the format of ``sha256sum``."""
    with reading(path) as file:
        return file.read(64).decode("ascii", errors="replace")


def _download(address: str, path: Path, expected: str) -> None:
    with _open(address, path) as response, atomic_write(path) as temporary:
        total, done = int(response.headers.get("Content-Length") or 0), 0
        with temporary.open("wb") as file:
            for block in _read(address, response):
                done += file.write(block)
                _progress.get()(f"downloading {path.name}", done, total)
        if done < total:
            raise _refuse_part(address, f"after {done:,} of {total:,} bytes")
        if expected and (digest := sha256(temporary)) != expected:
            raise CorpusError(
                f"{address} has the SHA-256 {digest[:12]}, and {expected[:12]} is expected, so nothing of it was kept; "
                "run the command again, and if it stays so, the file was damaged on the way or changed at its source."
            )


def _open(address: str, path: Path) -> HTTPResponse:
    try:
        return cast(HTTPResponse, urlopen(address, timeout=TIMEOUT))
    except (OSError, HTTPException) as error:
        if isinstance(error, HTTPError):
            error.close()
            if error.code in _GONE:
                raise MissingFileError(f"there is no file {address}.") from None
        raise CorpusError(
            f"the corpus is not in the cache {path.parent} yet, and {address} cannot be reached "
            f"({getattr(error, 'reason', error)}); run the command once with a network and copy that folder, or give "
            "the path of a file that you have."
        ) from error


def _read(address: str, response: HTTPResponse) -> Iterator[bytes]:
    try:
        while block := response.read(_BLOCK):
            yield block
    except (OSError, HTTPException) as error:
        raise _refuse_part(address, f"half-way ({error or type(error).__name__})") from error


def _refuse_part(address: str, where: str) -> CorpusError:
    return CorpusError(f"the download of {address} stopped {where}, and nothing of it was kept; run the command again.")
