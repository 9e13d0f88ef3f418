"""JSON as users write it: objects that have each key once, and values as messages show them."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from headscope import files
from headscope.errors import CorpusError

_LONGEST_SHOWN = 60


def parse_json(where: str, text: str, *, drop_null: bool = False) -> Any:
    """The value that a text in JSON stands for.

    Args:
        where: file and perhaps line, for messages.
        text: all of it.
        drop_null: a key whose value is null is one that is not there, as in tables written as JSON.

    Raises:
        CorpusError: an object has a key twice.
        ValueError: the text is not JSON, has too long a number, or has brackets that are too deep.
    """

    def build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) < len(pairs):
            repeated = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
            raise CorpusError(
                f"{where} has the key {show(repeated)} twice in one object, of which one would be lost; "
                f"expected each key once: join the two, or leave one out."
            )
        return {key: value for key, value in pairs if value is not None} if drop_null else record

    return files.parse_json(text, build_object)


def parse_object(where: str, line: str, example: str) -> dict[str, Any]:
    """The object on a line of JSON Lines; wherever it has a null, there is nothing.

    Args:
        where: file and line, for messages.
        line: all of it.
        example: the object of such a line, for messages.

    Raises:
        CorpusError: the line is not JSON, is no object, or has a key twice.
    """
    expected = (
        f"each line needs one JSON object, such as {example}: correct the line, or name the format that the file is in."
    )
    try:
        record = parse_json(where, line, drop_null=True)
    except json.JSONDecodeError as error:
        raise CorpusError(f"{where} is not JSON ({error.msg} at character {error.colno}); {expected}") from None
    except ValueError:
        raise CorpusError(
            f"{where} is not JSON that can be read (too long a number, or brackets too deep); {expected}"
        ) from None
    if not isinstance(record, dict):
        raise CorpusError(f"{where} has {show(record)}, which is not an object; {expected}")
    return record


def get_text(where: str, record: Mapping[str, Any], key: str) -> str | None:
    """The string that an object has under a key, None if it has nothing there.

    Raises:
        CorpusError: the value is no string, or has no visible character.
    """
    value = record.get(key)
    if value is not None and not is_text(value):
        raise CorpusError(
            f'{where} has the "{key}" {show(value)}; expected a string with at least one visible character: '
            f"correct it, or leave it out."
        )
    return value


def is_text(value: object) -> bool:
    """True for a string with a visible character."""
    return isinstance(value, str) and bool(value.strip()) and not files.has_surrogate(value)


def show(value: object) -> str:
    """A value as it is written in JSON, not at full length."""
    text = json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode()
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]} ..."
