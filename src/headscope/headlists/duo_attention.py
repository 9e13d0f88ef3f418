"""DuoAttention's ``full_attention_heads.tsv``: how much each key/value head needs the whole text (Xiao et al. 2024).

Each line is a layer and has a number from 0 to 1 for each key/value head, with tabs between them and no header.
``numpy.savetxt`` writes this format, and ``load_attn_pattern`` reads it; numbers outside of 0 to 1 are replaced by the
nearer end.

Spaces between the numbers, a tab or blank lines at the end, lines that begin with ``#`` and a header that numbers the
key/value heads do not change the numbers, so they are accepted.
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path

from headscope.errors import TableError, quote
from headscope.files import parse_number
from headscope.guards.formats import HEAD_LIST, read_bytes
from headscope.headlists.head_list import GROUP, HEAD, HeadEntry, HeadList, ListedModel

NAME = "duo-attention"
SCORE, TITLE = "full_attention", "share of full attention (DuoAttention)"

STREAMING = "streaming_kept"
"""The score that is high if a head can do without the whole text. DuoAttention's number is 1 less this score."""

_HEAD_NAME = re.compile(r"(?:kv[ _-]?)?h(?:ead)?[ _-]?([0-9]{1,9})", re.IGNORECASE)
"""The name of a key/value head in a header, such as ``h0`` or ``head 1``."""

_SHORTEST_COUNT = 3
"""The least number of values that are taken for a count (0, 1, 2 or 1, 2, 3); the two values 0 and 1 may be shares."""


def read(path: Path) -> HeadList:
    """Return the list of all key/value heads in a file, without intervals.

    In a model without grouped queries, these are the heads of the model.

    Raises:
        TableError: a line is empty, has another length than the first, or holds anything but finite numbers, or a line
            or column seems to count the heads or layers.
    """
    text = read_bytes(path, HEAD_LIST).decode("utf-8-sig", errors="replace")
    rows = _divide(text, path)
    entries = [
        HeadEntry(layer, head, min(max(_parse(cell, f"line {line} of {path}"), 0.0), 1.0), score=SCORE, title=TITLE)
        for layer, (line, cells) in enumerate(rows, 1)
        for head, cell in enumerate(cells, 1)
    ]
    if not entries:
        raise TableError(f"{path} is empty; a file of DuoAttention has a line of numbers for each layer.")
    _refuse_counts(rows, path)
    model = ListedModel(layers=len(rows), key_value_heads=len(rows[0][1]))
    return HeadList(tuple(entries), model, unit=GROUP, method="Read from a file of DuoAttention.")


def render(heads: HeadList, key_value_heads: int | None = None) -> str:
    """Return the text of the file for a list that has all heads of one row.

    Args:
        heads: a list of one row.
        key_value_heads: the number of key/value heads per layer, if query heads share them. A key/value head has the
            largest value of its query heads. By default the number of the model if the list has it; otherwise each head
            has a column of its own.

    Raises:
        TableError: a head is missing, its value is not from 0 to 1, the number of heads is not a multiple of
            `key_value_heads`, or the list has another number of key/value heads.
    """
    layers = heads.model.layers or max(entry.layer for entry in heads.entries)
    known = heads.model.heads if heads.unit == HEAD else heads.model.key_value_heads
    width = known or max(entry.head for entry in heads.entries)
    if heads.unit == GROUP and key_value_heads not in (None, width):
        raise TableError(
            f"the list has {width} key/value heads of a layer, and {key_value_heads} were asked for; leave the number "
            "out."
        )
    entries = {(entry.layer, entry.head): entry for entry in heads.entries}
    if len(entries) < layers * width:
        raise TableError(
            f"the list has {len(entries)} of {layers * width} heads, and DuoAttention needs a number for each; export "
            "from the atlas, which has them all."
        )
    rows = [[_share(entries[layer, head]) for head in range(1, width + 1)] for layer in range(1, layers + 1)]
    shared = heads.model.key_value_heads if key_value_heads is None else key_value_heads
    if shared is not None and heads.unit == HEAD:
        if shared < 1 or width % shared:
            raise TableError(
                f"{shared} key/value heads cannot be shared by {width} heads; give a number that divides "
                f"{width}, which the configuration of the model has as num_key_value_heads."
            )
        size = width // shared
        rows = [[max(row[start : start + size]) for start in range(0, width, size)] for row in rows]
    return "".join("\t".join(f"{value:.18e}" for value in row) + "\n" for row in rows)


def _share(entry: HeadEntry) -> float:
    value = entry.value
    if value is None or not 0 <= value <= 1:
        raise TableError(
            f"the head {entry.layer}-{entry.head} has the value {value}, and DuoAttention takes numbers from 0 to 1; "
            "export a score that is a share."
        )
    return 1 - value if entry.score == STREAMING else value


def _divide(text: str, path: Path) -> list[tuple[int, list[str]]]:
    """Return the line number and the cells of each layer; leave out comments and a header that names the heads."""
    lines = text.splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    rows: list[tuple[int, list[str]]] = []
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            continue
        if not line.strip():
            raise TableError(
                f"line {number} of {path} is empty, and each line is a layer; remove it, or write the numbers of the "
                "layer."
            )
        cells = _divide_line(line)
        if rows and len(cells) != len(rows[0][1]):
            first, width = rows[0][0], len(rows[0][1])
            raise TableError(
                f"line {number} of {path} has {len(cells)} numbers and line {first} has {width}; each layer must have "
                "as many key/value heads, with tabs between them."
            )
        rows.append((number, cells))
    return rows[1:] if rows and _names_heads(rows[0][1]) else rows


def _divide_line(line: str) -> list[str]:
    """Return the cells of a line, separated by tabs, or by spaces if it has no tab."""
    if "\t" not in line:
        return line.split()
    return [cell.strip() for cell in line.rstrip(" ").removesuffix("\t").split("\t")]


def _names_heads(cells: Sequence[str]) -> bool:
    """Return whether cells are the names of all heads, numbered from 0 or from 1."""
    numbers = [int(match[1]) if (match := _HEAD_NAME.fullmatch(cell)) else -1 for cell in cells]
    return _counts(numbers)


def _counts(numbers: Sequence[int]) -> bool:
    return [*numbers] in ([*range(len(numbers))], [*range(1, len(numbers) + 1)])


def _refuse_counts(rows: Sequence[tuple[int, Sequence[str]]], path: Path) -> None:
    """Raise an error if the first line or the first column counts its values (0, 1, 2 ...), since shares do not."""
    line, cells = rows[0]
    runs = {
        (f"line {line} of {path}", "heads"): cells,
        (f"the first column of {path}", "layers"): [row[0] for _, row in rows],
    }
    for (subject, parts), run in runs.items():
        numbers = [int(cell) if re.fullmatch("[0-9]{1,9}", cell) else -1 for cell in run]
        if len(numbers) >= _SHORTEST_COUNT and _counts(numbers):
            raise TableError(
                f"{subject} counts {', '.join(run[:_SHORTEST_COUNT])} and so on, as the numbers of {parts} do; "
                "remove it, for a file of DuoAttention has shares alone."
            )


def _parse(cell: str, where: str) -> float:
    value = parse_number(cell)
    if math.isnan(value):
        raise TableError(
            f"{where} has {quote(cell)}, which is no finite number; a file of DuoAttention has nothing else."
        )
    return value
