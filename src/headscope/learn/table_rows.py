"""The rows of a table whose columns are separated by tabs, with or without the quotes of a CSV writer.

A csv writer (Python's `csv`, pandas, a spreadsheet) puts quotes around a field that contains a quote, a tab or the end
of a line, and doubles the quotes inside. In other tables, such as GLUE's, quotes are plain characters.
"""

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from headscope.corpora.text import read_lines
from headscope.errors import quote

logger = logging.getLogger("headscope")

_FIELD = re.compile(r'"([^"]*(?:""[^"]*)*)"(?=\t|\r*(?:\n|\Z))|([^\t\n"]*)(?=\t|\n|\Z)')
"""A field of a CSV file: in quotes, with all inner quotes doubled, or without any quote."""

_END = re.compile(r"\r*(?:\n|\Z)")

_SHOWN = 60
"""The maximum number of characters of a field in a warning."""


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        number: The number of the first line of the row, counted from 1.
        cells: The fields of the row.
        quoted: For each field, whether it was in the quotes of a csv writer.
        lines: The number of lines that the row spans.
    """

    number: int
    cells: tuple[str, ...]
    quoted: tuple[bool, ...] = ()
    lines: int = 1

    @property
    def is_blank(self) -> bool:
        """Whether the row has only white space and no quoted field."""
        return not any(self.quoted) and not any(cell.strip() for cell in self.cells)


def split_rows(path: Path) -> Iterator[Row]:
    """Yield the lines of a table as rows, with quotes as plain characters.

    Raises:
        CorpusError: The file is not UTF-8.
    """
    return (Row(number, tuple(line.split("\t"))) for number, line in read_lines(path))


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a table; if a CSV writer clearly wrote the file, its quotes are removed.

    This is clear if each field with a quote is in quotes, with all inner quotes doubled, and if there are such inner
    quotes, or a field that contains a tab or the end of a line, or a column that is in quotes from its first row to its
    last. In all other files quotes are plain characters; if this is not clear either, a warning names the line.

    Raises:
        CorpusError: The file is not UTF-8.
    """
    plain = [*split_rows(path)]
    if not any('"' in cell for row in plain for cell in row.cells):
        return plain
    rows = _parse_quoted("".join(line for _, line in read_lines(path, ends=True)))
    if rows is None:
        _warn_of_both(path, plain)
        return plain
    if not _is_table(rows):
        return plain
    if not _is_table(plain):
        return rows
    broken = next((row for row in rows if row.lines > 1), None)
    if broken is not None:
        _warn(path, broken.number, "a field that may go on in the next line")
        return plain
    if any(_has_doubled(row) for row in plain) or _has_quoted_column(rows):
        return rows
    row, field = next((row, field) for row in plain for field in row.cells if '"' in field)
    _warn(path, row.number, f"the field {quote(field[:_SHOWN])} in quotes, which may be those of a csv writer")
    return plain


def is_quoted(rows: Sequence[Row]) -> bool:
    """Return True if a field of the rows was in the quotes of a CSV writer."""
    return any(any(row.quoted) for row in rows)


def _parse_quoted(text: str) -> list[Row] | None:
    """Parse a text that a CSV writer wrote into rows; return None if a field has a quote that no CSV writer writes."""
    rows: list[Row] = []
    cells: list[str] = []
    quoted: list[bool] = []
    place, begin, number = 0, 0, 1
    while begin < len(text):
        if (field := _FIELD.match(text, place)) is None:
            return None
        inner, plain = field.groups()
        cells.append(plain if inner is None else inner.replace('""', '"'))
        quoted.append(inner is not None)
        place = field.end()
        if text.startswith("\t", place):
            place += 1
            continue
        end = _END.match(text, place)
        place = end.end() if end else place
        if not quoted[-1]:
            cells[-1] = cells[-1].rstrip("\r")
        lines = max(1, text.count("\n", begin, place))
        rows.append(Row(number, tuple(cells), tuple(quoted), lines))
        begin, number, cells, quoted = place, number + lines, [], []
    return rows


def _is_table(rows: Sequence[Row]) -> bool:
    """Return True if there are rows that are not blank, and all of these have the same number of fields."""
    return len({len(row.cells) for row in rows if not row.is_blank}) == 1


def _has_doubled(row: Row) -> bool:
    """Return True if a field of a row is in quotes and has inner quotes, which are all doubled."""
    return any((field := _FIELD.fullmatch(cell)) is not None and '"' in (field[1] or "") for cell in row.cells)


def _has_quoted_column(rows: Sequence[Row]) -> bool:
    """Return True if a column is in quotes in all rows that are not blank, and there are two or more such rows."""
    filled = [row.quoted for row in rows if not row.is_blank]
    return len(filled) > 1 and any(map(all, zip(*filled, strict=True)))


def _warn_of_both(path: Path, plain: Sequence[Row]) -> None:
    """Warn about a table that has doubled inner quotes, as of a CSV writer, and also plain quotes; else do nothing."""
    doubled = next((row for row in plain if _has_doubled(row)), None)
    if doubled is None:
        return
    number, field = next(
        (row.number, cell) for row in plain for cell in row.cells if '"' in cell and not _FIELD.fullmatch(cell)
    )
    _warn(
        path, doubled.number,
        f"quotes that are doubled, as a csv writer does, but line {number} has {quote(field[:_SHOWN])}, which no csv "
        "writer writes",
    )  # fmt: skip


def _warn(path: Path, number: int, what: str) -> None:
    logger.warning(
        "%s:%d has %s; all quotes of the file are read as plain characters: write the file with a csv writer, or "
        "without quotes around fields.",
        path, number, what,
    )  # fmt: skip
