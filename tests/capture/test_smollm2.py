"""A real decoder with grouped queries, SmolLM2: what it computes, and what its heads are known to do."""

import copy
import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import normalizers
from transformers import AutoModelForCausalLM, GgufConfig

import headscope
import witnesses
from headscope.capture.model import model_names
from headscope.capture.open.loading import load

pytestmark = pytest.mark.full

SEQUENCES, LENGTH = 7, 64
# Mean attention from a token of the second half to the one after its first occurrence, and to the previous token;
# layer, head, mean.
INDUCTION = ((19, 7, 0.92), (18, 4, 0.80), (18, 5, 0.74))
PREVIOUS = ((17, 1, 0.91), (12, 2, 0.85))


@pytest.fixture(scope="module")
def file(smollm2) -> Path:
    return model_names.find_gguf(smollm2)


@pytest.fixture(scope="module")
def module(file) -> AutoModelForCausalLM:
    """The model as transformers itself loads the file."""
    dequantized = GgufConfig(dequantize=True)
    return AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32, quantization_config=dequantized
    ).eval()


@pytest.mark.demo
def test_it_is_what_transformers_loads(smollm2, file, module) -> None:
    model = load(smollm2, task="causal-lm")
    assert repr(model) == "Model('smollm2', LlamaForCausalLM, 30 x 9 heads (decoder), cpu)"
    assert model.module.config.num_key_value_heads == 3
    assert model.weights_sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    tokens = model.tokenizer("The capital of France is", return_tensors="pt")
    with torch.no_grad():
        logits = model.module(**tokens).logits
        assert torch.equal(logits, module(**tokens).logits)
    assert model.tokenizer.decode(logits[0, -1].argmax()) == " Paris"


@pytest.mark.demo
def test_its_heads_do_what_they_are_known_for(smollm2) -> None:
    """On random tokens that come twice, as returned with `output_attentions=True`."""
    model = load(smollm2)
    generator = torch.Generator().manual_seed(7)
    tokens = torch.randint(100, len(model.tokenizer), (SEQUENCES, LENGTH), generator=generator).repeat(1, 2)
    model.module.set_attn_implementation("eager")
    with torch.no_grad():
        attentions = torch.stack(model.module(tokens, output_attentions=True).attentions)
    assert attentions.shape == (30, SEQUENCES, 9, 2 * LENGTH, 2 * LENGTH)
    for heads, offset in ((INDUCTION, LENGTH - 1), (PREVIOUS, 1)):
        means = attentions.diagonal(-offset, -2, -1)[..., -LENGTH:].mean((1, 3))
        best = means.flatten().topk(len(heads))
        assert best.indices.tolist() == [9 * (layer - 1) + head - 1 for layer, head, _ in heads]
        assert best.values.tolist() == pytest.approx([mean for _, _, mean in heads], abs=0.04)


@pytest.mark.demo
def test_what_is_measured_is_what_it_returns_itself(smollm2) -> None:
    model, corpus = load(smollm2), headscope.read("grammar:3")
    tokenizer = copy.deepcopy(model.tokenizer)
    tokenizer.backend_tokenizer.normalizer = normalizers.Prepend(" ")
    maps = [witnesses.see(model.module, tokenizer, document)["decoder"] for document in corpus]
    table = headscope.measure(model, corpus, "surface", text="spaced", permutations=0)
    for name in ("mass_previous", "mass_first", "mass_self", "entropy", "mean_distance"):
        np.testing.assert_allclose(table[name], witnesses.surface(maps)[name], rtol=1e-4, atol=1e-5)
