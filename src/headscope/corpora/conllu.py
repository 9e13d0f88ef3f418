"""Treebanks in CoNLL-U, the format of Universal Dependencies: a sentence is a Document.

The package `conllu` says what an id, a head and a comment are. Lines and columns are split here:
the package forgets line numbers, takes lines with missing columns, and splits at two spaces too.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from conllu.exceptions import ParseException
from conllu.parser import parse_comment_line, parse_id_value, parse_int_value

from headscope.corpora.document import Document, Link, Span
from headscope.corpora.text import format_count, read_blocks
from headscope.errors import CorpusError, quote

_COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
_ID, _FORM, _UPOS, _FEATS, _HEAD, _DEPREL = map(_COLUMNS.index, ("ID", "FORM", "UPOS", "FEATS", "HEAD", "DEPREL"))
_NEGATIVE = ("Polarity", "PronType")
"""The features of which the value ``Neg`` marks a word of negation: *not*, *no*, *never*, *nothing*, *nor*."""


@dataclass(frozen=True, slots=True)
class _Word:
    line: int
    form: str
    upos: str
    negation: str
    head: int | None
    relation: str


def read(path: Path, *, name: str | None = None) -> Iterator[Document]:
    """The sentences of one file, with a dependency link and a part of speech for each word.

    The words are the syntactic words: multi-word tokens (``1-2``) and empty nodes (``3.1``) are
    passed over. A word whose head is 0 or ``_`` has no link. After the parts of speech come the words
    of negation, as the features mark them (``Polarity=Neg``, ``PronType=Neg``); trees without features
    have none. The id of a document ends in its
    ``sent_id`` or, where there is none, in the number of its first line; its group is the text
    that ``newdoc`` opened or, where there is none, the sentence itself.

    Raises:
        CorpusError: a line is malformed, or the file holds no sentence or is not UTF-8.
    """
    return (document for document, _ in read_sentences(path, name=name))


def read_sentences(
    path: Path, *, name: str | None = None, extended: bool = False
) -> Iterator[tuple[Document, list[tuple[int, str]]]]:
    """The documents of `read`, each with its numbered lines, for formats that add columns to the ten.

    With `extended`, a line has more than ten columns; those after the tenth are not looked at.
    """
    prefix = name or path.name
    text: str | None = None
    identities: set[str] = set()
    for block in read_blocks(path):
        sentence, line_of_block = "", block[0][0]
        for number, line in block:
            if not line.startswith("#"):
                continue
            for key, value in parse_comment_line(line):
                if key == "sent_id":
                    sentence = value
                elif key in ("newdoc", "newdoc id"):
                    text = value or str(number)
        lines = [(number, line) for number, line in block if not line.startswith("#")]
        words = _parse_words(path, lines, extended)
        if not words:
            continue
        identity = f"{prefix}:{sentence or line_of_block}"
        if identity in identities:
            # Parsers number the sentences of each text anew, so files joined from their output repeat a sent_id.
            identity = f"{identity}@{line_of_block}"
        identities.add(identity)
        document = Document(
            identity,
            words=tuple(word.form for word in words),
            links=tuple(Link(i, word.head - 1, word.relation) for i, word in enumerate(words) if word.head),
            spans=(
                *(Span(i, i + 1, word.upos, kind="upos") for i, word in enumerate(words) if word.upos != "_"),
                *(Span(i, i + 1, word.negation, kind="negation") for i, word in enumerate(words) if word.negation),
            ),
            group=identity if text is None else f"{prefix}:{text}",
        )
        yield document, lines
    if not identities:
        raise CorpusError(
            f"{path} has no sentence; CoNLL-U needs a line of {_describe_columns(extended)} columns, "
            f"separated by tabs, for each word: check that the file is whole."
        )


def recognise(beginning: Sequence[str]) -> bool:
    """True if a file that begins with these lines is CoNLL-U: 10 columns, and the id of a first word."""
    return count_columns(beginning) == len(_COLUMNS)


def count_columns(beginning: Sequence[str]) -> int | None:
    """The columns of the first line that is no comment, or None if it does not begin with the id of a first word."""
    first = next((line for line in beginning if line.strip() and not line.startswith("#")), "")
    columns = first.split("\t")
    # The id is looked at because tables of other kinds have ten columns too, as STS-B in GLUE has.
    return len(columns) if columns[_ID].partition("-")[0] in ("1", "0.1") else None


def _describe_columns(extended: bool) -> str:
    return f"more than {len(_COLUMNS)}" if extended else str(len(_COLUMNS))


def _parse_words(path: Path, lines: Iterable[tuple[int, str]], extended: bool) -> list[_Word]:
    words: list[_Word] = []
    last_of_token, line_of_token = 0, 0
    for number, line in lines:
        columns = line.split("\t")
        if len(columns) <= len(_COLUMNS) if extended else len(columns) != len(_COLUMNS):
            raise CorpusError(
                f"{path}:{number} has {format_count(len(columns), 'column')}; CoNLL-U needs "
                f"{_describe_columns(extended)}, separated by tabs: correct the line, or name the format that "
                f"the file is in."
            )
        match _parse_id(columns[_ID]):
            case int(word_id) if word_id == len(words) + 1:
                words.append(_parse_word(path, number, columns))
            case (int(first), "-", int(last)) if first == len(words) + 1:
                last_of_token, line_of_token = last, number
            case (int(previous), ".", int()) if previous == len(words):
                pass
            case _:
                raise CorpusError(
                    f"{path}:{number} has the id {quote(columns[_ID])} where {len(words) + 1} is expected; "
                    f"number the words of a sentence 1, 2, 3 ... and leave an empty line after its last."
                )
    if last_of_token > len(words):
        raise CorpusError(
            f"{path}:{line_of_token} has a token of several words that goes to word {last_of_token}, but its sentence "
            f"ends at word {len(words)}: check that the sentence is whole."
        )
    for i, word in enumerate(words, start=1):
        if word.head is not None and (word.head == i or not 0 <= word.head <= len(words)):
            raise CorpusError(
                f"{path}:{word.line} gives word {i} of {len(words)} the head {word.head}; a head is 0 for the root, "
                f"the id of another word of the sentence, or '_' if there is none: correct column {_HEAD + 1}."
            )
    return words


def _parse_word(path: Path, number: int, columns: Sequence[str]) -> _Word:
    for column in (_FORM, _DEPREL):
        if not columns[column].strip():
            raise CorpusError(
                f"{path}:{number} has nothing in column {column + 1} ({_COLUMNS[column]}); CoNLL-U leaves no column "
                f"empty: write the value, or '_' if it is not known."
            )
    try:
        head: int | None = parse_int_value(columns[_HEAD])
    except (ParseException, ValueError) as error:
        # Python takes no number of more than 4,300 digits.
        fault = "not a number" if isinstance(error, ParseException) else "too long a number"
        raise CorpusError(
            f"{path}:{number} has the head {quote(columns[_HEAD])}, which is {fault}; a head is 0 for the root, "
            f"the id of another word of the sentence, or '_' if there is none: correct column {_HEAD + 1}."
        ) from None
    upos = columns[_UPOS].strip() or "_"
    return _Word(number, columns[_FORM], upos, _find_negation(columns[_FEATS]), head, columns[_DEPREL])


def _find_negation(features: str) -> str:
    """The feature that makes a word one of negation; empty if none does."""
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
