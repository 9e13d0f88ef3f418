"""The JSON file of a list of heads. No object in it has a key twice."""

from bisect import bisect_left
from collections import Counter
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from headscope.errors import TableError, first_line, quote
from headscope.files import parse_json
from headscope.guards.formats import HEAD_LIST, read_bytes


def load_json(path: Path) -> Any:
    """Return the value in a JSON file.

    Raises:
        TableError: the file is missing, is not JSON, has more than one value, or an object has a key twice.
    """
    if not path.is_file():
        raise TableError(f"there is no file {path}; name a list of heads, such as heads.json of `headscope export`.")
    content = read_bytes(path, HEAD_LIST)
    try:
        return parse_json(content, _build_object)
    except _RepeatedKeyError as error:
        line = _find_line(content)
        raise TableError(
            f"{path} has the key {quote(error.key)} twice in one object, which ends on line {line}, and one of the two "
            "would be lost; keep one of them."
        ) from None
    except JSONDecodeError as error:
        if error.msg == "Extra data":
            raise TableError(
                f"{path} goes on after its JSON value, on line {error.lineno}; keep one value in the file."
            ) from None
        raise _describe_fault(path, error) from error
    except ValueError as error:
        raise _describe_fault(path, error) from error


class _RepeatedKeyError(Exception):
    """An error: a JSON object has a key twice."""

    def __init__(self, key: str) -> None:
        self.key = key


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) < len(pairs):
        raise _RepeatedKeyError(next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1))
    return built


def _find_line(content: bytes) -> int:
    """Return the line, from 1 on, on which the first object with a repeated key ends."""
    lines = content.splitlines(keepends=True)
    return bisect_left(range(1, len(lines)), True, key=lambda count: _has_repeated_key(b"".join(lines[:count]))) + 1


def _has_repeated_key(content: bytes) -> bool:
    try:
        parse_json(content, _build_object)
    except _RepeatedKeyError:
        return True
    except ValueError:
        return False
    return False


def _describe_fault(path: Path, error: ValueError) -> TableError:
    return TableError(f"{path} is not JSON ({first_line(error)}); copy it again, or export it again.")
