"""Negation in the columns of the *SEM 2012 shared task (CD-SCO): a sentence is a Document.

A line is a word, an empty line ends a sentence, and tabs separate the columns: chapter, number of the sentence in it,
number of the word from 0, word, lemma, part of speech and a part of the syntax tree. Then comes ``***`` if the sentence
has no negation. Otherwise three columns follow for each negation: the parts of the word that belong to its cue, to its
scope and to the negated event; ``_`` for none.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from headscope.corpora.document import Document, Span, merge_into_spans
from headscope.corpora.text import format_count, read_blocks
from headscope.errors import CorpusError

_BEFORE = 7
_EACH = 3
_NO_NEGATION = ("***",)
_NOTHING = "_"


@dataclass(frozen=True, slots=True)
class _Row:
    """One word: its line, its chapter, its sentence, and its columns from the eighth on; none without negations."""

    line: int
    chapter: str
    sentence: str
    word: str
    cells: tuple[str, ...]


def read(path: Path, *, name: str | None = None) -> Iterator[Document]:
    """Yield the sentences of one file, with the cue, the scope and the event of each negation.

    Negations are numbered from 1 in the order of their columns. A cue that is a proper part of its word is an
    ``affixal_cue``: the rest of the word is in the cell of the scope, and the word is in the scope. Any other word
    that is partly in the scope is in the scope too. The tags are those of the Penn Treebank, so there are no ``upos``
    spans. The id of a document ends in its chapter and its number there; its group is the chapter.

    Raises:
        CorpusError: a line is malformed or out of sequence, a cue is not a part of its word, a negation has
            no cue, two sentences have the same number, or the file holds no sentence or is not UTF-8.
    """
    prefix = name or path.name
    lines: dict[str, int] = {}
    for block in read_blocks(path):
        rows = _parse_rows(path, block)
        first = rows[0]
        identity = f"{prefix}:{first.chapter}:{first.sentence}"
        if (before := lines.setdefault(identity, first.line)) != first.line:
            raise CorpusError(
                f"{path}:{first.line} begins sentence {first.sentence!r} of chapter {first.chapter!r}, as line "
                f"{before} does; a sentence needs a number of its own in its chapter: renumber one of them."
            )
        words, spans = tuple(row.word for row in rows), tuple(_build_spans(path, rows))
        yield Document(identity, words=words, spans=spans, group=f"{prefix}:{first.chapter}")
    if not lines:
        raise CorpusError(
            f"{path} has no sentence; *SEM 2012 needs a line for each word, of {_BEFORE} columns and those of the "
            f"negations, separated by tabs: check that the file is whole."
        )


def recognise(beginning: Sequence[str]) -> bool:
    """Return whether these lines begin a file in the columns of *SEM 2012, at the first word of a sentence."""
    columns = next((line for line in beginning if line.strip()), "").rstrip("\r").split("\t")
    return _has_valid_columns(columns) and columns[1].isdigit() and columns[2] == "0"


def _has_valid_columns(columns: Sequence[str]) -> bool:
    negations = tuple(columns[_BEFORE:])
    return negations == _NO_NEGATION or (len(negations) > 0 and len(negations) % _EACH == 0)


def _parse_rows(path: Path, block: Iterable[tuple[int, str]]) -> list[_Row]:
    rows: list[_Row] = []
    for number, line in block:
        columns = line.split("\t")
        _check_columns(path, number, columns)
        chapter, sentence, place, word = columns[:4]
        row = _Row(number, chapter, sentence, word, () if len(columns) == _BEFORE + 1 else tuple(columns[_BEFORE:]))
        first = rows[0] if rows else row
        if (chapter, sentence, place) != (first.chapter, first.sentence, str(len(rows))):
            raise CorpusError(
                f"{path}:{number} is word {place!r} of sentence {sentence!r} in {chapter!r}, where word '{len(rows)}' "
                f"of sentence {first.sentence!r} in {first.chapter!r} is expected; number the words of a sentence "
                f"0, 1, 2 ... and leave an empty line after its last."
            )
        if len(row.cells) != len(first.cells):
            raise CorpusError(
                f"{path}:{number} has the columns of {_count_negations(row)}, but its sentence begins with those of "
                f"{_count_negations(first)}; all lines of a sentence have the same columns: correct the line."
            )
        rows.append(row)
    return rows


def _check_columns(path: Path, number: int, columns: Sequence[str]) -> None:
    if not _has_valid_columns(columns):
        last = f", of which the last is {columns[-1]!r}" if len(columns) == _BEFORE + 1 else ""
        raise CorpusError(
            f"{path}:{number} has {format_count(len(columns), 'column')}{last}; *SEM 2012 needs {_BEFORE} "
            f"and then '***' or {_EACH} for each negation, separated by tabs: correct the line, or name the format "
            f"that the file is in."
        )
    for column, cell in enumerate(columns, start=1):
        if not cell.strip():
            raise CorpusError(
                f"{path}:{number} has nothing in column {column}; *SEM 2012 leaves no column empty: write the value, "
                f"or '_' if there is none."
            )


def _count_negations(row: _Row) -> str:
    count = len(row.cells) // _EACH
    return f"{count or 'no'} negation{'s' * (count != 1)}"


def _build_spans(path: Path, rows: Sequence[_Row]) -> Iterator[Span]:
    for column in range(0, len(rows[0].cells), _EACH):
        label = str(column // _EACH + 1)
        cue, scope, event = ({i for i, row in enumerate(rows) if row.cells[column + k] != _NOTHING} for k in range(3))
        if not cue:
            raise CorpusError(
                f"{path}:{rows[0].line} begins a sentence whose negation {label} has no cue; a negation needs one: "
                f"write it in column {_BEFORE + column + 1} at its word."
            )
        affixal = {i for i in cue if _is_part(path, rows[i], column)}
        yield from merge_into_spans(cue - affixal, label, "cue")
        yield from merge_into_spans(affixal, label, "affixal_cue")
        yield from merge_into_spans(scope, label, "scope")
        yield from merge_into_spans(event, label, "event")


def _is_part(path: Path, row: _Row, column: int) -> bool:
    cue = row.cells[column]
    if cue not in row.word:
        raise CorpusError(
            f"{path}:{row.line} has the cue {cue!r} at the word {row.word!r}; a cue is its word or a part of it: "
            f"correct column {_BEFORE + column + 1}."
        )
    return cue != row.word
