"""Texts with a user's own links, as a table: a row is a link, and the rows of one text are a Document.

Tabs separate the columns, and the first row names them::

    text                      source  target  label
    She saw herself .         2       0       reflexive

The words of a text are separated by single spaces, and counted from 0.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from headscope.corpora.document import Document, Link
from headscope.corpora.records import KIND, check_links
from headscope.corpora.text import format_count, read_lines
from headscope.errors import CorpusError, quote

_LINK = ("source", "target", "label")
_REQUIRED = ("text", *_LINK)
_OPTIONAL = ("id", "group", "kind")


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    text: str
    id: str
    group: str
    link: Link | None


def read(path: Path, *, name: str | None = None) -> Iterator[Document]:
    """Yield the documents of one file; consecutive rows with the same text and id are one document.

    The first row names the columns, in any order:

    =======================  =====================================================================
    column                   what
    =======================  =====================================================================
    ``text``                 words, separated by single spaces
    ``source``, ``target``   the two words that the link joins, counted from 0
    ``label``                the label of the link; it names a row of the head table
    ``kind``                 optional: the kind of the link; ``link`` if empty
    ``id``                   optional: the id of the text; the number of its first line if empty
    ``group``                optional: the text that this one was cut from; this one alone if empty
    =======================  =====================================================================

    A row without source, target and label is a text without links. Quotes are words like others,
    and part of the text. Lines without a visible character are ignored.

    Raises:
        CorpusError: a column is missing or unknown, a row has other columns than the first or an empty
            text, or part of a link; a link points outside its text, joins a word to itself, or occurs
            twice; two texts have the same id, or one has two groups; or the file holds no text or is
            not UTF-8.
    """
    prefix = name or path.name
    lines: dict[str, int] = {}
    for _, block in groupby(_read_rows(path), key=lambda row: (row.text, row.id)):
        rows = list(block)
        first = rows[0]
        where, text_id = f"{path}:{first.line}", first.id or str(first.line)
        if (before := lines.setdefault(text_id, first.line)) != first.line:
            raise CorpusError(
                f"{where} has the id {text_id!r}{'' if first.id else ', which is its number,'} as the text on line "
                f"{before} has; a text needs an id of its own, and its rows together: rename one of them."
            )
        _check_one_text(path, rows)
        yield Document(
            f"{prefix}:{text_id}",
            words=tuple(first.text.split(" ")),
            links=tuple(row.link for row in rows if row.link is not None),
            group=f"{prefix}:{first.group or text_id}",
        )
    if not lines:
        raise CorpusError(
            f"{path} has no text; expected a row for each link below the one that names the columns: "
            f"check that the file is whole."
        )


def recognise(beginning: Sequence[str]) -> bool:
    """Return whether the first nonempty line names at least three of the columns text, source, target and label."""
    first = next((line for line in beginning if line.strip()), "")
    return len(set(_REQUIRED) & set(first.rstrip("\r").split("\t"))) >= len(_REQUIRED) - 1


def _read_rows(path: Path) -> Iterator[_Row]:
    # A cell cannot contain a line break, because quotes have no meaning: a row is a line, and line_num its number.
    table = csv.reader((line for _, line in read_lines(path)), delimiter="\t", quoting=csv.QUOTE_NONE)
    header: list[str] | None = None
    try:
        for cells in table:
            where = f"{path}:{table.line_num}"
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = _check_header(where, cells)
            elif len(cells) != len(header):
                raise CorpusError(
                    f"{where} has {format_count(len(cells), 'column')}, but the first row names {len(header)}; a row "
                    f"needs as many, separated by tabs, with nothing in those that stay empty: correct the line."
                )
            else:
                yield _parse_row(where, table.line_num, dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise CorpusError(
            f"{path}:{table.line_num} cannot be read as a row ({error}); expected cells separated by tabs: "
            f"correct the line or, if its text is that long, write the texts as JSON Lines."
        ) from None


def _check_header(where: str, cells: list[str]) -> list[str]:
    known = (*_REQUIRED, *_OPTIONAL)
    unknown = [cell for cell in cells if cell not in known]
    missing = [name for name in _REQUIRED if name not in cells]
    repeated = [name for name in known if cells.count(name) > 1]
    problems = {"the unknown": unknown, "no": missing, "more than one": repeated}
    for problem, columns in problems.items():
        if columns:
            raise CorpusError(
                f"{where} names {problem} column{'s' * (len(columns) > 1)} {', '.join(map(repr, columns))}; expected "
                f"{', '.join(_REQUIRED)} and perhaps {', '.join(_OPTIONAL)}, separated by tabs: correct the first row."
            )
    return cells


def _parse_row(where: str, line: int, cells: Mapping[str, str]) -> _Row:
    text = cells["text"]
    words = text.split(" ")
    if not all(word.strip() for word in words):
        raise CorpusError(
            f"{where} has the text {quote(text)} with {'no words' if not text.strip() else 'an empty word'}; "
            f"expected words separated by single spaces, with none before the first and after the last: correct it."
        )
    if _is_quoted(text):
        raise CorpusError(
            f"{where} has the text {quote(text)} in quotes, with those inside doubled; quotes mean nothing here and "
            f"would become words: write the table without quoting (csv.QUOTE_NONE in Python)."
        )
    link = _parse_link(where, cells)
    if link is not None:
        check_links(where, len(words), [link])
    return _Row(line, text, cells.get("id", "").strip(), cells.get("group", "").strip(), link)


def _parse_link(where: str, cells: Mapping[str, str]) -> Link | None:
    values = {name: cells[name].strip() for name in _LINK}
    if not any(values.values()):
        return None
    for name, value in values.items():
        if not value:
            raise CorpusError(
                f"{where} has no {name}; a link needs source, target and label, and a text without links none of the "
                f"three: add what is missing."
            )
    for name in ("source", "target"):
        if not re.fullmatch("[0-9]{1,9}", values[name]):
            raise CorpusError(
                f"{where} has the {name} {quote(values[name])}; a position is a whole number, counted from 0: "
                f"correct it."
            )
    kind = cells.get("kind", "").strip() or KIND
    return Link(int(values["source"]), int(values["target"]), values["label"], kind=kind)


def _check_one_text(path: Path, rows: Sequence[_Row]) -> None:
    """Raise an error if rows of one text have two groups, repeat a link, or are several and one has no link."""
    first = rows[0]
    lines: dict[Link | None, int] = {}
    for row in rows:
        if row.group != first.group:
            raise CorpusError(
                f"{path}:{row.line} has the group {row.group!r}, but line {first.line} has the same text with "
                f"{first.group!r}; a text is in one group: correct it, or give each an id of its own."
            )
        if row.link in lines or (lines and None in (row.link, first.link)):
            raise CorpusError(
                f"{path}:{row.line} has the same text as line {lines.get(row.link, first.line)}, but not each has a "
                f"link of its own; leave one out or, if these are two texts, give each an id of its own."
            )
        lines[row.link] = row.line


def _is_quoted(text: str) -> bool:
    """Return whether a program has put quotes around a cell and doubled the quotes inside, as spreadsheets do."""
    inside = text[1:-1]
    return text[0] == text[-1] == '"' and '"' in inside and '"' not in inside.replace('""', "")
