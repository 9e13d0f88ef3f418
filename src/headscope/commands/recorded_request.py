"""The request that a table records as JSON, and its restoration.

What was given in memory is recorded by its name, and has to be given again.
"""

import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from headscope.capture.model.device_names import DTYPES
from headscope.commands.record import Request, order_fields
from headscope.errors import TableError, quote

R = TypeVar("R")

COMMAND, IN_MEMORY, MAPPING = "command", "in_memory", "mapping"
"""The keys in the JSON: the name of the function, the name of an object in memory, and the entries of a mapping."""
REQUEST = "request"
"""The attribute of a table that holds the request."""


def record_request(request: Request[Any], **names: str) -> dict[str, str]:
    """Return attributes of a table: ``request`` (JSON), ``call`` (Python code) and ``created`` (the present time).

    Args:
        request: The request that was run.
        names: The names of inputs that were given in memory, by field.
    """
    fields = [each.name for each in order_fields(type(request)) if request.options[each.name].recorded]
    values = {name: _record(getattr(request, name), names.get(name)) for name in fields}
    call = f"{request.function}({', '.join(f'{name}={_show(value)!r}' for name, value in values.items())})"
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {REQUEST: json.dumps({COMMAND: request.function, **values}), "call": call, "created": created}


def restore_request(record: type[Request[R]], written: str, /, **given: Any) -> Request[R]:
    """Return the request that a table records.

    Args:
        record: The class of the request.
        written: The attribute ``request`` of the table.
        given: Values of fields that differ from the recorded ones, or that were given in memory.

    Raises:
        TableError: The request is not one of this command, it has unknown fields, or an input that was given in memory
            is missing.
        HeadscopeError: A value is not possible.
    """
    recorded = read_request(written)
    if recorded.pop(COMMAND) != record.function:
        raise TableError(f"the recorded request is not one of {record.function}.")
    # Older tables record options that do not change the result; these are not recorded any more.
    unrecorded = {name for name, each in record.options.items() if not each.recorded}
    kept = {name: value for name, value in recorded.items() if name not in unrecorded | given.keys()}
    values = {name: _restore(name, value) for name, value in kept.items()} | given
    if unknown := sorted(values.keys() - record.options.keys()):
        raise TableError(
            f"the recorded request has {quote(unknown[0])}, which {record.function} does not have; it was written by "
            "another version of headscope."
        )
    try:
        return record(**values)
    except TypeError as error:
        raise TableError(f"the recorded request cannot be run: {error}.") from error


def read_request(text: str) -> dict[str, Any]:
    """Parse a recorded request; return its fields, and the name of the function under the key `COMMAND`.

    Raises:
        TableError: The text is not a recorded request.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict) or not isinstance(values.get(COMMAND), str):
        raise TableError("the recorded request cannot be read: it is no JSON object that names a command.")
    return values


def find_dtype(attributes: Mapping[Any, Any]) -> str | None:
    """Return the numerical type that the recorded request of a table names; None if it names none."""
    try:
        dtype = read_request(str(attributes.get(REQUEST, ""))).get("dtype")
    except TableError:
        return None
    return dtype if dtype in DTYPES else None


def _record(value: Any, name: str | None = None) -> Any:
    """Convert a value to JSON; an object that is not data, or that has a name, is replaced by its name."""
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    if not name and isinstance(value, tuple | list):
        return [_record(each) for each in value]
    if not name and isinstance(value, dict):
        return {MAPPING: {str(key): _record(each) for key, each in value.items()}}
    return {IN_MEMORY: name or str(getattr(value, "name", type(value).__name__))}


def _restore(field: str, value: Any) -> Any:
    """Convert a recorded value from JSON.

    Raises:
        TableError: The value was an object in memory.
    """
    if isinstance(value, list):
        return [_restore(field, each) for each in value]
    if not isinstance(value, dict):
        return value
    entries = value.get(MAPPING)
    if not isinstance(entries, dict):
        raise TableError(
            f"the recorded request was made with {quote(str(value.get(IN_MEMORY)))} in memory as `{field}`; give it "
            f"again, as {field}=..."
        )
    return {key: _restore(field, each) for key, each in entries.items()}


def _show(value: Any) -> Any:
    """Return a recorded value in the form of the recorded call."""
    if isinstance(value, list):
        return [_show(each) for each in value]
    if isinstance(value, dict):
        return value[IN_MEMORY] if IN_MEMORY in value else {key: _show(each) for key, each in value[MAPPING].items()}
    return value
