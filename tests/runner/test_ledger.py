"""Shares of attention by part: as the model itself returns them while it generates, and as they were planted."""

import numpy as np
import pytest
import torch

import headed
import planted_decoder
import tiny
import witnesses
from headscope.capture.forward.interface import Capture
from headscope.capture.model.model import Model
from headscope.capture.tokens.batch import Batch, collate
from headscope.capture.tokens.generation import check_decoder, generate
from headscope.capture.tokens.prompt_tokens import PromptLayout, make_text
from headscope.corpora.prompts import name_parts, read_prompts
from headscope.errors import ModelError
from headscope.runner.ledger_shares import Ledger, observe_ledger

FAMILIES = ("gpt2", "llama", "qwen3", "mistral", "gemma2", "gpt_oss")
RECORD = {
    "system": "the old house",
    "documents": ["a dog was walking by", "the cat sees", "unseen readers quickly walked in the red house"],
    "question": "was a dog seen",
}
TOKENS = 11
NAMES = name_parts(3)


def make_model(family: str) -> Model:
    """A tiny language model that never ends a text, so that it generates as many tokens as are wanted."""
    module, words = headed.make(family, "causal-lm")
    module.generation_config.eos_token_id = None
    words.eos_token = None
    return Model.from_module(module, words)


def observe(model: Model, own: list[int], *, batch_tokens: int = 2048, fused: bool | None = None) -> Ledger:
    (prompt,) = read_prompts([RECORD]).prompts
    layout = PromptLayout(model)
    texts = [layout.tokenize(prompt, order) for order in prompt.list_orders()]
    capture = Capture.verified(model, collate(model, [make_text("sample", texts[0], [])]))
    return observe_ledger(capture, "1", texts, own, NAMES, batch_tokens=batch_tokens, fused=fused)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_one_pass_sees_what_the_model_attends_to_while_it_generates_with_its_cache(family: str, fused: bool) -> None:
    model = make_model(family)
    ids, parts = witnesses.mark_prompt(model.tokenizer, RECORD, (0, 1, 2))
    if model.tokenizer.bos_token_id is not None and ids[0] != model.tokenizer.bos_token_id:
        ids, parts = [model.tokenizer.bos_token_id, *ids], ["template", *parts]
    steps = witnesses.generate_steps(model.module, ids, TOKENS)
    own = generate(model, ids, TOKENS)
    assert own == [step.token for step in steps]
    observed = observe(model, own, fused=fused)
    expected = witnesses.ledger(steps, parts, NAMES)
    assert expected.shape == (TOKENS, *observed.shares.shape[2:])
    np.testing.assert_allclose(observed.shares[0], expected, atol=2e-5)
    assert observed.lengths[0].sum() == len(ids)


@pytest.mark.parametrize("family", ["llama", "gemma2"])
@pytest.mark.parametrize("batch_tokens", [1, 2048])
def test_the_same_text_is_read_behind_the_documents_in_every_order(family: str, batch_tokens: int) -> None:
    model, own = make_model(family), [97, 41, 61, 103, 97]
    observed = observe(model, own, batch_tokens=batch_tokens)
    for number, order in enumerate(((0, 1, 2), (1, 2, 0), (2, 0, 1))):
        steps = witnesses.force_steps(model.module, *[[*witnesses.mark_prompt(model.tokenizer, RECORD, order)[0]]], own)
        expected = witnesses.ledger(steps, witnesses.mark_prompt(model.tokenizer, RECORD, order)[1], NAMES)
        np.testing.assert_allclose(observed.shares[number], expected, atol=2e-5)


def test_orders_that_do_not_fit_into_memory_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model, own, run, sizes = make_model("llama"), [97, 41, 61, 103, 97], Capture.run, []
    expected = observe(model, own)

    def fail(capture: Capture, batch: Batch, *arguments: object, **named: object) -> object:
        sizes.append(len(batch.documents))
        if "fused" in named and sizes[-1] > most:  # not while the way to the attention is verified
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return run(capture, batch, *arguments, **named)

    monkeypatch.setattr(Capture, "run", fail)
    most = 1
    observed = observe(model, own)
    assert sizes == [1, 3, 1, 1, 1]
    np.testing.assert_allclose(observed.shares, expected.shares, atol=1e-6)
    most = 0
    with pytest.raises(ModelError, match=r"the text of the prompt '1' of \d+ tokens alone needs more memory than"):
        observe(model, own)


def test_shares_are_those_of_the_tokens_seen_where_attention_is_uniform_and_all_where_one_is_marked() -> None:
    model = Model.from_module(*planted_decoder.plant())
    record = planted_decoder.prompts(1)[0]
    (prompt,) = read_prompts([record]).prompts
    texts = [PromptLayout(model).tokenize(prompt, order) for order in prompt.list_orders()]
    capture = Capture.verified(model, collate(model, [make_text("sample", texts[0], [])]))
    own = generate(model, texts[0].ids, 5)
    assert own == [planted_decoder.WORDS.index("Answer:")] * 5
    observed = observe_ledger(capture, "1", texts, own, NAMES, batch_tokens=2048)
    for number, order in enumerate(prompt.list_orders()):
        counts = [1, *(len(record["documents"][document].split()) for document in order), 2, 10]
        for token in range(5):
            seen = np.array([*counts, token])
            np.testing.assert_allclose(observed.shares[number, token, 0, 0], seen / seen.sum(), atol=1e-6)
            np.testing.assert_allclose(observed.uniform[number, token], seen / seen.sum(), atol=1e-12)
        gold = 1 + order.index(record["gold"] - 1)
        np.testing.assert_allclose(observed.shares[number, :, 0, 1, gold], 1, atol=1e-6)
        np.testing.assert_allclose(observed.shares[number, :, 1, 0, 1], 1, atol=1e-6)


def test_a_text_ends_where_the_model_ends_it() -> None:
    model = make_model("llama")
    ids = witnesses.mark_prompt(model.tokenizer, RECORD, (0, 1, 2))[0]
    own = generate(model, ids, 7)
    end = own.index(own[-1])  # where the last token comes for the first time
    model.module.generation_config.eos_token_id = [own[-1]]
    assert generate(model, ids, 7) == own[:end]
    model.module.generation_config.eos_token_id = own[0]
    assert generate(model, ids, 7) == []


@pytest.mark.parametrize("family", ["bert", "t5"])
def test_a_model_that_generates_nothing_is_refused(family: str) -> None:
    model = Model.from_module(*headed.make(family, "masked-lm" if family == "bert" else "causal-lm"), name="mine")
    with pytest.raises(ModelError, match=r"^'mine' \(\w+\) is no decoder-only language model, so it generates no text"):
        check_decoder(model)
    with pytest.raises(ModelError, match=r"^'bare' \(LlamaModel\) is no decoder-only language model"):
        check_decoder(Model.from_module(*tiny.make("llama"), name="bare"))
