"""Texts that end with the word to be predicted, as in LAMBADA (Paperno et al. 2016, ACL, section 3).

A text of LAMBADA is a passage of a novel. People can guess its last word from the whole passage, but not from the last
sentence alone. Texts of any other corpus are cut after their last word too, but nobody has tried to guess it.
"""

from dataclasses import replace

from headscope.corpora.document import Document
from headscope.corpora.written_text import WrittenText
from headscope.errors import CorpusError


def end_at_last_word(document: Document) -> Document | None:
    """Return a document that ends with its last word; None if nothing after its first item is a word.

    A word begins with a letter: punctuation, numbers, ``<unk>`` and ``'s`` do not count. Punctuation attached to the
    last word is cut off. Of a pair of segments, only the second is kept, since the first need not lead to its last
    word. Annotation is left out.

    Raises:
        CorpusError: the text is a conversation.
    """
    if document.messages:
        raise CorpusError(
            f"the document {document.id!r} is a conversation; the chat template writes more after its last word; give "
            "texts that end with the word to be predicted."
        )
    first = document.boundary or 0
    words = document.words[first:]
    last = next((place for place in range(len(words) - 1, 0, -1) if words[place][0].isalpha()), None)
    if last is None:
        return None
    word = words[last]
    end = max(place for place, letter in enumerate(word, start=1) if letter.isalnum())
    return replace(
        document, words=(*words[:last], word[:end]), links=(), spans=(), label=None, boundary=None,
        random_tokens=document.random_tokens[: last + 1],
        written=document.written and _cut_text(document.written.cut(first, first + last + 1), word, end),
    )  # fmt: skip


def _cut_text(text: WrittenText, word: str, end: int) -> WrittenText:
    """Return a text that ends after `end` characters of its last word, or after the word if it is spelt otherwise."""
    start, stop = text.offsets[-1]
    # A word that shares the characters of its token does not spell them.
    stop = start + end if text.content[start:stop] == word else stop
    return WrittenText(text.content[:stop], (*text.offsets[:-1], (start, stop)))
