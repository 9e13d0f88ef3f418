"""Finds the texts of messages in the output of a chat template.

A template is a program. Its own words may be the same as those of a message. It may trim a message, put the system text
into the message of the user, write a text twice or leave it out. So a text is not searched for. Instead, the template
is rendered again with a unique character in place of the text.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, islice, pairwise

from transformers import PreTrainedTokenizerBase

from headscope.capture.tokens.assign import NO_WORD, SPECIAL, Assigned
from headscope.corpora.document import Document
from headscope.corpora.message import Message
from headscope.corpora.written_text import Offsets, WrittenText, locate_tokens
from headscope.errors import ModelError, first_line

UNFIT = "conversations that the chat template does not take"
CHANGED = "conversations in which the chat template changes or leaves out words"
UNCLEAR = "conversations whose messages cannot be told apart in what the chat template writes"
"""The beginnings of the reasons why a conversation is left out."""

_PRIVATE_USE = range(0xE000, 0xF900)
"""Characters without a meaning, which no template trims, capitalizes or divides."""


def locate_texts(
    rendered: str, texts: Sequence[str], render: Callable[[Sequence[str]], str]
) -> list[list[Offsets]] | None:
    """Find the characters of each text wherever it is in the rendered output; None if that is uncertain.

    The output has the text or a part of it, for example without white space around it; it may be in upper or lower
    case. A text that is left out, or that has no visible characters, is found nowhere. The result is uncertain if the
    template changes its own words with the text, or changes the text.

    Args:
        rendered: The output of `render` for the texts.
        texts: The texts, in any order.
        render: Puts the chat template around the same number of texts in the same order.
    """
    mark = next(each for each in map(chr, _PRIVATE_USE) if not any(each in text for text in (rendered, *texts)))
    located: list[list[Offsets]] = []
    for number, text in enumerate(texts):
        if not text.strip():
            located.append([])
            continue
        try:
            around = render([*texts[:number], mark, *texts[number + 1 :]]).split(mark)
        except Exception:
            # A template may raise any error. If it accepts the texts but not the mark, it depends on their content.
            return None
        length = (len(rendered) - sum(map(len, around))) // max(len(around) - 1, 1)
        stretch = rendered[len(around[0]) : len(around[0]) + length]
        if stretch.join(around) != rendered or stretch.casefold() not in text.casefold():
            return None
        starts = accumulate((len(before) + length for before in around[1:-1]), initial=len(around[0]))
        located.append([(start, start + length) for start in starts] if stretch.strip() else [])
    stretches = sorted(chain.from_iterable(located))
    return None if any(second[0] < first[1] for first, second in pairwise(stretches)) else located


@dataclass(frozen=True, slots=True)
class Conversation:
    """The output of a chat template for messages.

    Attributes:
        text: The text, with the characters of each word of the messages.
        messages: The characters of each text of a message, in order.
    """

    text: WrittenText
    messages: tuple[Offsets, ...]

    def mark_template(self, assigned: Assigned, tokens: Sequence[Offsets]) -> Assigned:
        """Return `assigned` with the tokens that the template itself wrote marked as special."""
        starts = [first for first, _ in self.messages]

        def is_template(start: int, end: int) -> bool:
            message = bisect_right(starts, start) - 1
            return message < 0 or end > self.messages[message][1]

        marked = [
            SPECIAL if unit == NO_WORD and is_template(*offsets) else unit
            for unit, offsets in zip(assigned.tokens, tokens, strict=True)
        ]
        return replace(assigned, tokens=marked)


def write_conversation(tokenizer: PreTrainedTokenizerBase, document: Document) -> Conversation | str:
    """Return the messages of a document in the tokenizer's chat template, or the reason why that is not possible.

    Raises:
        ModelError: The tokenizer has no chat template.
    """
    if not getattr(tokenizer, "chat_template", None):
        raise ModelError(
            f"the document {document.id!r} is a conversation, and the tokenizer has no chat template; give a model "
            "that was trained on conversations, or texts in place of messages."
        )

    def render(texts: Sequence[str]) -> str:
        messages = [message.record for message in _replace_texts(document.messages, texts)]
        return str(tokenizer.apply_chat_template(messages, tokenize=False))

    texts = [text for message in document.messages for text in message.texts]
    try:
        rendered = render(texts)
    except Exception as error:  # templates may raise any error
        return f"{UNFIT} ({first_line(error)})"
    if any(str(each.record["content"]) in rendered for each in document.messages if not isinstance(each.content, str)):
        return f"{UNFIT} (it writes a list of parts as Python does)"
    located = locate_texts(rendered, texts, render)
    if located is None or any(len(places) > 1 for places in located):
        return UNCLEAR
    words, messages = list[Offsets](), list[Offsets]()
    for text, places in zip(texts, located, strict=True):
        stretch = "".join(rendered[first:last] for first, last in places)
        if stretch.casefold().split() != text.casefold().split():
            return CHANGED
        for first, _ in places:
            words += [(first + start, first + end) for start, end in locate_tokens(stretch, stretch.split())]
        messages += places
    written = WrittenText(rendered, tuple(words))
    return UNCLEAR if written.fault else Conversation(written, tuple(messages))


def _replace_texts(messages: Sequence[Message], texts: Sequence[str]) -> list[Message]:
    """Return messages with their texts replaced by the same number of other texts."""
    rest = iter(texts)
    return [
        replace(each, content=next(rest) if isinstance(each.content, str) else tuple(islice(rest, len(each.content))))
        for each in messages
    ]
