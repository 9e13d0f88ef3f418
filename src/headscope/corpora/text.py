"""Plain text: single sentences, or pairs of consecutive paragraphs, the two segments that BERT was trained on.

The three layouts of paragraphs differ only in the form of a paragraph and in the end of a run of paragraphs:

=================  ====================================  ===================================
reader             a paragraph                           a run ends at
=================  ====================================  ===================================
read_text_lines    a line                                an empty line
read_text_wrapped  lines up to the next empty line       the end of the file
read_wikitext      a line                                a heading, `` = = Section = = ``
=================  ====================================  ===================================

Within a run of paragraphs 1, 2, 3 the pairs are (1, 2) and (2, 3): each paragraph is paired with
the next, so most paragraphs are in two documents. All pairs of a file (or of an article) have the
same `Document.group`, so the two are never split between choosing and scoring.

A pair is written as its two paragraphs joined by a space, without the white space around their lines.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice, pairwise
from pathlib import Path
from typing import BinaryIO

from headscope.corpora.document import Document
from headscope.corpora.written_text import split_text
from headscope.errors import CorpusError
from headscope.files import reading
from headscope.guards.formats import MEGABYTE
from headscope.guards.lines import LineError, split_lines

MIN_WORDS = 20
"""The least number of words in a paragraph. Shorter ones are mostly headings, captions and lines of dialogue."""

LARGEST_TEXT = 16 * MEGABYTE
"""The greatest size in bytes of a line or a run of lines, but not of a file: five times *War and Peace*."""

_LINE = 100
"""The memory that a line takes in addition to its characters, in bytes."""

_LONGEST_WRAPPED_LINE = 120


@dataclass(frozen=True, slots=True)
class _Paragraph:
    line: int
    text: str
    group: str


def read_lines(path: Path, *, ends: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the number (from 1) and the text of each line of a UTF-8 file.

    If `ends` is true, the text keeps its line end. A byte order mark is dropped.

    Raises:
        CorpusError: a line holds bytes that are not UTF-8, or is longer than `LARGEST_TEXT`.
    """
    # Read as bytes: a text file would split lines at a lone "\r" too, and could not say where decoding failed.
    with reading(path) as file:
        for number, line in _split_lines(path, file):
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                raise CorpusError(
                    f"{path}:{number} holds the byte 0x{line[error.start]:02x}, which is not UTF-8; headscope reads "
                    f"UTF-8: convert the file, for instance with `iconv -f LATIN1 -t UTF-8`."
                ) from None
            if number == 1:
                text = text.removeprefix("\ufeff")
            yield number, text if ends else text.rstrip("\r\n")


def _split_lines(path: Path, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    try:
        for number, line in split_lines(file, LARGEST_TEXT):
            if number == 1 and not line.endswith(b"\n") and b"\r" in line.rstrip(b"\r"):
                raise CorpusError(
                    f"{path} ends its lines by carriage returns alone, as files of old computers do; convert it, for "
                    "instance with `tr '\\r' '\\n'`."
                )
            yield number, line
    except LineError as error:
        raise CorpusError(
            f"{path}:{error.number} {error}; give each text a line of its own, or name the format that the file is in."
        ) from None


def read_blocks(path: Path, blank: str | None = " ") -> Iterator[list[tuple[int, str]]]:
    """Yield each block of lines between empty lines; a line is its number and its text.

    A line is empty if it has only characters of `blank`; None means any white space.

    Raises:
        CorpusError: one of the errors of `read_lines`, or a block is longer than `LARGEST_TEXT`.
    """
    block: list[tuple[int, str]] = []
    size = 0
    for numbered in read_lines(path):
        if numbered[1].strip(blank):
            block.append(numbered)
            size += len(numbered[1]) + _LINE
            if size > LARGEST_TEXT:
                raise CorpusError(
                    f"{path}:{block[0][0]} begins {len(block):,} lines without an empty one, too many for a text; put "
                    "an empty line after each text, or name the format of the file."
                )
        elif block:
            yield block
            block, size = [], 0
    if block:
        yield block


def read_text_lines(path: Path, *, name: str | None = None, min_words: int = MIN_WORDS) -> Iterator[Document]:
    """Return the pairs of consecutive paragraphs in a file with one paragraph a line.

    An empty line separates unrelated paragraphs.

    Args:
        path: the path of the file.
        name: the name of the file in ids and groups; by default its file name.
        min_words: the least number of words; pairs with a shorter paragraph are left out.

    Raises:
        CorpusError: the file is empty, or not UTF-8.
    """
    prefix = name or path.name
    paragraphs = (_Paragraph(number, line.strip(), prefix) for number, line in read_lines(path))
    return _pair_up(path, prefix, paragraphs, min_words)


def read_text_wrapped(path: Path, *, name: str | None = None, min_words: int = MIN_WORDS) -> Iterator[Document]:
    """Return the pairs of consecutive paragraphs in a file of hard-wrapped lines.

    An empty line ends a paragraph. The arguments and errors are those of `read_text_lines`.
    """
    prefix = name or path.name
    blocks = read_blocks(path, blank=None)
    paragraphs = (_Paragraph(lines[0][0], " ".join(line.strip() for _, line in lines), prefix) for lines in blocks)
    return _pair_up(path, prefix, paragraphs, min_words)


def read_wikitext(path: Path, *, name: str | None = None, min_words: int = MIN_WORDS) -> Iterator[Document]:
    """Return the pairs of consecutive paragraphs in a file of WikiText.

    A paragraph is a line, and articles and sections have headings. The group of a pair is its article. The arguments
    and errors are those of `read_text_lines`.
    """
    prefix = name or path.name

    def read_paragraphs() -> Iterator[_Paragraph]:
        group = prefix
        for number, line in read_lines(path):
            heading = _parse_heading(line)
            if heading is not None:
                group = group if heading.startswith("= ") else f"{prefix}:{heading}"
                yield _Paragraph(number, "", group)
            elif text := line.strip():
                yield _Paragraph(number, text, group)

    return _pair_up(path, prefix, read_paragraphs(), min_words)


def read_sentences(path: Path, *, name: str | None = None) -> Iterator[Document]:
    """Yield each line of a file as a document; white space separates its words.

    If the file has empty lines, they separate the texts that the sentences come from; otherwise the texts are unknown.
    The arguments (without `min_words`) and errors are those of `read_text_lines`.
    """
    prefix, blocks = name or path.name, read_blocks(path, blank=None)
    opening = list(islice(blocks, 2))
    if not opening:
        raise CorpusError(f"{path} has no text; a text corpus needs sentences, one a line: check that it is whole.")
    for block in chain(opening, blocks):
        group = f"{prefix}:{block[0][0]}" if len(opening) > 1 else ""
        for number, line in block:
            words, written = split_text(line)
            yield Document(f"{prefix}:{number}", words, group=group, written=written)


def recognise_wikitext(beginning: Sequence[str]) -> bool:
    """Return whether a file that begins with these lines opens with the title of an article, `` = Title = ``."""
    first = next((line for line in beginning if line.strip()), "")
    heading = _parse_heading(first)
    return heading is not None and not heading.startswith("= ")


def recognise_text_wrapped(beginning: Sequence[str]) -> bool:
    """Return whether almost all lines are short, and form several paragraphs, at least one with several lines."""
    blocks = [len(list(block)) for filled, block in groupby(beginning, key=lambda line: bool(line.strip())) if filled]
    long = sum(len(line) > _LONGEST_WRAPPED_LINE for line in beginning)
    # One line in a hundred may be longer: an address or a table cannot be wrapped.
    return len(blocks) > 1 and max(blocks) > 1 and long * 100 <= len(beginning)


def recognise_text_lines(beginning: Sequence[str]) -> bool:
    """Return whether two consecutive lines are long enough to be a pair of paragraphs."""
    words = [len(line.split()) for line in beginning]
    return any(min(pair) >= MIN_WORDS for pair in pairwise(words))


def recognise_text(beginning: Sequence[str]) -> bool:
    """Return whether there is anything but white space in these lines."""
    return any(line.strip() for line in beginning)


def _parse_heading(line: str) -> str | None:
    text = line.strip()
    if text.startswith("= ") and text.endswith(" ="):
        return text[2:-2].strip() or None
    return None


def _pair_up(path: Path, prefix: str, paragraphs: Iterator[_Paragraph], min_words: int) -> Iterator[Document]:
    """Yield a document for each two neighbouring paragraphs that both have at least `min_words` words.

    A paragraph without words separates its neighbours.

    Raises:
        CorpusError: No paragraph has a word.
    """
    empty, first, boundary = True, _Paragraph(0, "", prefix), 0
    for second in paragraphs:
        count = len(second.text.split())
        empty = empty and not count
        if min(boundary, count) >= max(min_words, 1):
            words, written = split_text(f"{first.text} {second.text}")
            yield Document(f"{prefix}:{first.line}", words, group=first.group, boundary=boundary, written=written)
        first, boundary = second, count
    if empty:
        raise CorpusError(f"{path} has no text; a text corpus needs paragraphs: check that the file is whole.")


def format_count(count: int, noun: str) -> str:
    """Return a number and its noun, in the plural unless it is 1."""
    return f"{count} {noun}{'s' * (count != 1)}"
