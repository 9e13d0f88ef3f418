"""Coreference in the layout of CoNLL-2012, as in OntoNotes and LitBank: a part of a document is a Document.

Tabs separate the columns or, in a line without tabs, spaces: OntoNotes aligns its columns with spaces, and LitBank
leaves the last column empty if no mention opens or closes.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headscope.corpora.brackets import Row, parse_mentions
from headscope.corpora.document import Document, Skipped
from headscope.corpora.text import format_count, read_lines
from headscope.errors import CorpusError

_BEGIN = re.compile(r"#begin document \((.+)\); part ([0-9]+)\s*")
_END = "#end document"
_INDEX, _WORD, _FEWEST = 2, 3, 5
_LEFT_OUT = "[WORD]"


@dataclass(frozen=True, slots=True)
class _Part:
    line: int
    document: str
    number: str
    rows: list[Row] = field(default_factory=list)


def read(path: Path, *, name: str | None = None) -> Iterator[Document | Skipped]:
    """Yield the parts of the documents of one file, with a ``mention`` span for each mention.

    The label of a span is the number of its chain, which is valid within its part. A chain of one mention is kept;
    LitBank has such chains, OntoNotes does not. Sentence boundaries and the columns between the word and the last are
    ignored. The group of a part is its document.

    Raises:
        CorpusError: a line is malformed, a part has no end, no words, or comes twice, or the file
            holds no document or is not UTF-8.
    """
    prefix = name or path.name
    first_lines: dict[str, int] = {}
    for part in _read_parts(path):
        identity = f"{prefix}:{part.document}:{part.number}"
        if (before := first_lines.setdefault(identity, part.line)) != part.line:
            raise CorpusError(
                f"{path}:{part.line} begins part {part.number} of {part.document!r}, which began on line "
                f"{before} already; each part of a document comes once: leave one of the two out."
            )
        spans = parse_mentions(path, part.rows)
        if isinstance(spans, Skipped):
            yield spans
            continue
        yield Document(identity, words=tuple(row.word for row in part.rows), spans=spans, group=part.document)
    if not first_lines:
        raise CorpusError(
            f"{path} has no document; CoNLL-2012 needs '#begin document (NAME); part 000' before the words of each: "
            f"check that the file is whole."
        )


def recognise(beginning: Sequence[str]) -> bool:
    """Return whether the first lines of a file are in the layout of CoNLL-2012 and have a word in place of ``[WORD]``.

    OntoNotes is distributed as files without words. Files with words are made from them, in the same folders.
    """
    filled = [line for line in beginning if line.strip()][:2]
    if len(filled) < 2 or not _BEGIN.fullmatch(filled[0]):
        return False
    columns = _split_columns(filled[1])
    return len(columns) >= _FEWEST and columns[_INDEX] == "0" and columns[_WORD] != _LEFT_OUT


def _read_parts(path: Path) -> Iterator[_Part]:
    part: _Part | None = None
    index = 0
    for number, line in read_lines(path):
        begin = _BEGIN.fullmatch(line)
        if begin and part is not None:
            raise _report_missing_end(path, part)
        if begin:
            part, index = _Part(number, begin[1], begin[2]), 0
        elif not line.strip(" "):
            index = 0
        elif part is None:
            raise CorpusError(
                f"{path}:{number} is outside of a document; CoNLL-2012 needs '#begin document (NAME); part 000' "
                f"before the words of each and {_END!r} after them: add the line that is missing."
            )
        elif line.strip() == _END:
            if not part.rows:
                raise CorpusError(
                    f"{path}:{part.line} begins a document without words; each needs at least one: leave it out."
                )
            yield part
            part = None
        else:
            part.rows.append(_parse_row(path, number, line, index))
            index += 1
    if part is not None:
        raise _report_missing_end(path, part)


def _parse_row(path: Path, number: int, line: str, index: int) -> Row:
    columns = _split_columns(line)
    if len(columns) < _FEWEST:
        raise CorpusError(
            f"{path}:{number} has {format_count(len(columns), 'column')}; CoNLL-2012 needs {_FEWEST} or more "
            f"(document, part, number of the word, word, ..., coreference), separated by tabs or spaces: "
            f"correct the line."
        )
    if columns[_INDEX] != str(index):
        raise CorpusError(
            f"{path}:{number} has the number {columns[_INDEX]!r} where {index} is expected; number the words of a "
            f"sentence 0, 1, 2 ... in column {_INDEX + 1} and leave an empty line after its last."
        )
    if columns[_WORD] in ("", _LEFT_OUT):
        raise CorpusError(
            f"{path}:{number} has {columns[_WORD]!r} in column {_WORD + 1} in place of a word; a skeleton of OntoNotes "
            f"has no words: put them in, as its skeleton2conll does, or leave the file out."
        )
    return Row(number, columns[_WORD], columns[-1])


def _split_columns(line: str) -> list[str]:
    return [column.strip() for column in line.split("\t")] if "\t" in line else line.split()


def _report_missing_end(path: Path, part: _Part) -> CorpusError:
    return CorpusError(
        f"{path}:{part.line} begins part {part.number} of {part.document!r}, which does not end; CoNLL-2012 needs "
        f"{_END!r} after its words: add it, and check that the file is whole."
    )
