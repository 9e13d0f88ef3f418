"""Finds the word of each token, by the characters that words and tokens have in a text.

Words that share a token are a *unit*: a language model reads both Chinese words of a token at once. Words with the same
characters are a unit too, such as *in* and *dem*, which both have the characters of German *im*.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from tokenizers import Encoding
from transformers import PreTrainedTokenizerBase

from headscope.corpora.written_text import Offsets, WrittenText

SPECIAL, NO_WORD = -1, -2
"""The values in place of a word, for a token that the tokenizer adds, and for a token outside words (blank lines)."""

_ALIKE = re.compile(r"(\S)\1*")

REPLACEMENT = "\ufffd"
"""The character in place of an unreadable one; tokenizers may leave it out."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """The unit of each word and of each token of a text.

    Attributes:
        units: The unit of each word, in order from 0.
        tokens: The unit of each token, or `SPECIAL` or `NO_WORD`.
        dropped: The first visible character that is not in a token; empty if every one is in a token.
    """

    units: list[int]
    tokens: list[int]
    dropped: str = ""


def assign_tokens(text: WrittenText, tokens: Sequence[Offsets | None], *, whole: bool = True) -> Assigned:
    """Return the unit of each word and of each token of a text.

    A token belongs to the words whose visible characters it has. A token of only white space belongs to the word that
    it is inside, or, if it is a single space, to the word after it.

    Args:
        text: The text, with the characters of each word.
        tokens: The characters of each token, in order; None for a token that the tokenizer has added.
        whole: True if the tokens are of the whole text, False if a part may be cut off.
    """
    content, words = text.content, text.offsets
    joined = [False, *(second[0] < first[1] for first, second in pairwise(words))]
    of_token: list[int] = []
    spelt, spaces = set[int](), list[int]()
    word, covered = 0, 0 if whole else next((offsets[0] for offsets in tokens if offsets), 0)
    dropped = ""
    for offsets in tokens:
        if offsets is None:
            of_token.append(SPECIAL)
            continue
        start, end = offsets
        if start > covered and not dropped:
            dropped = _find_visible(content[covered:start])
        covered = max(covered, end)
        while word < len(words) and words[word][1] <= start:
            word += 1
        visible = end - len(content[start:end].lstrip())
        if visible == end:
            if word < len(words) and words[word][0] <= start < end:
                of_token.append(word)
            elif word < len(words) and _is_space_before(content, end, words[word][0]):
                spaces.append(len(of_token))
                of_token.append(word)
            else:
                of_token.append(NO_WORD)
            continue
        while word < len(words) and words[word][1] <= visible:
            word += 1
        last = word
        while last < len(words) and words[last][0] < end:
            last += 1
        of_token.append(word if last > word else NO_WORD)
        spelt.update(range(word, last))
        if last - word > 1:
            joined[word + 1 : last] = [True] * (last - word - 1)
    if whole and not dropped:
        dropped = _find_visible(content[covered:])
    # If a tokenizer drops the characters of a word, the space before it does not belong to a word.
    for token in spaces if whole else ():
        if of_token[token] not in spelt:
            of_token[token] = NO_WORD
    units = [number - 1 for number in accumulate(not each for each in joined)] if words else []
    return Assigned(units, [each if each < 0 else units[each] for each in of_token], dropped)


def assign_sides(tokenizer: PreTrainedTokenizerBase, texts: Sequence[WrittenText], encoding: Encoding) -> Assigned:
    """Return the unit of each word and token of a text, or of the two segments of a pair, numbered continuously.

    A character that is not in a token counts as dropped, unless the tokenizer reads it anyway (`drops_characters`).
    """
    units, tokens, dropped = list[int](), [SPECIAL] * len(encoding.ids), ""
    for side, text in enumerate(texts):
        offsets = [
            own if number == side else None for own, number in zip(encoding.offsets, encoding.sequence_ids, strict=True)
        ]
        assigned, first = assign_tokens(text, offsets, whole=not encoding.overflowing), units[-1] + 1 if units else 0
        units += [first + unit for unit in assigned.units]
        for token, unit in enumerate(assigned.tokens):
            if offsets[token] is not None:
                tokens[token] = unit if unit < 0 else first + unit
        if assigned.dropped and not dropped and drops_characters(tokenizer, text.content):
            dropped = assigned.dropped
    return Assigned(units, tokens, dropped)


def drops_characters(tokenizer: PreTrainedTokenizerBase, text: str) -> bool:
    """Return whether a tokenizer drops a visible character of a text, so that its model does not read it.

    A character that is not in a token may still be read: if a normalizer writes one character for several (a Korean
    syllable for its letters, a quotation mark for two backticks, an ellipsis for full stops), the token has only one of
    them. Such characters are read if two conditions hold: every character of the normalized text is in a token, and the
    normalized text changes if the character is doubled, or if its run of equal characters is left out.
    """
    normalizer = tokenizer.backend_tokenizer.normalizer
    normalize = normalizer.normalize_str if normalizer else str
    if _list_uncovered(tokenizer, normalize(text)):
        return True
    uncovered = _list_uncovered(tokenizer, text)
    # Only the text between white space is normalized again, not the whole text for each character.
    stretches = {
        (stretch[0], alike.span())
        for stretch in re.finditer(r"\S+", text)
        for alike in _ALIKE.finditer(stretch[0])
        if not uncovered.isdisjoint(range(stretch.start() + alike.start(), stretch.start() + alike.end()))
    }
    return any(
        normalize(letters[:end] + letters[end - 1 :])
        == normalize(letters)
        == normalize(letters[:first] + letters[end:])
        for letters, (first, end) in stretches
    )


def _list_uncovered(tokenizer: PreTrainedTokenizerBase, text: str) -> set[int]:
    """Return the indices of the visible characters of a text that are not in a token."""
    encoding = tokenizer(text, verbose=False).encodings[0]
    sides = zip(encoding.offsets, encoding.sequence_ids, strict=True)
    covered = {place for offsets, side in sides if side is not None for place in range(*offsets)}
    return {place for place in range(len(text)) if place not in covered and _find_visible(text[place])}


def find_lead(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return the text to put before words that are joined by spaces ("" or " ") to give the first its usual tokens.

    Byte-level tokenizers include the space before a word in its token, and many do not put a space before a text.
    """
    return next((lead for lead in ("", " ") if _reads_alike(tokenizer, lead)), "")


def _reads_alike(tokenizer: PreTrainedTokenizerBase, lead: str) -> bool:
    """Return whether a word has the same tokens at the beginning of a text, after `lead`, as after another word."""
    twice, offsets = f"{lead}dog dog", len(lead) + 3
    encoding = tokenizer(twice, add_special_tokens=False).encodings[0]
    first = [token for token, (_, end) in zip(encoding.ids, encoding.offsets, strict=True) if end <= offsets]
    return bool([*first, *first] == encoding.ids)


def _is_space_before(content: str, end: int, word: int) -> bool:
    """Return whether a blank token that ends at `end` is the single space before a word, or before the text (0)."""
    if end == 0:
        return content[:word] in ("", " ")
    return end == word and content[end - 1] == " " and not content[max(0, end - 2) : end - 1].isspace()


def _find_visible(characters: str) -> str:
    """Return the first visible character (not white space, a control character or a mark); empty if there is none."""
    for character in characters.strip():
        if unicodedata.category(character)[0] not in "CMZ" and character != REPLACEMENT:
            return character
    return ""
