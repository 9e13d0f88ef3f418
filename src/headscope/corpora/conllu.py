"""Treebanks in CoNLL-U, the format of Universal Dependencies, or CoNLL-U Plus: a sentence is a Document.

The package `conllu` parses ids, heads and comments. Lines and columns are split here: the package does not keep line
numbers, accepts lines with missing columns, and also splits at two spaces.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, count, islice
from pathlib import Path
from typing import NoReturn

from conllu.exceptions import ParseException
from conllu.parser import parse_id_value, parse_int_value, parse_pair_value

from headscope.corpora import conll2009
from headscope.corpora.columns import (
    COLUMNS,
    DEPREL,
    FEATS,
    FORM,
    HEAD,
    HEADER,
    ID,
    MISC,
    UPOS,
    Layout,
    has_header,
    parse_header,
)
from headscope.corpora.document import Document, Link, Skipped, Span
from headscope.corpora.identities import Identities
from headscope.corpora.text import format_count, read_blocks, read_lines
from headscope.corpora.trees import find_fault
from headscope.corpora.written_text import WrittenText, locate_words
from headscope.errors import CorpusError, quote

_NEGATIVE = ("Polarity", "PronType")
"""The features whose value ``Neg`` marks a word of negation: *not*, *no*, *never*, *nothing*, *nor*."""

_ENTITIES = "global.Entity"
_COMMENTS = ("sent_id", "newdoc", "text", HEADER, _ENTITIES)
"""The beginnings of the comments that are read."""

_CONTRADICTION = "texts that contradict their words (rebuilt from the words; the sentences are used)"

Row = tuple[int, list[str]]
"""The number and the columns of a line, which has a word, a token of several words, or an empty node."""

_Ranges = dict[int, tuple[int, list[str]]]
"""For each token of several words, by the index of its first word: the index after its last word, and its columns."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with its lines, for formats that add annotation to the tree.

    Attributes:
        document: the document that `read` yields for it.
        rows: its lines without comments, with the ten columns of CoNLL-U and the unnamed columns after them.
        text: the number of the line with the ``newdoc`` that opened its text; 0 if there is no ``newdoc``.
        attributes: the attributes of a coreference entity, in the order of ``global.Entity``; empty without that
            comment.
    """

    document: Document
    rows: list[Row]
    text: int
    attributes: tuple[str, ...]


class _Parser:
    """Parses the words of the sentences of one file, and their links and tags.

    The parser keeps parsed ids, heads, links and tags, since a file repeats them many times.
    """

    def __init__(self, path: Path, layout: Layout) -> None:
        self.path, self.layout = path, layout
        self._parse_id = lru_cache(maxsize=1 << 10)(_parse_id)
        self._parse_head = lru_cache(maxsize=1 << 10)(parse_int_value)
        self._make_link = lru_cache(maxsize=1 << 14)(Link)
        self._make_tag = lru_cache(maxsize=1 << 14)(_make_tag)

    def parse_columns(self, number: int, line: str) -> list[str]:
        """Return the columns of a line; raise an error if their number is wrong."""
        columns = self.layout.split(line)
        if columns is None or (self.layout.extended and conll2009.recognise(columns)):
            self._refuse_line(number, line.split("\t"))
        return columns

    def parse_words(self, lines: Iterable[Row]) -> tuple[list[list[str]], list[int | None], _Ranges]:
        """Return the columns of each word of a sentence, the head of each word, and the tokens of several words.

        The head of a word is None if it is ``_``.
        """
        rows: list[list[str]] = []
        ranges: _Ranges = {}
        heads: list[int | None] = []
        numbers: list[int] = []
        last_of_token, line_of_token = 0, 0
        for number, columns in lines:
            word_id = self._parse_id(columns[ID])
            if word_id == len(rows) + 1:
                if not (columns[FORM].strip() and columns[DEPREL].strip()):
                    self._refuse_empty_column(number, columns)
                try:
                    heads.append(self._parse_head(columns[HEAD]))
                except (ParseException, ValueError) as error:
                    self._refuse_head(number, columns[HEAD], error)
                rows.append(columns)
                numbers.append(number)
                continue
            match word_id:
                case (int(first), "-", int(last)) if first == len(rows) + 1:
                    last_of_token, line_of_token = last, number
                    ranges[first - 1] = last, columns
                case (int(previous), ".", int()) if previous == len(rows):
                    pass
                case _:
                    raise CorpusError(
                        f"{self.path}:{number} has the id {quote(columns[ID])} where {len(rows) + 1} is expected; "
                        f"number the words of a sentence 1, 2, 3 ... and leave an empty line after its last."
                    )
        if last_of_token > len(rows):
            raise CorpusError(
                f"{self.path}:{line_of_token} has a token of several words that goes to word {last_of_token}, but its "
                f"sentence ends at word {len(rows)}: check that the sentence is whole."
            )
        for word, (number, head) in enumerate(zip(numbers, heads, strict=True), start=1):
            if head is not None and (head == word or not 0 <= head <= len(rows)):
                raise CorpusError(
                    f"{self.path}:{number} gives word {word} of {len(rows)} the head {head}; a head is 0 for the root, "
                    f"the id of another word of the sentence, or '_' if there is none: correct column "
                    f"{self.layout.locate(HEAD)}."
                )
        return rows, heads, ranges

    def make_links(self, rows: Sequence[Sequence[str]], heads: Sequence[int | None]) -> Iterator[Link]:
        """Return the links from the words to their heads; a word with the head 0 or ``_`` has no link."""
        return (self._make_link(i, head - 1, rows[i][DEPREL]) for i, head in enumerate(heads) if head)

    def make_tags(self, rows: Sequence[Sequence[str]]) -> Iterator[Span]:
        """Return the span of each word's part of speech; a word without a part of speech has no span."""
        return filter(None, map(self._make_tag, count(), [columns[UPOS] for columns in rows]))

    def _refuse_line(self, number: int, columns: Sequence[str]) -> NoReturn:
        if conll2009.recognise(columns):
            raise CorpusError(
                f"{self.path}:{number} has the columns of CoNLL-2009, which headscope does not read; it reads trees in "
                f"CoNLL-U, and with them roles of PropBank (`headscope list corpora`): convert the file to CoNLL-U."
            )
        by = f" (as line {self.layout.line} says)" if self.layout.line else ""
        raise CorpusError(
            f"{self.path}:{number} has {format_count(len(columns), 'column')}; CoNLL-U needs "
            f"{self.layout.width}{by}, separated by tabs: correct the line, or name the format that the file is in."
        )

    def _refuse_empty_column(self, number: int, columns: Sequence[str]) -> NoReturn:
        column = next(column for column in (FORM, DEPREL) if not columns[column].strip())
        raise CorpusError(
            f"{self.path}:{number} has nothing in column {self.layout.locate(column)} ({COLUMNS[column]}); CoNLL-U "
            f"leaves no column empty: write the value, or '_' if it is not known."
        )

    def _refuse_head(self, number: int, head: str, error: Exception) -> NoReturn:
        # Python parses no number of more than 4,300 digits.
        fault = "not a number" if isinstance(error, ParseException) else "too long a number"
        raise CorpusError(
            f"{self.path}:{number} has the head {quote(head)}, which is {fault}; a head is 0 for the root, the id of "
            f"another word of the sentence, or '_' if there is none: correct column {self.layout.locate(HEAD)}."
        ) from None


def read(path: Path, *, name: str | None = None) -> Iterator[Document | Skipped]:
    """Return the sentences of one file, with a dependency link and a part of speech for each word.

    The words are the syntactic words. Empty nodes (``3.1``) are ignored. A word whose head is 0 or ``_`` has no link. A
    sentence whose heads form no tree keeps its links, and has its fault in `Document.tree_faults`. The spans of words
    of negation (``Polarity=Neg``, ``PronType=Neg``) follow the parts of speech; trees without features have none. The
    id of a document ends in its ``sent_id`` or, without one, in the number of its first line. Its group is the text
    that ``newdoc`` opened or, without one, the sentence itself.

    The columns are the ten of CoNLL-U or, in CoNLL-U Plus, the columns that ``# global.columns`` names, in any order.
    Of the ten, only ID and FORM are required: without the others, words have no head, no part of speech and so on.

    The text as written is the comment ``# text``. Without it, the text is rebuilt from the forms and ``SpaceAfter=No``;
    it is unknown if no word has ``SpaceAfter=No``. If the comment has other words than the sentence, the text is
    rebuilt too, and a `Skipped` reports it. The words of a multi-word token (``1-2``) have characters of their own if
    they spell the token; otherwise each has all characters of the token.

    Raises:
        CorpusError: a line is malformed or of CoNLL-2009, a required column has no name, or the file holds no
            sentence, no words or is not UTF-8.
    """
    return (part if isinstance(part, Skipped) else part.document for part in read_sentences(path, name=name))


def read_sentences(path: Path, *, name: str | None = None, extended: bool = False) -> Iterator[Sentence | Skipped]:
    """Yield each sentence of a treebank with its lines, for formats that add annotation to the trees.

    If `extended` is true, lines have more than ten columns; this function does not check the columns after the tenth.
    """
    prefix = name or path.name
    parser = _Parser(path, Layout(extended=extended))
    text: str | None = None
    line_of_text, attributes = 0, tuple[str, ...]()
    identities = Identities()
    known: set[str] | None = None
    for block in read_blocks(path):
        sentence, comment, line_of_comment, line_of_block = "", "", 0, block[0][0]
        lines: list[Row] = []
        for number, line in block:
            if not line.startswith("#"):
                lines.append((number, parser.parse_columns(number, line)))
            elif line[1:].lstrip().startswith(_COMMENTS):
                key, value = parse_pair_value(line[1:])
                if key in ("newdoc", "newdoc id"):
                    text, line_of_text = value or str(number), number
                elif key == "sent_id" and value:
                    sentence = value
                elif key == "text" and value:
                    comment, line_of_comment = value, number
                elif key == HEADER and not extended:
                    parser.layout = parse_header(path, number, value or "")
                elif key == _ENTITIES and value:
                    attributes = tuple(value.split("-"))
        rows, heads, ranges = parser.parse_words(lines)
        if not rows:
            continue
        if not identities and all(columns[FORM] == "_" for columns in rows):
            # Checked at the first sentence, since a selection of documents may stop reading early.
            _refuse_without_words(path, parser.layout)
        identity = f"{prefix}:{sentence or line_of_block}"
        if known is None and not identities.add(identity):
            parts = read_sentences(path, name=name, extended=extended)
            before = (part.document.id for part in parts if not isinstance(part, Skipped))
            known = {*islice(before, len(identities))}
        if known is not None:
            if identity in known:
                # Parsers number the sentences of each text anew, so files joined from their output repeat a sent_id.
                identity = f"{identity}@{line_of_block}"
            known.add(identity)
        written = _find_text(comment, rows, ranges)
        document = Document(
            identity,
            words=tuple([columns[FORM] for columns in rows]),
            links=tuple(parser.make_links(rows, heads)),
            spans=(*parser.make_tags(rows), *_find_negations(rows)),
            group=identity if text is None else f"{prefix}:{text}",
            written=written,
            tree_faults=tuple(filter(None, [find_fault(heads)])),
        )
        yield Sentence(document, lines, line_of_text, attributes)
        # This comes after its document, since reading stops after the last document of a selection.
        if comment and (written is None or written.content != comment):
            yield Skipped(f"{path}:{line_of_comment}", _CONTRADICTION)
    if not identities:
        raise CorpusError(
            f"{path} has no sentence; CoNLL-U needs a line of {parser.layout.width} columns, separated by tabs, for "
            f"each word: check that the file is whole."
        )


def recognise(beginning: Sequence[str]) -> bool:
    """Return whether these first lines of a file name its columns, or hold ten columns and the id of a first word."""
    return has_header(beginning) or count_columns(beginning) == len(COLUMNS)


def count_columns(beginning: Sequence[str]) -> int | None:
    """Return the number of columns of the first line of data; None if its id is not that of a first word.

    The id of a first word is ``1``, ``1-2`` (a token of several words) or ``0.1`` (an empty node before it).
    """
    first = next((line for line in beginning if line.strip() and not line.startswith("#")), "")
    columns = first.split("\t")
    # The id is checked because other tables have ten columns too, such as STS-B in GLUE.
    return len(columns) if columns[ID].partition("-")[0] in ("1", "0.1") else None


def _refuse_without_words(path: Path, layout: Layout) -> None:
    """Raise an error for a file in which every word is ``_``."""
    lines = (layout.split(line) for _, line in read_lines(path) if line.strip(" ") and not line.startswith("#"))
    if all(columns is None or columns[FORM] == "_" for columns in lines):
        raise CorpusError(
            f"{path} has no words (every FORM is '_'), as treebanks have whose text cannot be passed on; get the text "
            f"from its publisher, as the README of the treebank says, and give the file with words."
        )


def _find_text(comment: str, rows: Sequence[list[str]], ranges: _Ranges) -> WrittenText | None:
    """Return the text of a sentence as written; None if it is unknown.

    The text is the comment ``text`` or, if the comment is missing or has other words, the text that the forms spell.
    """
    tokens, parts = _join_tokens(rows, ranges) if ranges else (rows, {})
    forms = [columns[FORM] for columns in tokens]
    if comment and (written := locate_words(comment, forms, parts)):
        return written
    spaces = ["" if "SpaceAfter=No" in columns[MISC].split("|") else " " for columns in tokens]
    if all(spaces):
        return None
    spaces[-1] = ""
    return locate_words("".join(chain.from_iterable(zip(forms, spaces, strict=True))), forms, parts)


def _join_tokens(rows: Sequence[list[str]], ranges: _Ranges) -> tuple[list[list[str]], dict[int, list[str]]]:
    """Return the columns of each token of a sentence, and the words of tokens of several words by the token's index."""
    tokens: list[list[str]] = []
    parts: dict[int, list[str]] = {}
    word = 0
    while word < len(rows):
        end, columns = ranges.get(word, (word, []))
        if columns and columns[FORM].strip() not in ("", "_"):
            parts[len(tokens)] = [row[FORM] for row in rows[word:end]]
        else:
            end, columns = word + 1, rows[word]
        tokens.append(columns)
        word = end
    return tokens, parts


def _make_tag(word: int, upos: str) -> Span | None:
    """Return the span of a word's part of speech; None if it has none."""
    upos = upos.strip()
    return Span(word, word + 1, upos, kind="upos") if upos not in ("", "_") else None


def _find_negations(rows: Iterable[Sequence[str]]) -> Iterator[Span]:
    for i, columns in enumerate(rows):
        if "Neg" in columns[FEATS] and (negation := _find_negation(columns[FEATS])):
            yield Span(i, i + 1, negation, "negation")


def _find_negation(features: str) -> str:
    """Return the feature that marks a word of negation; empty if no feature does."""
    for feature in features.split("|"):
        name, _, values = feature.strip().partition("=")
        if name in _NEGATIVE and "Neg" in values.split(","):
            return f"{name}=Neg"
    return ""


def _parse_id(text: str) -> object:
    try:
        value: object = parse_id_value(text)
    except (ParseException, ValueError):
        return None
    return value
