"""JSON as users write it: objects that have each key once, and values as messages show them."""

import json
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
        record: dict[str, Any] = {}
        for key, value in pairs:
            if key in record:
                raise CorpusError(
                    f"{where} has the key {show(key)} twice in one object, of which one would be lost; "
                    f"expected each key once: join the two, or leave one out."
                )
            record[key] = value
        return {key: value for key, value in record.items() if not (drop_null and value is None)}

    return files.parse_json(text, build_object)


def is_text(value: object) -> bool:
    """True for a string with a visible character."""
    return isinstance(value, str) and bool(value.strip()) and not files.has_surrogate(value)


def show(value: object) -> str:
    """A value as it is written in JSON, not at full length."""
    text = json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode()
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]} ..."
