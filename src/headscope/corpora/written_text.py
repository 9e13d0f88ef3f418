"""A text as its author wrote it, and where each word is in it.

Corpora annotate words, and a model reads characters. Which characters are a word is known from the corpus: it has the
text beside its words (`locate_words`), or the words are what white space parts (`split_text`).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

Offsets = tuple[int, int]
"""The first character of a word and the one behind its last, counted from 0."""


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A text and the characters of each of its words.

    Attributes:
        content: the text.
        offsets: of each word, in order. Words of one token of the text (German *im*, the words *in* and *dem*) may have
            the same characters.
    """

    content: str
    offsets: tuple[Offsets, ...]

    @property
    def fault(self) -> str:
        """What is wrong with the offsets; empty where nothing is."""
        before = (0, 0)
        for start, stop in self.offsets:
            if not 0 <= start < stop <= len(self.content):
                return f"a word at the characters {start} to {stop} of a text of {len(self.content)} characters"
            if start < before[0] or stop < before[1]:
                return f"a word at the characters {start} to {stop} behind one at {before[0]} to {before[1]}"
            before = start, stop
        return ""

    def truncate(self, words: int) -> "WrittenText":
        """Return the text up to the end of its first `words` words."""
        offsets = self.offsets[:words]
        return WrittenText(self.content[: offsets[-1][1] if offsets else 0], offsets)

    def divide(self, word: int) -> list["WrittenText"]:
        """Return the text up to the end of the word before this one, and the text from this one on."""
        first = self.offsets[word][0]
        rest = tuple((start - first, stop - first) for start, stop in self.offsets[word:])
        return [self.truncate(word), WrittenText(self.content[first:], rest)]


def split_text(text: str) -> tuple[tuple[str, ...], WrittenText]:
    """Return what white space parts, as `str.split` does, and the text with the characters of each."""
    matches = [*re.finditer(r"\S+", text)]
    return tuple(match[0] for match in matches), WrittenText(text, tuple(match.span() for match in matches))


def join_words(words: Sequence[str], *, before: str = "") -> WrittenText:
    """Return words joined by single spaces, behind some characters: the text of words whose own text is not known."""
    ends = accumulate(map(len, words), lambda end, length: end + 1 + length, initial=len(before) - 1)
    starts = [end + 1 for end in ends]
    offsets = tuple((start, start + len(word)) for start, word in zip(starts, words, strict=False))
    return WrittenText(before + " ".join(words), offsets)


def join_texts(texts: Iterable[WrittenText], separator: str = " ") -> WrittenText:
    """Return texts one after the other, with a separator between them."""
    offsets: list[Offsets] = []
    first, contents = 0, []
    for text in texts:
        offsets += ((first + start, first + stop) for start, stop in text.offsets)
        first += len(text.content) + len(separator)
        contents.append(text.content)
    return WrittenText(separator.join(contents), tuple(offsets))


def locate_words(text: str, tokens: Iterable[tuple[str, Sequence[str]]]) -> WrittenText | None:
    """Return a text with the characters of its words; None if it has other words.

    The tokens follow one another in the text, with nothing but white space between them.

    Args:
        text: as written.
        tokens: the characters of each token, and the words in it: one, or several as in *don't*. Where these do not
            spell their token, as *in* and *dem* do not spell *im*, each has all of its characters.
    """
    offsets: list[Offsets] = []
    end = 0
    for token, words in tokens:
        start = end
        if not text.startswith(token, start):
            start = _skip_space(text, start)
            if not text.startswith(token, start):
                return None
        end = start + len(token)
        if len(words) == 1:
            offsets.append((start, end))
        elif "".join(words) == token:
            offsets += pairwise(accumulate(map(len, words), initial=start))
        else:
            offsets += [(start, end)] * len(words)
    return None if text[end:].strip() else WrittenText(text, tuple(offsets))


def _skip_space(text: str, start: int) -> int:
    while start < len(text) and text[start].isspace():
        start += 1
    return start
