"""The model that answers the questions of a page.

a question of the page, as JSON --`PageModel`--> the answer, as JSON
"""

import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from math import isqrt
from typing import Any

from headscope.capture.model.model import Model
from headscope.capture.passes.stream import Plan
from headscope.capture.tokens.align import Aligned, Alignment, explain_cut, explain_unread
from headscope.corpora import Document, WrittenText, read
from headscope.corpora.memory import read_text
from headscope.errors import HeadscopeError
from headscope.files import has_surrogate
from headscope.intervene.prediction import find_known_start, find_start, spell_front
from headscope.intervene.what_if import TextModel
from headscope.runner.example_texts import read_texts
from headscope.runner.query_key import read_query_key
from headscope.view.page import describe_text

MOST_WEIGHTS = 30_000_000
"""The maximum number of attention weights of all heads on a typed text.

A browser unpacks them while the reader waits.
"""

MOST_TOKENS = 512


class PageModel:
    """A model that answers the questions of a page, one at a time.

    Attributes:
        max_tokens: The maximum number of tokens of a text; longer texts are cut.

    Args:
        model: The model.
        text: The form in which the model reads texts, the same as for the atlas.
        start: The token with which a text begins. Default: the token that the model was trained with, if it is known.
    """

    def __init__(self, model: Model, text: str, start: str | None = None) -> None:
        self.max_tokens = min(MOST_TOKENS, model.max_tokens or MOST_TOKENS, isqrt(MOST_WEIGHTS // model.shape.together))
        start = start or find_known_start(model)
        first = find_start(model, start, causal={*model.layers} == {"decoder"})
        plan = Plan(max_tokens=self.max_tokens, cut=True, text=text, first=first)
        self._lock = threading.Lock()
        self._answers: dict[str, Callable[[Any], Any]] = {
            "attention": partial(show_attention, model, plan),
            "neurons": partial(show_neurons, model, plan),
            "what-if": partial(show_what_if, TextModel(model, self.max_tokens, start, text)),
        }

    def __contains__(self, name: str) -> bool:
        """Return True if the page may ask questions of this name."""
        return name in self._answers

    def answer(self, name: str, question: Any) -> Any:
        """Return the answer to a question of the page.

        Raises:
            HeadscopeError: The name of the question is unknown, or the question has no answer.
        """
        if name not in self:
            raise HeadscopeError("there is no such question.")
        with self._lock:
            return self._answers[name](question)


def read_question(question: Any) -> Document:
    """Read the text that a question is about.

    The question is ``{"text": ...}``, ``{"messages": [...]}``, or a text of the page: ``{"words": [...], "content":
    ..., "offsets": [...], "boundary": ..., "random_tokens": [...]}``.

    Raises:
        HeadscopeError: The question has no text.
    """
    match question:
        case {"messages": [_, *_] as messages}:
            (document,) = read([messages])
            return document
        case {
            "words": [*words],
            "content": str(content),
            "offsets": [*offsets],
            "boundary": int() | None as boundary,
            "random_tokens": [*places],
        } if (
            words
            and not isinstance(boundary, bool)
            and all(isinstance(each, str) and not has_surrogate(each) for each in [content, *words])
        ):
            written = WrittenText(content, tuple(map(_read_offsets, offsets)))
            return Document(
                "text", tuple(words), boundary=boundary, random_tokens=tuple(map(_read_place, places)), written=written
            )
        case {"text": str(text)} if text.strip():
            return read_text(text)
    raise HeadscopeError("the text is empty; type some words.")


def _read_offsets(given: Any) -> tuple[int, int]:
    match given:
        case [int(start), int(stop)] if bool not in (type(start), type(stop)):
            return start, stop
    raise HeadscopeError("the characters of a word are two numbers, its first and the one after its last.")


def _read_place(given: Any) -> float:
    if isinstance(given, int | float) and abs(given) <= sys.float_info.max:  # this also excludes NaN
        return float(given)
    raise HeadscopeError("the place of a random token is a number.")


def show_attention(model: Model, plan: Plan, question: Any) -> dict[str, Any]:
    """Return a text with the attention of all heads, in the format of the page, and a note on how the text was read.

    Args:
        model: The model.
        plan: How to read texts, and the length at which they are cut.
        question: ``{"text": ...}``.

    Raises:
        HeadscopeError: The question has no text, or the model cannot read it.
    """
    document = read_question(question)
    texts = read_texts(model, [document], plan)
    alignment = Alignment.for_model(model, max_tokens=plan.max_tokens, cut=True, text=plan.text, first=plan.first)
    aligned, skipped = alignment.align([document])
    if not texts:
        raise HeadscopeError(explain_unread(model.name, skipped))
    notes = [explain_start(model, aligned[0]), explain_cut(skipped)]
    # The page asks about this text again; it must then begin with the same token.
    text = describe_text(texts[0], quick=True) | {"begun": plan.first is not None}
    return {"text": text, "note": " ".join(filter(None, notes))}


def explain_start(model: Model, text: Aligned) -> str:
    """Return a sentence about the token with which a decoder's text begins; empty for other models."""
    if {*model.layers} != {"decoder"}:
        return ""
    if front := spell_front(model, text):
        return f"The text begins with {front.strip()}."
    return "The text begins with its first word: what the model was trained to begin with is not known (--start)."


def show_neurons(model: Model, plan: Plan, question: Any) -> dict[str, Any]:
    """Return the query vector of one token and the key vector of another, neuron by neuron.

    Args:
        model: The model.
        plan: How to read texts, and the length at which they are cut.
        question: A text of the page, its number of tokens (at which it is cut), and ``{"attention_type": "cross",
            "head": "3-1", "from": 2, "to": 5}``. Tokens are counted from 0. The attention type is empty for a model
            with only one.

    Raises:
        HeadscopeError: There is no such head or token, or the text is empty.
        ModelError: The queries of the model cannot be captured.
    """
    document = read_question(question)
    match question:
        case {
            "tokens": int(tokens), "attention_type": str(name), "head": str(head), "from": int(query), "to": int(key),
        } if bool not in map(type, (tokens, query, key)):  # fmt: skip
            first = plan.first if question.get("begun", "words" not in question) else None
            plan = replace(plan, max_tokens=min(tokens, plan.max_tokens or tokens), first=first)
            return asdict(read_query_key(model, document, head, query, key, plan, attention_type=name))
    raise HeadscopeError("no two tokens are named; choose tokens of the text.")


def show_what_if(model: TextModel, question: Any) -> dict[str, Any]:
    """Return the predictions of the model for a text, with and without the given heads.

    Args:
        model: The model.
        question: A text, and ``{"heads": ["3-1"], "how": "zero"}``.

    Raises:
        HeadscopeError: The text is empty, a head or the way to disable heads is unknown, or the heads cannot be edited.
    """
    document = read_question(question)
    match question:
        case {"heads": [*heads], "how": str(how)}:
            return asdict(model.ask(document, [str(head) for head in heads], how))
    raise HeadscopeError("no head is named; choose heads.")
