"""Files: written completely or not at all. Each error is one sentence."""

import errno
import hashlib
import json
import math
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from glob import escape
from io import BufferedReader
from itertools import chain, count
from pathlib import Path, PurePosixPath
from typing import Any

from platformdirs import user_cache_path

from headscope.errors import HeadscopeError, suggest

MAX_NAME_BYTES = 200
"""The longest label in bytes. A file name may have 255 bytes; the rest is for the text before and after the label."""

LOCK = ".headscope.lock"
"""The file in an output folder that is locked while a command writes to the folder."""

_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP)
"""The error numbers of disks that do not support locks."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The error numbers of full disks."""

_REFUSED = (errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP, errno.EIO, errno.ENOTDIR)
"""The error numbers of files that the system does not let the user access."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")

_MAX_DEPTH = 100
"""The greatest depth of brackets in JSON. Deeper values could be read but not be written again."""

_CONTAINERS = (dict, list)


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary file in the folder of `path`, and replace `path` with it if the block ends without an error.

    After an error `path` is unchanged, and the temporary file is removed.

    Raises:
        HeadscopeError: the system does not allow writing the file.
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(suffix=path.suffix, prefix=_unfinished(path), dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        # The permissions of a temporary file are for its owner alone; a result has those of the user's other files.
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
    """Write a text to a file in UTF-8, completely or not at all.

    Raises:
        HeadscopeError: the system does not allow writing the file.
    """
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def remove_unfinished(path: Path) -> None:
    """Remove the temporary files of `path` that a killed process left in its folder."""
    # `tempfile` puts eight characters in between; a longer name belongs to another file.
    for temporary in path.parent.glob(f"{escape(_unfinished(path))}????????{escape(path.suffix)}"):
        temporary.unlink(missing_ok=True)


@contextmanager
def lock(path: Path, *, blocking: bool = True) -> Iterator[bool]:
    """Hold a file lock while the block runs, and yield True; on a disk without locks, yield False.

    Raises:
        filelock.Timeout: another process holds the lock, and `blocking` is false.
    """
    from filelock import FileLock  # imported here because it loads much that `headscope --help` does not need

    held = FileLock(path)
    try:
        held.acquire(blocking=blocking)
    except OSError as error:
        if error.errno not in _WITHOUT_LOCKS:
            raise
    try:
        yield held.is_locked
    finally:
        held.release()


@contextmanager
def reserve(output: Path, file: Path) -> Iterator[None]:
    """Keep other commands from writing to `output` while the block runs, and remove the lock at the end.

    `file` is the lock, next to `output` or in it. Missing parent folders are created, and removed at the end if they
    are empty. The system releases the lock when the process ends, even if it is killed.

    On a disk without locks, such as some network disks, no command is kept out.

    Raises:
        HeadscopeError: another command is writing to `output`, or the disk does not allow writing.
    """
    from filelock import Timeout  # imported here for the reason given in `lock`

    with _remove_empty_again(file.parent), ExitStack() as held:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(lock(file, blocking=False))
        except Timeout:
            raise HeadscopeError(
                f"another headscope command is writing to {output}; wait until it has ended, or choose another place."
            ) from None
        except OSError as error:
            reason = error.strerror or error
            raise HeadscopeError(f"{output} cannot be written to ({reason}); choose another place.") from error
        try:
            yield
        finally:
            with suppress(OSError):  # Windows does not remove an open file
                file.unlink()


@contextmanager
def _remove_empty_again(folder: Path) -> Iterator[None]:
    """Run the block, then remove the folders on the path of `folder` that it created and left empty."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        yield
    finally:
        with suppress(OSError):  # the parents of a folder that is not empty are not empty either
            for path in missing:
                path.rmdir()


def writable(path: Path) -> None:
    """Raise an error for a path that cannot be written, before any work is done.

    Raises:
        HeadscopeError: the path is a folder or a device, its name is too long, or its folder does not allow writing.
    """
    if (length := len(os.fsencode(path.name))) > MAX_NAME_BYTES:
        raise HeadscopeError(
            f"the name of {path} is {length:,} bytes long; choose one of at most {MAX_NAME_BYTES} bytes, so that the "
            "files that are made on the way to it can have it in their names."
        )
    try:
        if path.is_dir():
            raise HeadscopeError(f"{path} is a folder; name a file to be written in it.")
        if path.exists() and not path.is_file():
            raise HeadscopeError(f"{path} is a device or a pipe, which a file would replace; name a file.")
        folder = next(parent for parent in path.absolute().parents if parent.exists())
    except OSError as error:  # such as a folder whose name is too long
        raise HeadscopeError(f"{path} cannot be written ({error.strerror}); choose another place.") from error
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise HeadscopeError(f"{path} cannot be written, because {folder} does not allow it; choose another place.")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a user's file, in hexadecimal digits.

    Raises:
        HeadscopeError: the system does not allow reading the file.
    """
    with reading(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_texts(texts: Iterable[str]) -> str:
    """Return the SHA-256 of texts, joined without a separator."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode())
    return digest.hexdigest()


def hash_lines(lines: Iterable[str]) -> str:
    """Return the SHA-256 of lines, with a line feed after each."""
    return hash_texts(f"{line}\n" for line in lines)


def tell_apart(names: Iterable[str]) -> list[str]:
    """Return distinct names: a name that is in the list already gets a number, such as ``name-2``.

    Otherwise one of two files of the same name would be lost. Upper and lower case count as the same, since some
    systems do not distinguish them.
    """
    distinct: list[str] = []
    for name in names:
        candidates = chain([name], (f"{name}-{number}" for number in count(2)))
        given = {other.lower() for other in distinct}
        distinct.append(next(candidate for candidate in candidates if candidate.lower() not in given))
    return distinct


def find_by_suffix(folder: Path, path: str) -> Path | None:
    """Return the file or folder in `folder` at `path`, or at its longest end that exists there; None if none exists.

    For ``ud/UD_English-EWT/en_ewt-ud-dev.conllu`` the folder is searched for that path, for
    ``UD_English-EWT/en_ewt-ud-dev.conllu``, and for ``en_ewt-ud-dev.conllu``.
    """
    parts = PurePosixPath(path).parts
    places = (folder.joinpath(*parts[start:]) for start in range(len(parts)))
    return next((place for place in places if place.exists()), None)


def cache_folder(kind: str) -> Path:
    """Return the folder for a kind of cached files: in HEADSCOPE_CACHE if that is set, or in the user's cache."""
    return Path(os.environ.get("HEADSCOPE_CACHE") or user_cache_path("headscope")) / kind


def expand_home(path: str | Path) -> Path:
    """Return a path with the home folder in place of ``~``; the same path if the home folder is unknown."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def suggest_path(path: str | Path, suits: Callable[[Path], bool] = Path.exists) -> str:
    """Return the note ``(did you mean PATH?)`` for a missing path; an empty text if no existing path is close.

    Args:
        path: the missing path. One of its parts is misspelt.
        suits: the condition that a suggested path must meet.
    """
    whole = expand_home(path)
    try:
        missing = next((part for part in (*reversed(whole.parents), whole) if not part.exists()), None)
        if missing is None:
            return ""
        rest = whole.relative_to(missing)
        beside = [each.name for each in missing.parent.iterdir() if suits(each / rest)]
    except OSError:  # a folder without read permission, or a name that is too long
        return ""
    before, after = str(missing.parent / "_").removesuffix("_"), "" if rest == Path() else f"/{rest}"
    return suggest(missing.name, beside, before=before, after=after)


def check_regular(path: Path) -> None:
    """Raise an error for a device or a pipe, whose content may never end. A missing path passes.

    Raises:
        HeadscopeError: the path is a device or a pipe, or the system does not allow access.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise HeadscopeError(f"{path} is a device or a pipe; copy what it gives to a file, and name that file.")
    except OSError as error:
        raise HeadscopeError(f"{path} cannot be read ({error.strerror or error}); check the name.") from error


def parse_json(text: str | bytes, object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Return the value of a text in JSON.

    Raises:
        ValueError: the text is not JSON, has too long a number, or nests brackets too deeply.
    """
    too_deep = ValueError(f"brackets more than {_MAX_DEPTH} deep")
    try:
        value = json.loads(text, object_pairs_hook=object_pairs_hook)
    except RecursionError:
        raise too_deep from None
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(_MAX_DEPTH):
        if not level:
            return value
        inner = (item.values() if isinstance(item, dict) else item for item in level)
        level = [item for items in inner for item in items if isinstance(item, _CONTAINERS)]
    if level:
        raise too_deep
    return value


def parse_number(text: str) -> float:
    """Return the number in a text; NaN if it is not a finite number, or has a form that only Python reads (``1_0``)."""
    if "_" in text or not text.strip().isascii():
        return math.nan
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def has_surrogate(text: str) -> bool:
    """Return True if a text has a lone surrogate (half of a character), which UTF-8 cannot encode."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def is_plain(text: str) -> bool:
    """Return True if a text has no control characters and no lone surrogates."""
    return not (has_surrogate(text) or _CONTROL.search(text))


def find_name_fault(name: str) -> str:
    """Return the reason why a text cannot be the name of a row or a file; empty if it can.

    The reason is the end of a sentence, such as ``has a control character``.
    """
    if has_surrogate(name):
        return "has half of a character that needs two (a lone surrogate)"
    if _CONTROL.search(name):
        return "has a control character"
    length = len(name.encode())
    return f"is {length:,} bytes long" if length > MAX_NAME_BYTES else ""


@contextmanager
def reading(path: Path) -> Iterator[BufferedReader]:
    """Yield a user's file, opened for reading in binary mode.

    Raises:
        HeadscopeError: the path is a device, a pipe or a folder, or the system does not allow reading it.
    """
    check_regular(path)
    try:
        with path.open("rb") as file:
            yield file
    except IsADirectoryError as error:
        raise HeadscopeError(f"{path} is a folder, and a file is wanted; name one in it.") from error
    except OSError as error:
        raise HeadscopeError(f"{path} cannot be read ({error.strerror or error}); check whose it is.") from error


def explain_refusal(error: OSError) -> HeadscopeError | None:
    """Return a readable error for a full disk or for a file that the user may not access; None for other errors."""
    if error.errno in _FULL:
        return HeadscopeError(
            f"{error.filename or 'the output'} could not be written ({error.strerror}); free some space or choose "
            "another place."
        )
    if error.errno in _REFUSED and error.filename is not None:
        return HeadscopeError(
            f"{error.filename} cannot be read or written ({error.strerror}); check the name and whose it is."
        )
    return None


def _unfinished(path: Path) -> str:
    """Return the prefix of the names of the temporary files that `atomic_write` makes for `path`."""
    return f".{path.stem}."


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
