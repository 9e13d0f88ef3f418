"""Queries and keys of a pair of tokens: their products give the attention that transformers itself returns."""

import numpy as np
import pytest
import torch
from torch.nn import functional

import tiny
from headscope.capture.model.model import Model
from headscope.corpora.document import Document
from headscope.errors import HeadscopeError
from headscope.runner.query_key import read_query_key

DOCUMENT = Document("text", ("the", "old", "dog", "sees", "a", "red", "cat"))


def make(family: str) -> Model:
    return Model.from_module(*tiny.make(family), name=family)


@torch.no_grad()
def attend(model: Model) -> np.ndarray:
    """Layer, head, token, token: as transformers returns them."""
    inputs = model.tokenizer(list(DOCUMENT.words), is_split_into_words=True, return_tensors="pt")
    model.module.set_attn_implementation("eager")
    return torch.stack(model.module(**inputs, output_attentions=True).attentions)[:, 0].numpy()


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "qwen3", "distilbert", "modernbert"])
@pytest.mark.parametrize(("layer", "head", "source"), [(1, 2, 4), (2, 3, 2)])
def test_the_softmax_of_the_products_is_the_attention(family: str, layer: int, head: int, source: int) -> None:
    model = make(family)
    weights = attend(make(family))[layer - 1, head - 1, source]
    targets = [target for target in range(len(weights)) if weights[target] > 0]
    read = [read_query_key(model, DOCUMENT, f"{layer}-{head}", source, target) for target in targets]
    scores = np.array([each.score for each in read])
    shares = np.exp(scores - scores.max())
    np.testing.assert_allclose(shares / shares.sum(), weights[targets], atol=1e-5)
    np.testing.assert_allclose([each.weight for each in read], weights[targets], atol=1e-5)
    for each in read:
        assert len({len(each.query), len(each.key), len(each.products)}) == 1
        ratio = np.array(each.products) / (np.array(each.query) * np.array(each.key))
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    assert len({each.query for each in read}) == 1


@pytest.mark.parametrize(("kind", "returned"), [("decoder", "decoder_attentions"), ("cross", "cross_attentions")])
def test_a_decoder_reads_the_text_behind_its_start(kind: str, returned: str) -> None:
    model = make("bart")
    inputs = model.tokenizer(list(DOCUMENT.words), is_split_into_words=True, return_tensors="pt")
    decoder = functional.pad(inputs["input_ids"], (1, 0), value=model.start_id)
    module = make("bart").module
    module.set_attn_implementation("eager")
    with torch.no_grad():
        weights = module(**inputs, decoder_input_ids=decoder, output_attentions=True)[returned][1][0, 2, 5].numpy()
    targets = [target for target in range(len(weights)) if weights[target] > 0]
    assert len(targets) == (6 if kind == "decoder" else inputs["input_ids"].shape[1])
    read = [read_query_key(model, DOCUMENT, "2-3", 5, target, attention_type=kind) for target in targets]
    shares = np.exp([each.score for each in read])
    np.testing.assert_allclose(shares / shares.sum(), weights[targets], atol=1e-5)
    np.testing.assert_allclose([each.weight for each in read], weights[targets], atol=1e-5)


@pytest.mark.parametrize("family", ["t5", "gemma2"])
def test_what_the_model_adds_is_in_the_weight_alone(family: str) -> None:
    read = read_query_key(make(family), DOCUMENT, "2-1", 3, 1)
    if family == "gemma2":
        assert read.weight == pytest.approx(attend(make(family))[1, 0, 3, 1], abs=1e-5)
    assert read.score == pytest.approx(sum(read.products))
    assert 0 < read.weight < 1


@pytest.mark.parametrize(
    ("head", "source", "target", "sentence"),
    [
        ("9-1", 0, 0, "there is no head"),
        ("1-1", 99, 0, r"tokens 99 and 0 were named, and \d+ tokens attend to \d+, counted from 0."),
        ("1-1", 0, -1, r"tokens 0 and -1 were named, and \d+ tokens attend to \d+, counted from 0."),
    ],
)
def test_what_is_not_there_is_one_sentence(head: str, source: int, target: int, sentence: str) -> None:
    with pytest.raises(HeadscopeError, match=sentence):
        read_query_key(make("bert"), DOCUMENT, head, source, target)
