"""A text that is typed: what it begins with in all answers, and how much of a long one is left out."""

import base64
import gzip

import numpy as np
import pytest

import headed
import tiny
from headscope.capture.model.model import Model
from headscope.commands.explore.page_model import PageModel
from headscope.errors import ModelError
from headscope.examples import STEPS

TEXT = "the old dog sees a red cat"
ASKED = {"heads": ["1-2"], "how": "zero"}
OWN = ("words", "content", "offsets", "boundary", "random_tokens", "messages")


@pytest.fixture(scope="module")
def decoder() -> PageModel:
    return PageModel(Model.from_module(*headed.make("gpt2", "causal-lm")), "written")


@pytest.mark.parametrize(("name", "question"), [("attention", {}), ("what-if", ASKED)])
def test_of_a_long_text_it_is_said_how_many_words_are_left_out(decoder: PageModel, name: str, question: dict) -> None:
    answer = decoder.answer(name, {"text": "dog " * 3000} | question)
    left_out = 3000 - (decoder.max_tokens - 1)
    assert f"The text is too long: its last {left_out:,} words are left out." in answer["note"]


def test_it_begins_with_what_the_model_was_trained_with_in_all_answers(decoder: PageModel) -> None:
    answer = decoder.answer("attention", {"text": TEXT})
    tokens = answer["text"]["sides"]["decoder"]["tokens"]
    assert answer["note"] == "The text begins with <|endoftext|>."
    assert tokens[0] == "<|endoftext|>"
    note = decoder.answer("what-if", {"text": TEXT} | ASKED)["note"]
    assert note == "The first token of a text is predicted from <|endoftext|>."
    weights = np.frombuffer(gzip.decompress(base64.b64decode(answer["text"]["weights"]["decoder"])), dtype=np.uint8)
    weight = weights.reshape(2, 5, len(tokens), len(tokens))[1, 2, 4, 0] / STEPS
    pair = {"tokens": len(tokens), "attention_type": "", "head": "2-3", "from": 4, "to": 0}
    own = {key: answer["text"][key] for key in OWN} | pair
    begun, bare = (decoder.answer("neurons", own | {"begun": begun})["weight"] for begun in (True, False))
    assert begun == pytest.approx(weight, abs=0.5 / STEPS)
    assert bare != pytest.approx(begun, abs=1e-3)


@pytest.mark.parametrize(
    ("family", "start", "note"),
    [
        ("gpt2", "\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}dog", "The text begins with dog."),
        ("llama", None, "The text begins with <s>."),
        ("llama", "</s>", "The text begins with </s>."),
        ("bert", None, ""),
    ],
)
def test_the_page_says_what_it_begins_with(family: str, start: str | None, note: str) -> None:
    model = Model.from_module(*tiny.make(family))
    assert PageModel(model, "written", start).answer("attention", {"text": TEXT})["note"] == note


def test_a_token_that_the_tokenizer_lacks_is_refused_in_a_sentence() -> None:
    with pytest.raises(ModelError) as refused:
        PageModel(Model.from_module(*tiny.make("gpt2")), "written", "<nothing>")
    assert "has no token '<nothing>'; name as `start` a token of its vocabulary" in str(refused.value)
