"""Conversations with language models as documents: a list of messages, each an object with ``role`` and ``content``.

The words of the document are the words of the contents, and a span of the kind ``role`` marks the words of each
message. The chat template of a model's tokenizer decides how the model reads the messages
(`headscope.capture.tokens.chat`).
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, pairwise

from headscope.corpora.document import Span
from headscope.corpora.jsontext import is_text, show
from headscope.corpora.message import ROLE, Message
from headscope.corpora.written_text import WrittenText, join_texts, split_text
from headscope.errors import CorpusError
from headscope.files import has_surrogate

_EXAMPLE = '{"role": "user", "content": "Where does Eve live?"}'
_PART = '{"type": "text", "text": "Where does Eve live?"}'


def read_messages(where: str, value: object) -> tuple[Message, ...]:
    """Return the messages in a list of objects, each with ``role`` and ``content``.

    A key with the value null counts as missing. The content is a string, or a list of objects ``{"type": "text",
    "text": ...}``.

    Args:
        where: the beginning of error messages.
        value: the list.

    Raises:
        CorpusError: the value is not such a list, a message has no role, no content or another key, a part of a content
            is not a text, or no content has a visible character.
    """
    if not isinstance(value, list | tuple) or not value or not all(isinstance(each, Mapping) for each in value):
        raise CorpusError(
            f"{where} has the messages {show(value)}; expected a list of objects, such as [{_EXAMPLE}]: correct it."
        )
    messages = tuple(_read_message(where, number, each) for number, each in enumerate(value))
    if not any(text.strip() for message in messages for text in message.texts):
        raise CorpusError(f"{where} has messages without a visible character; a text needs words: leave it out.")
    return messages


def split_messages(messages: Sequence[Message]) -> tuple[tuple[str, ...], WrittenText]:
    """Return the words of all messages, split at white space, and the texts of the messages, joined by line breaks."""
    split = [split_text(text) for message in messages for text in message.texts]
    words = tuple(chain.from_iterable(own for own, _ in split))
    return words, join_texts((written for _, written in split), "\n")


def list_roles(messages: Sequence[Message]) -> tuple[Span, ...]:
    """Return a span for the words of each message, labelled with its role; a message without words has none."""
    ends = [0, *accumulate(sum(len(text.split()) for text in message.texts) for message in messages)]
    edges = zip(pairwise(ends), messages, strict=True)
    return tuple(Span(first, end, message.role, ROLE) for (first, end), message in edges if end > first)


def _read_message(where: str, number: int, value: Mapping[str, object]) -> Message:
    where = f"{where} has the message {number}, counted from 0,"
    # In datasets whose messages have different keys, missing keys are null.
    record = {key: each for key, each in value.items() if each is not None}
    if unknown := record.keys() - {"role", "content"}:
        raise CorpusError(
            f"{where} with the key {show(min(unknown))}; headscope reads the role and the text of a message, and no "
            "tools, thoughts or pictures: leave out this conversation, or the key."
        )
    role, content = record.get("role"), record.get("content")
    if not is_text(role):
        raise CorpusError(f"{where} with the role {show(role)}; a message is {_EXAMPLE}: correct it.")
    texts = [content] if isinstance(content, str) else _read_parts(content)
    if texts is None or any(has_surrogate(text) for text in texts):
        raise CorpusError(
            f"{where} with the content {show(content)}; expected a string, or a list of {_PART}: correct it, or leave "
            "the text out."
        )
    return Message(str(role), texts[0] if isinstance(content, str) else tuple(texts))


def _read_parts(content: object) -> list[str] | None:
    """Return the text of each part of a message's content; None if the content is not a list of text parts."""
    if not isinstance(content, Iterable) or isinstance(content, Mapping):
        return None
    parts = [
        {key: each for key, each in part.items() if each is not None} if isinstance(part, Mapping) else {}
        for part in content
    ]
    texts = [part.get("text") for part in parts if part.get("type") == "text" and len(part) == 2]
    strings = [text for text in texts if isinstance(text, str)]
    return strings if len(strings) == len(parts) else None
