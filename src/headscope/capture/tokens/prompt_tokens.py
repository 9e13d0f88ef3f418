"""A prompt as the tokens that a decoder reads, with the part that each token belongs to.

Prompt --lay out--> pieces of text --tokenize--> `PromptTokens` --`make_text`--> a text of a batch
"""

import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from tokenizers import Tokenizer

from headscope.capture.model.model import Model
from headscope.capture.tokens.align import Aligned
from headscope.capture.tokens.chat import locate_texts
from headscope.corpora.document import Document
from headscope.corpora.prompts import OWN, SYSTEM, TEMPLATE, Piece, Prompt
from headscope.corpora.written_text import Offsets
from headscope.errors import ModelError, first_line


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """The tokens that a model reads before its own text.

    Attributes:
        ids: The vocabulary ids, special tokens included.
        parts: The part that each token belongs to, a name from `headscope.corpora.prompts.name_parts`.
    """

    ids: list[int]
    parts: list[str]


@dataclass(frozen=True)
class PromptLayout:
    """The settings for turning prompts into tokens.

    A token that crosses the end of a part belongs to the part of its first visible character.

    Attributes:
        model: The model, with its tokenizer.
        start: The id of the token before the text; None for the tokenizer's own. If the tokenizer adds none, its token
            for the beginning is put there (except in a chat template): many heads give most of their attention to the
            first token, whatever it is, so it should not be part of the prompt.
        chat: True to put the tokenizer's chat template around the prompt, in place of plain labels.
    """

    model: Model
    start: int | None = None
    chat: bool = False

    def tokenize(self, prompt: Prompt, order: Sequence[int]) -> PromptTokens:
        """Turn a prompt into tokens, with its documents in this order.

        Raises:
            ModelError: There is no chat template, or it does not accept the prompt unchanged.
        """
        return self._tokenize(self._lay_out(prompt, order))

    def tokenize_answer(self, prompt: Prompt) -> list[int]:
        """Return the tokens of the prompt's answer, as the model's own text after the prompt."""
        space = "" if self.chat else " "
        given = self._lay_out(prompt, range(len(prompt.documents)))
        text = self._tokenize([*given, (OWN, f"{space}{(prompt.answer or '').strip()}")])
        return [token for token, part in zip(text.ids, text.parts, strict=True) if part == OWN]

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        """The tokenizer, without truncation and padding."""
        content = json.loads(self.model.tokenizer.backend_tokenizer.to_str()) | {"truncation": None, "padding": None}
        return Tokenizer.from_str(json.dumps(content))

    def _lay_out(self, prompt: Prompt, order: Sequence[int]) -> list[Piece]:
        return self._lay_out_chat(prompt, order) if self.chat else prompt.lay_out(order)

    def _lay_out_chat(self, prompt: Prompt, order: Sequence[int]) -> list[Piece]:
        """Return the pieces of the chat template's text, with a system text and a message of the user."""
        name, pieces = self.model.name, prompt.lay_out_documents(order)
        if not getattr(self.model.tokenizer, "chat_template", None):
            raise ModelError(f"the tokenizer of {name!r} has no chat template; leave out --chat.")
        pieces = [(SYSTEM, prompt.system), *pieces] if prompt.system else pieces
        own = [number for number, (part, _) in enumerate(pieces) if part != TEMPLATE]

        def render(texts: Sequence[str]) -> str:
            contents = [content for _, content in pieces]
            for number, content in zip(own, texts, strict=True):
                contents[number] = content
            messages = [{"role": "system", "content": contents.pop(0)}] if prompt.system else []
            messages.append({"role": "user", "content": "".join(contents)})
            return str(self.model.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))

        texts = [pieces[number][1] for number in own]
        try:
            text = render(texts)
        except Exception as error:  # templates may raise any error
            raise ModelError(
                f"the chat template of {name!r} does not take the prompt {prompt.id!r} ({first_line(error)}); leave "
                "out --chat, or the system text."
            ) from error
        located = locate_texts(text, texts, render)
        if located is None or any(
            {text[first:last] for first, last in places} != {content}
            for content, places in zip(texts, located, strict=True)
        ):
            raise ModelError(
                f"the chat template of {name!r} changes the text of a prompt, so that its parts cannot be told apart; "
                "leave out --chat."
            )
        return _divide(text, [(pieces[number][0], each) for number, each in zip(own, located, strict=True)])

    def _tokenize(self, pieces: Sequence[Piece]) -> PromptTokens:
        text, ends = "".join(text for _, text in pieces), [*accumulate(len(text) for _, text in pieces)]
        encoded = self._tokenizer.encode(text, add_special_tokens=not self.chat)
        ids, parts = [], []
        for token, (first, last), of_text in zip(encoded.ids, encoded.offsets, encoded.sequence_ids, strict=True):
            blank = len(text[first:last]) - len(text[first:last].lstrip())
            place = first + (blank if first + blank < last else 0)
            ids.append(token)
            parts.append(TEMPLATE if of_text is None else pieces[min(bisect_right(ends, place), len(ends) - 1)][0])
        # Tokens that the tokenizer adds after a text are removed: they would end it, and the model must go on.
        while ids and encoded.sequence_ids[len(ids) - 1] is None:
            ids.pop(), parts.pop()
        return PromptTokens(*self._begin(ids, parts, encoded.sequence_ids))

    def _begin(self, ids: list[int], parts: list[str], of_text: Sequence[int | None]) -> tuple[list[int], list[str]]:
        """Return ids and parts of tokens with the start token before them; unchanged if there is no start token."""
        front = next((place for place, side in enumerate(of_text) if side is not None), len(ids))
        bos = self.model.tokenizer.bos_token_id if front == 0 and not self.chat else None
        first = bos if self.start is None else self.start
        if first is None:
            return ids, parts
        return [first, *ids[front:]], [TEMPLATE, *parts[front:]]


def make_text(name: str, prompt: PromptTokens, own: Sequence[int]) -> Aligned:
    """Make a text of a batch from a prompt and the model's own text after it; each token is a word."""
    ids = [*prompt.ids, *own]
    return Aligned(Document(name, tuple(map(str, ids))), ids, [*range(len(ids))], [0] * len(ids))


def _divide(text: str, parts: Iterable[tuple[str, Sequence[Offsets]]]) -> list[Piece]:
    """Divide a text into pieces, from the characters of each part; all other characters belong to the template."""
    divided: list[Piece] = []
    end = 0
    for (first, last), part in sorted((offsets, part) for part, places in parts for offsets in places):
        divided += [(TEMPLATE, text[end:first]), (part, text[first:last])]
        end = last
    return [*divided, (TEMPLATE, text[end:])]
