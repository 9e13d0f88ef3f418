"""Ambiguous pronouns in the format of GAP (Webster et al. 2018): a row of a table is a Document.

Tabs separate the columns, and the first row names them: ``ID``, ``Text``, a ``Pronoun`` and two names, ``A`` and ``B``,
each with the offset of its first character, and for each name whether the pronoun refers to it, ``TRUE`` or ``FALSE``.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from headscope.corpora.document import Document, Link, Skipped, Span
from headscope.corpora.terms import is_offset, locate_term, parse_offsets
from headscope.corpora.text import format_count, read_lines
from headscope.corpora.written_text import WrittenText, find_words
from headscope.errors import CorpusError, quote

_CHAIN = "1"
_KIND = "coreference"
_PRONOUN, _NAMES = "Pronoun", ("A", "B")
_MENTIONS = (_PRONOUN, *_NAMES)
_REQUIRED = ("ID", "Text", *(name for mention in _MENTIONS for name in (mention, f"{mention}-offset")),
             *(f"{name}-coref" for name in _NAMES))  # fmt: skip
_RECOGNISED = {"Text", "Pronoun", "Pronoun-offset"}
_ANSWERS = {"true": True, "false": False}
_SHARED_WORD = "rows of which two mentions share a word"
_WITHOUT_CHAIN = "mentions without a chain, such as names to which a pronoun does not refer"


def read(path: Path, *, name: str | None = None) -> Iterator[Document | Skipped]:
    """Yield the rows of one file, with ``mention`` spans for the pronoun and the names to which it refers.

    A link of the kind ``coreference`` leads from the pronoun to each of these names. It joins the last word of each
    mention that is not punctuation. Its label is the pronoun in lower case, and its rival is the name to which the
    pronoun does not refer. That name has no chain, so it is skipped. If the pronoun refers to neither name, all three
    mentions are skipped.

    `find_words` splits the text into words. The group of a row is its page (``URL``) or, without one, the row alone.
    Programs for tables put a cell in quotes and double the quotes inside; this is undone if the offsets are right only
    then.

    Raises:
        CorpusError: a column is missing or occurs twice, a row has other columns than the first, an offset does not cut
            its mention out of the text, an answer is neither ``TRUE`` nor ``FALSE``, two rows have the same id, or the
            file holds no row or is not UTF-8.
    """
    prefix = name or path.name
    lines: dict[str, int] = {}
    for number, row in _read_rows(path):
        where, identity = f"{path}:{number}", row["ID"]
        if (before := lines.setdefault(identity, number)) != number:
            raise CorpusError(
                f"{where} has the ID {quote(identity)} as line {before} has; a row needs an ID of its own: rename one "
                "of them."
            )
        text = find_words(row["Text"])
        places = {mention: _locate(where, row, text, mention) for mention in _MENTIONS}
        answers = {mention: _parse_answer(where, row, mention) for mention in _NAMES}
        if any({*first} & {*second} for first, second in combinations(places.values(), 2)):
            yield Skipped(where, _SHARED_WORD)
            continue
        chain = [_PRONOUN, *(mention for mention in _NAMES if answers[mention])] if any(answers.values()) else []
        for mention in _MENTIONS:
            if mention not in chain:
                yield Skipped(where, _WITHOUT_CHAIN)
        words = text.words
        heads = {mention: _find_head(words, place) for mention, place in places.items()}
        rivals = tuple(heads[mention] for mention in _NAMES if not answers[mention])
        yield Document(
            f"{prefix}:{identity}",
            words=words,
            links=tuple(
                Link(heads[_PRONOUN], heads[mention], row[_PRONOUN].casefold(), kind=_KIND, rivals=rivals)
                for mention in chain[1:]
            ),
            spans=tuple(
                Span(place.start, place.stop, _CHAIN, kind="mention")
                for place in sorted((places[mention] for mention in chain), key=lambda place: place.start)
            ),
            group=f"{prefix}:{row.get('URL') or identity}",
            written=text,
        )
    if not lines:
        raise CorpusError(
            f"{path} has no row; GAP needs one for each text below the one that names the columns: check that the file "
            "is whole."
        )


def recognise(beginning: Sequence[str]) -> bool:
    """Return whether the first nonempty line names the columns ``Text``, ``Pronoun`` and ``Pronoun-offset``."""
    first = next((line for line in beginning if line.strip()), "")
    return {*first.rstrip("\r").split("\t")} >= _RECOGNISED


def _read_rows(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    header: list[str] | None = None
    for number, line in read_lines(path):
        where, cells = f"{path}:{number}", line.split("\t")
        if not line.strip():
            continue
        if header is None:
            header = _check_header(where, cells)
        elif len(cells) != len(header):
            raise CorpusError(
                f"{where} has {format_count(len(cells), 'column')}, but the first row names {len(header)}; a row needs "
                "as many, separated by tabs: correct the line."
            )
        else:
            versions = [dict(zip(header, row, strict=True)) for row in (cells, [*map(_unquote, cells)])]
            yield number, next(filter(_has_mentions, versions), versions[0])


def _check_header(where: str, header: list[str]) -> list[str]:
    missing = [column for column in _REQUIRED if column not in header]
    twice = [column for column in _REQUIRED if header.count(column) > 1]
    if missing or twice:
        fault = f"no column {' and '.join(map(repr, missing))}" if missing else f"the column {twice[0]!r} twice"
        raise CorpusError(
            f"{where} names {fault}; the first row of GAP names {', '.join(_REQUIRED)} and perhaps URL, separated by "
            "tabs: correct it, or name the format that the file is in."
        )
    return header


def _unquote(cell: str) -> str:
    return cell[1:-1].replace('""', '"') if len(cell) > 1 and cell[0] == cell[-1] == '"' else cell


def _has_mentions(row: Mapping[str, str]) -> bool:
    """Return whether each mention is in the text at its offset."""
    return all(
        is_offset(row[f"{mention}-offset"]) and row["Text"].startswith(row[mention], int(row[f"{mention}-offset"]))
        for mention in _MENTIONS
    )


def _locate(where: str, row: Mapping[str, str], text: WrittenText, mention: str) -> range:
    """Return the indices of the words of a mention."""
    if not row[mention].strip():
        raise CorpusError(f"{where} has nothing in the column {mention!r}; GAP has a pronoun and two names: write it.")
    (start,) = parse_offsets(where, "GAP", [row[f"{mention}-offset"]])
    end = start + len(row[mention])
    return range(*locate_term(where, row[mention], text, start, end, name="pronoun" if mention == _PRONOUN else "name"))


def _parse_answer(where: str, row: Mapping[str, str], mention: str) -> bool:
    column = f"{mention}-coref"
    answer = _ANSWERS.get(row[column].casefold())
    if answer is None:
        raise CorpusError(
            f"{where} has {quote(row[column])} in the column {column!r}; GAP has TRUE or FALSE there: correct it."
        )
    return answer


def _find_head(words: Sequence[str], place: range) -> int:
    """Return the index of the last word of a mention that is not punctuation or, if all are, of its last word."""
    return next((word for word in reversed(place) if words[word][0].isalnum()), place[-1])
