"""PropBank roles on a treebank, as in Universal Propositions: CoNLL-U with further columns.

Column 11 has the roleset of each predicate (``come.03``) and ``_`` for other words. One column for each predicate of
the sentence follows, in the order of the predicates: it has the role at the head word of each argument, and ``V`` at
the predicate itself. A sentence without a predicate may have one empty column, and a sentence that was never annotated
an empty column 11.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headscope.corpora.columns import COLUMNS, ID, has_header
from headscope.corpora.conllu import count_columns, read_sentences
from headscope.corpora.document import Document, Link, Skipped, Span
from headscope.corpora.text import format_count
from headscope.errors import CorpusError

_ROLESET = len(COLUMNS)
_NOT_ANNOTATED = "roles of sentences that were not annotated with them"
_AT_PREDICATE = "roles at their own predicate"
_AT_NO_WORD = "rolesets and roles at lines that are no syntactic words"


@dataclass(frozen=True, slots=True)
class _Row:
    """A word: its line, its roleset, and its roles for each predicate of the sentence."""

    line: int
    roleset: str
    roles: tuple[str, ...]


def read(path: Path, *, name: str | None = None) -> Iterator[Document | Skipped]:
    """Yield the sentences of one file with their trees, their predicates, and links from arguments to predicates.

    Words, ids, groups, dependency links and parts of speech are those of CoNLL-U. A predicate is a span of the one word
    with the roleset; light verbs (``have.LV``) are included. An argument is a link from its head word to the predicate,
    with the role as written; ``C-V`` for a verb's particle is included. ``V`` is not a link, even at a word other than
    the one with the roleset.

    A sentence that was not annotated is a document without predicates, and its roles are skipped. Roles that cannot be
    links are skipped too: roles at the predicate itself, and at the lines of multi-word tokens and empty nodes.

    Raises:
        CorpusError: a line is malformed, the role columns of a sentence are not those of its predicates,
            or the file holds no sentence or is not UTF-8.
    """
    for part in read_sentences(path, name=name, extended=True):
        if isinstance(part, Skipped):
            yield part
            continue
        rows: list[_Row] = []
        for number, columns in part.rows:
            roleset, *roles = (column.strip() for column in columns[_ROLESET:])
            if columns[ID].isdigit():
                rows.append(_Row(number, roleset, tuple(roles)))
            elif any(cell not in ("", "_") for cell in (roleset, *roles)):
                yield Skipped(f"{path}:{number}", _AT_NO_WORD)
        yield from _add_roles(path, part.document, rows)


def recognise(beginning: Sequence[str]) -> bool:
    """Return whether these first lines of a file are CoNLL-U with more than 10 columns and no names of columns."""
    # CoNLL-U Plus names its further columns, for example multi-word expressions; such a file is not PropBank.
    return not has_header(beginning) and (count_columns(beginning) or 0) > _ROLESET


def _add_roles(path: Path, document: Document, rows: Sequence[_Row]) -> Iterator[Document | Skipped]:
    if not any(row.roleset or any(row.roles) for row in rows):
        yield Skipped(f"{path}:{rows[0].line}", _NOT_ANNOTATED)
        yield document
        return
    predicates = [i for i, row in enumerate(rows) if row.roleset not in ("", "_")]
    for row in rows:
        _check_columns(path, row, len(predicates))
    links: list[Link] = []
    for column, predicate in enumerate(predicates):
        for i, row in enumerate(rows):
            role = row.roles[column]
            if role == "V" and i != predicate:
                _check_no_predicate(path, row, column)
            elif role not in ("_", "V") and i == predicate:
                yield Skipped(f"{path}:{row.line}", _AT_PREDICATE)
            elif role not in ("_", "V"):
                links.append(Link(i, predicate, role, kind="role"))
    spans = (Span(i, i + 1, rows[i].roleset, kind="predicate") for i in predicates)
    yield replace(document, links=(*document.links, *links), spans=(*document.spans, *spans))


def _check_columns(path: Path, row: _Row, predicates: int) -> None:
    roles = row.roles
    if predicates == 0 and roles == ("",):
        roles = ()
    if len(roles) != predicates:
        raise CorpusError(
            f"{path}:{row.line} has {format_count(len(roles), 'role column')}, but its sentence has "
            f"{format_count(predicates, 'predicate')}; each word with a roleset in column {_ROLESET + 1} needs one "
            f"role column after it, in every line of the sentence: correct the line or the rolesets."
        )
    for column, cell in enumerate((row.roleset, *roles), start=_ROLESET + 1):
        if not cell:
            raise CorpusError(
                f"{path}:{row.line} has nothing in column {column}, though its sentence is annotated with roles: "
                f"write the {'role' if column > _ROLESET + 1 else 'roleset'}, or '_' if there is none."
            )


def _check_no_predicate(path: Path, row: _Row, column: int) -> None:
    """Raise an error for a ``V`` at the word of another predicate: the role columns are in a wrong order.

    At a word that is no predicate, a ``V`` marks a part of the predicate of its column.
    """
    if row.roleset != "_":
        raise CorpusError(
            f"{path}:{row.line} has 'V' in column {_ROLESET + 2 + column}, which belongs to predicate {column + 1} of "
            f"the sentence, but the word is another predicate ({row.roleset}); role columns are in the order of "
            f"their predicates: put them in that order."
        )
