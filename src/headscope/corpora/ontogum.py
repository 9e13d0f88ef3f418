"""Coreference as in OntoGUM: a file with three columns, with the trees of the same text, is a Document.

The columns are the number of the word in the document, the word, and the coreference brackets. The trees of
``conll/NAME.conll`` are in ``conllu/NAME.conllu`` in the folder next to it, as OntoGUM distributes them, or in the same
folder.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from headscope.corpora import conllu
from headscope.corpora.brackets import Row, parse_mentions
from headscope.corpora.document import Document, Skipped, join_sentences
from headscope.corpora.text import format_count, read_lines
from headscope.errors import CorpusError

_BEGIN, _END = "# begin document", "# end document"
_COLUMNS = 3


def read(path: Path, *, name: str | None = None) -> Iterator[Document | Skipped]:
    """Yield the document of one file, with a ``mention`` span for each mention, labelled with its chain.

    If a file with its trees exists, the document also has their dependency links and, before the mentions, their
    ``upos`` spans. Sentence boundaries are ignored; the texts of sentences are joined by single spaces. An empty word
    (OntoGUM V11 has one, a ``|``) takes its form from the trees. The group is the name of the file without its suffix.

    Raises:
        CorpusError: a line of either file is malformed, the two have other words, the document has no
            beginning, no end or no words, or a file is not UTF-8.
    """
    rows = _read_rows(path)
    mentions = parse_mentions(path, rows)
    if isinstance(mentions, Skipped):
        yield mentions
        return
    identity = f"{name or path.name}:{path.stem}"
    document = Document(identity, words=tuple(row.word for row in rows), group=path.stem)
    skipped: list[Skipped] = []
    if trees := find_trees(path):
        parts = list(conllu.read(trees[0]))
        skipped = [part for part in parts if isinstance(part, Skipped)]
        document = join_sentences(identity, path.stem, [part for part in parts if isinstance(part, Document)])
        _check_same_words(path, rows, trees[0], document.words)
    elif not all(document.words):
        empty = rows[document.words.index("")].line
        yield Skipped(f"{path}:{empty}", "documents with an empty word and no trees to take it from")
        return
    yield replace(document, spans=document.spans + mentions)
    yield from skipped


def recognise(beginning: Sequence[str]) -> bool:
    """Return whether a file that begins with these lines is in the layout of OntoGUM."""
    filled = [line for line in beginning if line.strip()][:2]
    if len(filled) < 2 or not filled[0].startswith(_BEGIN):
        return False
    columns = filled[1].split("\t")
    return len(columns) == _COLUMNS and columns[0] == "0"


def find_trees(path: Path) -> tuple[Path, ...]:
    """Return a tuple with the file of the trees of the document in `path`; empty if there is no such file."""
    file = path.with_suffix(".conllu").name
    # ".." also works for a path without a folder, such as "NAME.conll".
    candidates = (path.parent / ".." / "conllu" / file, path.parent / file)
    return tuple(candidate for candidate in candidates if candidate.is_file())[:1]


def _read_rows(path: Path) -> list[Row]:
    rows: list[Row] = []
    has_begun = has_ended = False
    for number, line in read_lines(path):
        if not line.strip(" "):
            continue
        if line.startswith(_BEGIN) and not has_begun:
            has_begun = True
        elif not has_begun or has_ended:
            raise CorpusError(
                f"{path}:{number} is outside of the document; OntoGUM needs {_BEGIN!r} before its words, "
                f"{_END!r} after them, and one document in a file: correct the file, or part it."
            )
        elif line.strip() == _END:
            has_ended = True
        else:
            rows.append(_parse_row(path, number, line, len(rows)))
    if not (has_ended and rows):
        raise CorpusError(
            f"{path} {'has no words' if has_ended else 'does not end'}; OntoGUM needs {_BEGIN!r}, a line of {_COLUMNS} "
            f"columns for each word, and {_END!r}: check that the file is whole."
        )
    return rows


def _parse_row(path: Path, number: int, line: str, index: int) -> Row:
    columns = [column.strip() for column in line.split("\t")]
    if len(columns) != _COLUMNS:
        raise CorpusError(
            f"{path}:{number} has {format_count(len(columns), 'column')}; OntoGUM needs {_COLUMNS} (number "
            f"of the word, word, coreference), separated by tabs: correct the line."
        )
    if columns[0] != str(index):
        raise CorpusError(
            f"{path}:{number} has the number {columns[0]!r} where {index} is expected; number the words of the "
            f"document 0, 1, 2 ... in column 1."
        )
    return Row(number, columns[1], columns[2])


def _check_same_words(path: Path, rows: Sequence[Row], trees: Path, words: Sequence[str]) -> None:
    for row, word in zip(rows, words, strict=False):
        if row.word not in ("", word):
            raise CorpusError(
                f"{path}:{row.line} has the word {row.word!r} where {trees} has {word!r}; the two must have the same "
                f"words: take both from one release, or keep the trees elsewhere."
            )
    if len(rows) != len(words):
        raise CorpusError(
            f"{path}:{rows[-1].line} is word {len(rows)} and the last, but {trees} has {len(words)} words; the two "
            f"must have the same words: take both from one release, or keep the trees elsewhere."
        )
