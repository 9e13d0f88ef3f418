"""A task of the user's own, read from tables: a label for each text, or a tag for each word.

Columns are separated by tabs. Quotes are plain characters, as in GLUE, unless a csv writer wrote them
(`headscope.learn.table_rows`). A table has either one row for each text, with named columns::

    text                  label            text               text2            label
    A lovely film .       good             It rains .         It is wet .      yes

(With ``score`` in place of ``label``, the label is a number.) Or it has one row for each word, and an empty line after
each sentence::

    He      PRON
    slept   VERB
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path

from headscope.corpora.text import format_count
from headscope.errors import CorpusError, quote
from headscope.files import parse_number, sha256
from headscope.learn.splits import check_splits, complete_splits, find_labels
from headscope.learn.table_rows import Row, is_quoted, read_rows
from headscope.learn.task import TEST, TRAIN, VALIDATION, Example, Kind, Task

LABEL, SCORE = "label", "score"
TEXTS = (
    ("text", "text2"), ("text1", "text2"), ("sentence1", "sentence2"), ("premise", "hypothesis"),
    ("question1", "question2"), ("question", "sentence"), ("text",), ("sentence",),
)  # fmt: skip
"""The possible names of the columns of texts; the first entry is used whose columns are all in the table."""

_LIST = re.compile(r"\[(?:|.*[,'\"].*)\]", re.DOTALL)
"""A label that is a list, as Python or JSON writes it."""

FILES = {TRAIN: ("train.tsv",), VALIDATION: ("validation.tsv", "dev.tsv"), TEST: ("test.tsv",)}


@dataclass(frozen=True)
class Columns:
    """The columns of a table that make a task.

    Attributes:
        texts: The one or two columns of the texts.
        label: The column of the label.
        names: The names of all columns; empty if the first row of the table has them.
    """

    texts: tuple[str, ...]
    label: str
    names: tuple[str, ...] = ()


def read_table(data: str | Path, name: str = "table") -> Task:
    """Read a task from a folder or a file of tables.

    A folder has ``train.tsv``, ``test.tsv`` and perhaps ``validation.tsv`` or ``dev.tsv``; without a validation file, a
    part of the training examples is held out. Of a single file, a fifth is the test, and a part of the rest is held
    out. Texts that differ only in case and punctuation are never divided between splits that are made here.

    The score is the accuracy (over words, in a tagging task); F1 of ``1`` if the tags are ``0`` and ``1``; Pearson's
    correlation if the labels are numbers.

    Args:
        data: The folder or the file.
        name: The name of the task.

    Raises:
        CorpusError: A file is missing, is not UTF-8, or has no rows; there is no column for the label; a row has the
            wrong number of fields, or no text, label or tag; or the splits have different labels.
    """
    files = _find_files(Path(data).expanduser())
    source = {path.name: sha256(path) for path in files.values()}
    rows = {split: read_rows(path) for split, path in files.items()}
    written = [files[split].name for split, each in rows.items() if is_quoted(each)]
    notes = [f"the quotes of {name} are those of a csv writer" for name in written]
    path = files[TRAIN]
    if _is_tagging(path, rows[TRAIN]):
        tagged = {split: tuple(read_tagged(files[split], each)) for split, each in rows.items()}
        return build_task(name, "tagging", tagged, source, notes=tuple(notes))
    columns = find_columns(path, rows[TRAIN])
    splits = {split: tuple(read_labelled(files[split], each, columns)) for split, each in rows.items()}
    notes.insert(0, f"the texts are in {' and '.join(columns.texts)}, the labels in {columns.label}")
    kind: Kind = "regression" if columns.label == SCORE else "classification"
    return build_task(name, kind, splits, source, notes=tuple(notes))


def build_task(
    name: str,
    kind: Kind,
    splits: Mapping[str, Sequence[Example]],
    source: Mapping[str, str],
    *,
    notes: tuple[str, ...] = (),
    skipped: Mapping[str, int] | None = None,
) -> Task:
    """Make a task from splits of the user; missing splits are made.

    Raises:
        CorpusError: The splits have different labels, there are too few examples, or a text has several labels at once.
    """
    if kind == "classification":
        _refuse_several(find_labels(chain.from_iterable(splits.values())))
    complete, split_notes = complete_splits(splits)
    labels = sorted(find_labels(chain.from_iterable(complete.values())))
    metric, positive = "pearson" if kind == "regression" else "accuracy", ""
    if kind == "tagging" and labels == ["0", "1"]:
        metric, positive = "f1", "1"
    return check_splits(
        Task(
            name, kind=kind, labels=tuple(labels), splits=complete, metric=metric, positive=positive, source=source,
            skipped=skipped or {}, notes=(*notes, *split_notes),
        )
    )  # fmt: skip


def _refuse_several(labels: Mapping[str, str]) -> None:
    """Raise an error for a label that is a list, such as ``['a', 'b']`` or, if its parts recur, ``a,b``."""
    for mark in ",;|":
        parts = {label: {part.strip() for part in label.split(mark)} for label in labels}
        counts = Counter(chain.from_iterable(parts.values()))
        for label, place in labels.items():
            shared = len(parts[label]) > 1 and all(counts[part] > 1 for part in parts[label])
            if shared or _LIST.fullmatch(label):
                raise CorpusError(
                    f"{place} has the label {quote(label)}, which is a list of labels, and a text has one label here; "
                    "choose one for each text, or make a table for each label, with yes and no."
                )


def find_columns(path: Path, rows: Iterable[Row]) -> Columns:
    """Find the columns of the texts and of the label by the names in the first row of a table.

    Raises:
        CorpusError: The table has no column for the label, or none for a text.
    """
    first = _first_row(path, rows)
    number, names = first.number, first.cells
    label = next((name for name in (LABEL, SCORE) if name in names), None)
    if label is None:
        raise CorpusError(
            f"{path}:{number} names no column {LABEL!r}, and no empty lines separate tagged sentences; it names "
            f"{', '.join(map(repr, names))}: name the columns 'text', perhaps 'text2', and {LABEL!r} in the first row, "
            "or write one word and its tag on each row, and an empty line after each sentence."
        )
    texts = next((texts for texts in TEXTS if set(texts) <= set(names)), None)
    if texts is None:
        raise CorpusError(
            f"{path}:{number} names no column of texts; it names {', '.join(map(repr, names))}: call it 'text', and a "
            "second one 'text2'."
        )
    return Columns(texts, label)


def read_labelled(
    path: Path, rows: Iterable[Row], columns: Columns, labels: Sequence[str] = ()
) -> Iterator[Example]:  # fmt: skip
    """Yield the rows of a table as examples; with `labels`, other labels are an error.

    The label is a number if its column is called `SCORE`.

    Raises:
        CorpusError: A row does not fit the columns, a text or a label is empty, or a score is not a number.
    """
    for number, row in _name_cells(path, rows, columns):
        where = f"{path}:{number}"
        texts = tuple(row[name].strip() for name in columns.texts)
        for column, text in zip(columns.texts, texts, strict=True):
            if not text:
                raise CorpusError(f"{where} has no text in {column!r}; write one, or leave the row out.")
        label: str | float = row[columns.label].strip()
        if not label:
            raise CorpusError(f"{where} has no label in {columns.label!r}; write one, or leave the row out.")
        if labels and label not in labels:
            raise CorpusError(f"{where} has the label {label!r}; correct it to one of {', '.join(labels)}.")
        if columns.label == SCORE:
            label = parse_number(written := str(label))
            if math.isnan(label):
                raise CorpusError(
                    f"{where} has {written!r} in {SCORE!r}, which is not a number; write one, or drop the row."
                )
        yield Example(where, texts=texts, label=label, group="\t".join(texts))


def read_tagged(path: Path, rows: Iterable[Row]) -> Iterator[Example]:
    """Yield each sentence of a table of words and tags as an example.

    Raises:
        CorpusError: A row has no tag or more than two fields, or there are no rows.
    """
    rows = [*rows]
    _first_row(path, rows)
    for is_blank, block in groupby(rows, key=lambda row: row.is_blank):
        if is_blank:
            continue
        parsed = [(row.number, *_parse_word_and_tag(path, row)) for row in block]
        words, tags = tuple(word for _, word, _ in parsed), tuple(tag for _, _, tag in parsed)
        yield Example(f"{path}:{parsed[0][0]}", words=words, tags=tags, group=" ".join(words))


def _parse_word_and_tag(path: Path, row: Row) -> tuple[str, str]:
    cells = [cell.strip() for cell in (row.cells if len(row.cells) > 1 else row.cells[0].split())]
    if len(cells) < 2 or not cells[1]:
        raise CorpusError(f"{path}:{row.number} has the word {cells[0]!r} without a tag; write one after it and a tab.")
    if len(cells) > 2 or not cells[0]:
        raise CorpusError(
            f"{path}:{row.number} has {len(cells)} fields, of which the first is {cells[0]!r}; a row is a word and its "
            "tag: correct it, or leave the other columns out."
        )
    return cells[0], cells[1]


def _find_files(data: Path) -> dict[str, Path]:
    if data.is_file():
        return {TRAIN: data}
    if not data.is_dir():
        raise CorpusError(f"there is no file or folder {data}; name one that holds the examples.")
    files = {}
    for split, names in FILES.items():
        paths = [data / name for name in names if (data / name).is_file()]
        if len(paths) > 1:
            raise CorpusError(
                f"{data} holds both {' and '.join(names)}, and there is one validation split; remove one of them."
            )
        if paths:
            files[split] = paths[0]
    missing = [FILES[split][0] for split in (TRAIN, TEST) if split not in files]
    if missing:
        raise CorpusError(
            f"{data} holds no {' and no '.join(missing)}; a task's folder needs train.tsv, test.tsv and perhaps "
            "validation.tsv: add it, or give a single file, which is then split."
        )
    return files


def _is_tagging(path: Path, rows: Sequence[Row]) -> bool:
    """Return True if a table has words and tags: no column of labels, and empty lines between rows."""
    first = _first_row(path, rows)
    if {LABEL, SCORE} & set(first.cells):
        return False
    last = max(row.number for row in rows if not row.is_blank)
    return any(first.number < row.number < last and row.is_blank for row in rows)


def _first_row(path: Path, rows: Iterable[Row]) -> Row:
    """Return the first row that is not blank.

    Raises:
        CorpusError: All rows are blank.
    """
    for row in rows:
        if not row.is_blank:
            return row
    raise _lack_rows(path)


def _lack_rows(path: Path) -> CorpusError:
    return CorpusError(f"{path} has no rows; a task needs examples: check that the file is complete.")


def _name_cells(path: Path, rows: Iterable[Row], columns: Columns) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield the number of the first line of each row, and its fields by the names of their columns."""
    names: Sequence[str] = columns.names
    empty = True
    for row in rows:
        if row.is_blank:
            continue
        if not names:
            names = row.cells
            for name in (*columns.texts, columns.label):
                if names.count(name) != 1:
                    raise CorpusError(
                        f"{path}:{row.number} names {names.count(name) or 'no'} columns {name!r} and must name one; it "
                        f"names {', '.join(map(repr, names))}: correct the first row."
                    )
            continue
        if len(row.cells) != len(names):
            raise CorpusError(
                f"{path}:{row.number} has {format_count(len(row.cells), 'field')} and needs {len(names)} "
                f"({', '.join(names)}), separated by tabs; correct the row."
            )
        empty = False
        yield row.number, dict(zip(names, row.cells, strict=True))
    if empty:
        raise _lack_rows(path)
