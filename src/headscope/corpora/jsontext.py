"""JSON as users write it: objects without repeated keys, and values in the form in which messages show them."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headscope import files
from headscope.corpora.text import read_lines
from headscope.errors import CorpusError
from headscope.guards.formats import MEGABYTE

LARGEST = 64 * MEGABYTE
"""The greatest size in bytes of a JSON file with a single value, which is held in memory as a whole."""

_LONGEST_SHOWN = 60


def read_json(path: Path, expected: str) -> Any:
    """Return the value in a JSON file in UTF-8; error messages end with `expected`.

    Raises:
        CorpusError: the file is not JSON in UTF-8, is too large to be held in memory, or an object has a key twice.
    """
    with files.reading(path):
        size = path.stat().st_size
    if size > LARGEST:
        raise CorpusError(f"{path} has {size:,} bytes, and a file of JSON has {LARGEST:,} at most; split it in two.")
    return _parse(str(path), "\n".join(line for _, line in read_lines(path)), expected, of_file=True)


def _parse(where: str, text: str, expected: str, *, of_file: bool) -> Any:
    """Return the value of a JSON text, a whole file or a line; in a line, keys with the value null are left out."""

    def build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) < len(pairs):
            repeated = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
            raise CorpusError(
                f"{where} has the key {show(repeated)} twice in one object, of which one would be lost; "
                f"expected each key once: join the two, or leave one out."
            )
        return record if of_file else {key: value for key, value in pairs if value is not None}

    try:
        return files.parse_json(text, build_object)
    except json.JSONDecodeError as error:
        line = f":{error.lineno}" if of_file else ""
        raise CorpusError(f"{where}{line} is not JSON ({error.msg} at character {error.colno}); {expected}") from None
    except ValueError:
        raise CorpusError(
            f"{where} is not JSON that can be read (too long a number, or brackets too deep); {expected}"
        ) from None


def parse_object(where: str, line: str, example: str) -> dict[str, Any]:
    """Return the object on a line of JSON Lines; keys with null count as missing. Error messages show the example.

    Raises:
        CorpusError: the line is not JSON, is not an object, or has a key twice.
    """
    expected = (
        f"each line needs one JSON object, such as {example}: correct the line, or name the format that the file is in."
    )
    record = _parse(where, line, expected, of_file=False)
    if not isinstance(record, dict):
        raise CorpusError(f"{where} has {show(record)}, which is not an object; {expected}")
    return record


def get_text(where: str, record: Mapping[str, Any], key: str) -> str | None:
    """Return the string under a key of an object; None if the key is missing.

    Raises:
        CorpusError: the value is not a string, has no visible character, or has a lone surrogate.
    """
    value = record.get(key)
    if value is not None and not is_text(value):
        raise CorpusError(
            f'{where} has the "{key}" {show(value)}; expected a string with at least one visible character: '
            f"correct it, or leave it out."
        )
    return value


def is_text(value: object) -> bool:
    """Return whether a value is a string with a visible character and without lone surrogates."""
    return isinstance(value, str) and bool(value.strip()) and not files.has_surrogate(value)


def show(value: object) -> str:
    """Return a value as JSON; a long text is cut off and ends in ``...``."""
    text = json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode()
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]} ..."
