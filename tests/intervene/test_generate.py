"""Heads stay changed while text is generated: with a cache as without one, step by step."""

import copy

import pytest
import torch
import transformers as hf

import tiny
from edited import DOCUMENTS, agree
from headscope.intervene import edit

KINDS = {
    "llama": hf.LlamaForCausalLM, "gpt2": hf.GPT2LMHeadModel, "mistral": hf.MistralForCausalLM,
    "gemma2": hf.Gemma2ForCausalLM, "gpt_oss": hf.GptOssForCausalLM, "bart": hf.BartForConditionalGeneration,
}  # fmt: skip
"""Without T5: transformers' cache for it has as many layers as its encoder, and here its decoder has one more."""

WAYS = {
    "uniform": edit.uniform,
    "zero": edit.zero,
    "mean": lambda model, heads: edit.mean(model, heads, DOCUMENTS),
    "mean by position": lambda model, heads: edit.mean(model, heads, DOCUMENTS, by_position=True),
    "resample": lambda model, heads: edit.resample(model, heads, DOCUMENTS),
    "cut": lambda model, heads: edit.cut(model, heads, [(12, 8), (13, 11), (2, 1), (12, 12), (3, 0)]),
}


def language_model(family: str) -> tuple[hf.PreTrainedModel, hf.PreTrainedTokenizerFast]:
    """A model that can generate, of the sizes of a tiny one."""
    module, tokenizer = tiny.make(family)
    torch.manual_seed(3)
    whole = KINDS[family](copy.deepcopy(module.config)).eval()
    whole.base_model.load_state_dict(module.state_dict())
    return whole, tokenizer


def generate(model: hf.PreTrainedModel, **options) -> tuple[torch.Tensor, torch.Tensor]:
    """The tokens and the logits of five steps, for three texts of eleven tokens."""
    ids = torch.randint(20, 100, (3, 11), generator=torch.Generator().manual_seed(7))
    settings = {"max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False, "output_logits": True,
                "return_dict_in_generate": True, "attention_mask": torch.ones_like(ids), "pad_token_id": 0}  # fmt: skip
    generated = model.generate(ids, **settings, **options)
    return generated.sequences, torch.stack(generated.logits)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", KINDS)
def test_text_is_generated_as_without_a_cache(family: str, way: str) -> None:
    whole, tokenizer = language_model(family)
    heads = ["encoder 1-2", "decoder 2-3", "cross 2-1"] if family == "bart" else ["1-2", "2-3"]
    plain, plain_logits = generate(whole)
    with WAYS[way]((whole, tokenizer), heads):
        cached, logits = generate(whole, use_cache=True)
        anew, expected = generate(whole, use_cache=False)
    assert torch.equal(cached, anew)
    agree(logits, expected, to=1e-5)
    assert (logits - plain_logits).abs().max() > 1e-3
    assert torch.equal(generate(whole)[0], plain)


@pytest.mark.parametrize("way", ["mean by position", "resample", "cut"])
def test_a_cache_with_room_to_spare_changes_nothing(way: str) -> None:
    whole, tokenizer = language_model("llama")
    with WAYS[way]((whole, tokenizer), ["1-2", "2-3"]):
        _, logits = generate(whole, cache_implementation="static", disable_compile=True)
        _, expected = generate(whole, use_cache=False)
    agree(logits, expected, to=1e-5)
