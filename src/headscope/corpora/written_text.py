"""A text as its author wrote it, with the characters of each word.

Corpora annotate words, and a model reads characters. The corpus says which characters are a word: it has the
text next to its words (`locate_words`), or white space separates the words (`split_text`).
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby, pairwise
from operator import add

PUNCTUATION = frozenset(".,?!;:")
"""The punctuation marks that English writes without a space before them."""

Offsets = tuple[int, int]
"""The first character of a word and the character after its last, counted from 0."""

# The possessive is a word of its own, as in treebanks: terms end before it.
_WORD = re.compile(r"['’][sS]\b|\w+(?:-\w+|['’](?![sS]\b)\w+)*|[^\w\s]")


@dataclass(frozen=True, slots=True, init=False)
class WrittenText:
    """A text and the characters of each of its words.

    Args:
        content: the text.
        offsets: the characters of each word, in order. Words of one token of the text (German *im*, the words *in* and
            *dem*) may have the same characters.

    Attributes:
        content: the text.
        edges: the numbers of `offsets` in one tuple. A tuple for each word of a corpus would make Python's garbage
            collector search all objects of torch.
    """

    content: str
    edges: tuple[int, ...]

    def __init__(self, content: str, offsets: Iterable[Offsets]) -> None:
        object.__setattr__(self, "content", content)
        object.__setattr__(self, "edges", tuple(chain.from_iterable(offsets)))

    @property
    def offsets(self) -> tuple[Offsets, ...]:
        """The characters of each word, in order."""
        edges = iter(self.edges)
        return tuple(zip(edges, edges, strict=True))

    @property
    def words(self) -> tuple[str, ...]:
        """Each word as it is written."""
        return tuple(self.content[start:stop] for start, stop in self.offsets)

    @property
    def fault(self) -> str:
        """The error in the offsets, in words; an empty string if there is none."""
        first, last, length = 0, 0, len(self.content)
        for start, stop in self.offsets:
            if not (first <= start < stop <= length and last <= stop):
                order = f"after one at {first} to {last}" if 0 <= start < stop <= length else ""
                return f"a word at the characters {start} to {stop} {order or f'of a text of {length} characters'}"
            first, last = start, stop
        return ""

    def truncate(self, words: int) -> "WrittenText":
        """Return the text up to the end of its first `words` words."""
        offsets = self.offsets[:words]
        return WrittenText(self.content[: offsets[-1][1] if offsets else 0], offsets)

    def cut(self, first: int, end: int) -> "WrittenText":
        """Return the text from the word `first` to the word before `end`; if `first` is 0, from its beginning."""
        text = self.truncate(end)
        before = text.offsets[first][0] if first else 0
        offsets = tuple((start - before, stop - before) for start, stop in text.offsets[first:])
        return WrittenText(text.content[before:], offsets)


def split_text(text: str) -> tuple[tuple[str, ...], WrittenText]:
    """Return the words of a text, separated by white space, and the text with the characters of each word."""
    words = tuple(text.split())
    # Most texts have single spaces, and sums of lengths are faster than a search.
    written = join_words(words) if " ".join(words) == text else WrittenText(text, locate_tokens(text, words))
    return words, written


def split_words(text: str) -> tuple[tuple[str, ...], WrittenText]:
    """Return the words of a text, and the text with the characters of each word; punctuation is split off.

    Punctuation marks around a word are words of their own: ``(``, ``yes``, ``)``. Punctuation within a word stays
    (*don't*), and equal marks side by side are one word (*...*).
    """
    words: list[str] = []
    for piece in text.split():
        start, stop = 0, len(piece)
        while start < stop and _is_punctuation(piece[start]):
            start += 1
        while stop > start and _is_punctuation(piece[stop - 1]):
            stop -= 1
        before, after = (["".join(marks) for _, marks in groupby(each)] for each in (piece[:start], piece[stop:]))
        words += [*before, *filter(None, [piece[start:stop]]), *after]
    return tuple(words), WrittenText(text, locate_tokens(text, words))


def find_words(text: str) -> WrittenText:
    """Return a text with the characters of its words, for annotation by characters.

    Words are runs of letters and digits, with the hyphens and apostrophes inside them, and single marks of
    punctuation; a possessive *'s* is a word of its own.
    """
    return WrittenText(text, (word.span() for word in _WORD.finditer(text)))


def find_covered(text: WrittenText, start: int, end: int) -> tuple[int, int]:
    """Return the index of the first word that has a character in a range, and the index after the last such word.

    Args:
        text: the text. No two of its words share a character.
        start: the index of the first character.
        end: the index after the last character.
    """
    # Each word begins at an even edge and ends at the next odd one.
    return bisect_right(text.edges, start) // 2, (bisect_left(text.edges, end) + 1) // 2


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character).startswith("P")


def join_words(words: Sequence[str], *, before: str = "") -> WrittenText:
    """Return the text of words without a written text: `before`, and the words joined by single spaces."""
    lengths = [*map(len, words)]
    starts = [*accumulate((length + 1 for length in lengths[:-1]), initial=len(before))]
    return WrittenText(before + " ".join(words), tuple(zip(starts, map(add, starts, lengths), strict=False)))


def write_sentences(words: Iterable[str]) -> WrittenText:
    """Return words as English writes them, with single spaces between them.

    A punctuation mark, a word that begins with an apostrophe (*'s*), and *n't* have no space before them.
    """
    content, offsets = "", list[Offsets]()
    for word in words:
        is_joined = word in PUNCTUATION or word == "n't" or word.startswith("'")
        start = len(content) + (bool(content) and not is_joined)
        content = f"{content:<{start}}{word}"
        offsets.append((start, len(content)))
    return WrittenText(content, tuple(offsets))


def join_texts(texts: Iterable[WrittenText], separator: str = " ") -> WrittenText:
    """Return texts one after the other, with a separator between them."""
    offsets: list[Offsets] = []
    first, contents = 0, []
    for text in texts:
        offsets += ((first + start, first + stop) for start, stop in text.offsets)
        first += len(text.content) + len(separator)
        contents.append(text.content)
    return WrittenText(separator.join(contents), tuple(offsets))


def locate_tokens(text: str, tokens: Iterable[str]) -> tuple[Offsets, ...]:
    """Return the offsets of tokens that follow one another in a text; stop at the first token that does not.

    White space between tokens is ignored.
    """
    offsets: list[Offsets] = []
    end = 0
    for token in tokens:
        start = text.find(token, end)
        if start != end and not (start > end and text[end:start].isspace()):
            break
        end = start + len(token)
        offsets.append((start, end))
    return tuple(offsets)


def locate_words(text: str, tokens: Sequence[str], parts: Mapping[int, Sequence[str]]) -> WrittenText | None:
    """Return a text with the characters of its words; None if it has other words.

    The tokens follow one another in the text, with nothing but white space between them.

    Args:
        text: the text as written.
        tokens: the characters of each token, in order.
        parts: the words of each token that has several, such as *don't*, by the index of the token, counted from 0.
            If they do not spell it, as *in* and *dem* do not spell *im*, each word has all characters of the token.
    """
    offsets = locate_tokens(text, tokens)
    end = offsets[-1][1] if offsets else 0
    if len(offsets) < len(tokens) or text[end:].strip():
        return None
    if not parts:
        return WrittenText(text, offsets)
    divided: list[Offsets] = []
    following = 0
    for number, words in sorted(parts.items()):
        start, stop = offsets[number]
        spelt = "".join(words) == tokens[number]
        divided += offsets[following:number]
        divided += pairwise(accumulate(map(len, words), initial=start)) if spelt else [(start, stop)] * len(words)
        following = number + 1
    return WrittenText(text, (*divided, *offsets[following:]))
