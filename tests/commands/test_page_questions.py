"""What a page may ask of the model behind it: what is malformed is refused in a sentence, and nothing else fails."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

import headed
import headscope
from headscope.commands.explore.page_model import PageModel
from headscope.errors import HeadscopeError
from headscope.text_forms import WRITTEN

TEXT = {"text": "the old dog sees a red cat"}
WORDS = {
    "words": ["a", "dog"], "content": "a dog", "offsets": [[0, 1], [2, 5]], "boundary": None, "random_tokens": [],
}  # fmt: skip
RANDOM = WORDS | {"random_tokens": [0.25, 0.5]}
TALK = {"messages": [{"role": "user", "content": "a dog"}]}
HEADS = {"heads": ["1-2"], "how": "zero"}
PAIR = {"tokens": 3, "attention_type": "", "head": "1-1", "from": 1, "to": 0}
QUESTIONS = [
    ("attention", TEXT), ("attention", TALK), ("what-if", RANDOM | HEADS),
    ("neurons", TEXT | PAIR), ("neurons", WORDS | PAIR | {"begun": True}),
]  # fmt: skip
ODD: list[Any] = [
    None, True, 0, -1, 7, 10**30, -(10**400), float("nan"), float("inf"), "", "x", "\udc00", "\x00", "1-1",
    "99999999999999999999-1", "9" * 5000, [True], [[False, True]], [], {}, [[]], [None], [-1], ["\udc00"],
    ["1-1"] * 999, [[0, 3]], [[-1, 2]],
    [[5, 1]], [[0, 10**400]], [10**400], [{}], [{"role": 3, "content": []}], {"role": "user"}, "a " * 999,
]  # fmt: skip


@pytest.fixture(scope="module")
def model() -> PageModel:
    module, tokenizer = headed.make("gpt2", "causal-lm")
    tokenizer.chat_template = "{% for message in messages %}{{ message.content }} {% endfor %}"
    return PageModel(headscope.load(module, tokenizer, task="causal-lm"), WRITTEN)


def spoil(question: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The question with something odd in each place, or with a place gone."""
    for name, value in question.items():
        yield {other: each for other, each in question.items() if other != name}
        for odd in ODD:
            yield question | {name: odd}
            if isinstance(value, list) and value:
                yield question | {name: [odd, *value[1:]]}
                yield question | {name: [*value, odd]}


@pytest.mark.parametrize(("name", "question"), QUESTIONS)
def test_what_is_malformed_is_refused(model: PageModel, name: str, question: dict[str, Any]) -> None:
    whole = json.dumps(model.answer(name, question))
    refused = 0
    for odd in spoil(question):
        try:
            json.dumps(model.answer(name, odd))
        except HeadscopeError:
            refused += 1
    assert refused > 20
    assert json.dumps(model.answer(name, question)) == whole


@pytest.mark.parametrize("place", [None, "0.5", [], 10**400, float("nan"), -(10**400)])
def test_the_place_of_a_random_token_is_a_number(model: PageModel, place: Any) -> None:
    with pytest.raises(HeadscopeError, match=r"^the place of a random token is a number\.$"):
        model.answer("what-if", RANDOM | HEADS | {"random_tokens": [0.5, place]})


@pytest.mark.parametrize("place", [-0.25, 1, 1e308, True])
def test_a_random_token_lies_in_the_vocabulary(model: PageModel, place: float) -> None:
    with pytest.raises(HeadscopeError, match=r"^document 'text' has 2 words and 2 random tokens; each word needs "):
        model.answer("what-if", RANDOM | HEADS | {"random_tokens": [0.5, place]})
