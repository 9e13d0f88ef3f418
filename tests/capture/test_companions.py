"""Models that compute all texts of a batch as the longest needs it: each text is as it is alone."""

import numpy as np
import pytest
import torch
import transformers as hf
import xarray as xr

import tiny
from headscope.capture.forward.interface import Capture
from headscope.capture.model.model import Model
from headscope.capture.tokens.companions import divide, find_side, list_thresholds
from headscope.corpora import Document
from headscope.errors import ModelError
from headscope.intervene.likelihood import compute_likelihoods
from headscope.runner import Plan, measure

ORIGINAL = 31
SIZES = {
    "vocab_size": tiny.BYTE_VOCABULARY, "hidden_size": 42, "num_hidden_layers": 2, "num_attention_heads": 3,
    "num_key_value_heads": 1, "intermediate_size": 37, "max_position_embeddings": 149, "pad_token_id": 0,
    "bos_token_id": 0, "eos_token_id": 1,
}  # fmt: skip
LONGROPE = {
    "rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": ORIGINAL, "factor": 149 / ORIGINAL,
    "short_factor": [1.0] * 7, "long_factor": [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0],
}  # fmt: skip


def make_phi3(head: str = "") -> Model:
    """Return a model with other frequencies for batches with a text of more than 31 tokens."""
    config = hf.Phi3Config(**SIZES, original_max_position_embeddings=ORIGINAL, rope_parameters=dict(LONGROPE))
    torch.manual_seed(3)
    module = (hf.Phi3ForCausalLM if head else hf.Phi3Model)(config)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "qkv_proj" in name:
                parameter.mul_(20)
    return Model.from_module(module, tiny.make("llama")[1], name="phi3")


def make_texts() -> list[Document]:
    """Return texts on both sides of the original length, some of just that length."""
    words = [word for document in tiny.documents(7) for word in document.words]
    lengths = (5, 13, 2, 61, 17, 71, 11, 29, 3, 23, 31, 19)
    return [Document(str(number), tuple((words * 3)[number : number + n])) for number, n in enumerate(lengths)]


def test_a_batch_with_a_longer_text_gives_what_single_texts_give() -> None:
    model, texts = make_phi3(), make_texts()
    alone = measure(model, texts, ["surface"], plan=Plan(batch_tokens=1))
    together = measure(model, texts, ["surface"], plan=Plan(batch_tokens=4096))
    for name in ("entropy", "mass_previous", "mass_self"):
        np.testing.assert_allclose(together[name], alone[name], atol=2e-6)


def test_likelihoods_do_not_depend_on_the_texts_beside_either() -> None:
    model, sentences = make_phi3("causal-lm"), [" ".join(text.words[:41]) for text in make_texts()]
    together, alone = (compute_likelihoods(model, sentences, batch_tokens=tokens) for tokens in (4096, 1))
    for first, second in zip(together, alone, strict=True):
        assert first.log_probability == pytest.approx(second.log_probability, abs=1e-4)


def test_thresholds_are_those_of_the_configuration() -> None:
    assert list_thresholds(make_phi3().module) == (ORIGINAL,)
    assert list_thresholds(tiny.make("llama")[0]) == ()
    assert [find_side((31,), length) for length in (1, 31, 32, 99)] == [0, 0, 1, 1]
    assert [*divide([71, 40, 32, 31, 5], (31,), int)] == [[71, 40, 32], [31, 5]]
    assert [*divide([], (31,), int)] == []


def test_a_text_that_depends_on_its_companions_beyond_a_length_is_noticed(monkeypatch) -> None:
    """As if the batches were not divided: the check runs at the first batch beyond the length."""
    model, texts = make_phi3(), make_texts()
    monkeypatch.setattr("headscope.capture.passes.stream.divide", lambda texts, *_: iter([list(texts)]))
    with pytest.raises(ModelError, match="padding"):
        measure(model, texts, ["surface"], plan=Plan(batch_tokens=4096))


def test_the_check_is_made_once_on_each_side(monkeypatch) -> None:
    lengths = []
    true_check = Capture.verify_companions

    def check(capture: Capture, batch) -> None:
        lengths.append(batch.encoder.length)
        true_check(capture, batch)

    monkeypatch.setattr(Capture, "verify_companions", check)
    table = measure(make_phi3(), make_texts(), ["surface"], plan=Plan(batch_tokens=101))
    assert isinstance(table, xr.Dataset)
    assert len(lengths) == 2
    assert lengths[0] > ORIGINAL >= lengths[1]
    measure(tiny.make("llama"), make_texts(), ["surface"])
    assert len(lengths) == 2
