"""Terms that a corpus annotates by their characters: checks that the text has them there, and finds their words."""

import re
from collections.abc import Sequence

from headscope.corpora.written_text import WrittenText, find_covered
from headscope.errors import CorpusError, quote


def is_offset(text: str) -> bool:
    """Return whether a text is a whole number of at most nine digits."""
    return re.fullmatch("[0-9]{1,9}", text) is not None


def parse_offsets(where: str, title: str, offsets: Sequence[str]) -> list[int]:
    """Return offsets as numbers.

    Args:
        where: the location of the offsets, for messages.
        title: the name of the format, for messages.
        offsets: the offsets as written.

    Raises:
        CorpusError: an offset is not a whole number, or has more than nine digits.
    """
    if not all(map(is_offset, offsets)):
        raise CorpusError(
            f"{where} has the offset{'s' * (len(offsets) > 1)} {' and '.join(map(quote, offsets))}; {title} counts "
            f"the characters of the text from 0: write {'two whole numbers' if len(offsets) > 1 else 'a whole number'}."
        )
    return [*map(int, offsets)]


def locate_term(
    where: str, term: str, text: WrittenText, start: int, end: int, *, name: str = "term"
) -> tuple[int, int]:
    """Return the index of the first word that overlaps a term, and the index after the last such word.

    Args:
        where: the location of the term, for messages.
        term: the term as annotated.
        text: the text, with its words (`find_words`).
        start: the index of the first character of the term.
        end: the index after its last character.
        name: the name of the term in error messages.

    Raises:
        CorpusError: the characters from `start` to `end` are not the term.
    """
    if text.content[start:end] != term:
        raise CorpusError(
            f"{where} has the {name} {quote(term)}, but the characters {start} to {end} of its text are "
            f"{quote(text.content[start:end])}; the offsets of a {name} cut it out of the text: correct them."
        )
    return find_covered(text, start, end)
