"""What a GGUF file declares about attention is followed, or the file is refused with the key's name."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

import gguf_files
import tiny
from headscope.capture.open.gguf_config import configure
from headscope.capture.open.gguf_metadata import Metadata
from headscope.capture.open.loading import load
from headscope.errors import ModelError

SIZE = 14
ADVICE = "give the model's hub id, or a folder with config.json, weights and tokenizer."
LOST = f"which would get lost on the way to transformers, and other attention would be measured; {ADVICE}"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "cache"))


def distance(first: torch.Tensor, second: torch.Tensor) -> float:
    """The mean total variation between the rows of two attentions."""
    return float((first - second).abs().sum(-1).mean() / 2)


# ----------------------------------------------------------------- followed


def rope(kind: str, theta: float = 10_000.0, **settings: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": theta, **settings}}


def scaling(architecture: str, kind: str | None, **values: Any) -> dict[str, Any]:
    keys = {f"{architecture}.rope.scaling.{key}": value for key, value in values.items()}
    return keys | {f"{architecture}.rope.scaling.type": kind}


def steps(kind: str) -> np.ndarray:
    return np.linspace(1, 9, SIZE // 2) if kind == "long" else np.linspace(2, 1, SIZE // 2)


LLAMA3 = {"factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 31}
LONGROPE = {f"{kind}_factor": steps(kind).tolist() for kind in ("long", "short")}
YARN = {"factor": 4.0, "original_max_position_embeddings": 31}
WRITTEN_YARN = {"factor": 4.0, "original_context_length": 31}
GEMMA3_ROPE = {
    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 30_011.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 503.0},
}
GEMMA3_KEYS = {"gemma3.rope.freq_base_swa": 503.0, **scaling("gemma3", "linear", factor=8.0)}


def llama3_divisors() -> np.ndarray:
    """As llama.cpp's converter writes them, by the formula of Llama 3."""
    wavelengths = 2 * math.pi * 10_000.0 ** (2 * np.arange(11) / 22)
    share = np.clip((31 / wavelengths - 1) / 3, 0, 1)
    return 1 / ((1 - share) / 32 + share)


# name: type of the model, its settings, keys and tensors of the file
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, np.ndarray]]] = {
    **{model_type: (model_type, {}, {}, {}) for model_type in gguf_files.MODELS},
    "linear": ("llama", rope("linear", factor=8.0), scaling("llama", "linear", factor=8.0), {}),
    "linear untyped": ("llama", rope("linear", factor=8.0), scaling("llama", None, factor=8.0), {}),
    "linear of old": ("llama", rope("linear", factor=8.0), {"llama.rope.scale_linear": 8.0}, {}),
    "none": ("llama", rope("default"), scaling("llama", "none", factor=8.0), {}),
    "yarn": ("llama", rope("yarn", **YARN), scaling("llama", "yarn", **WRITTEN_YARN), {}),
    "yarn of qwen2": ("qwen2", rope("yarn", 1e6, **YARN), scaling("qwen2", "yarn", **WRITTEN_YARN), {}),
    "yarn betas": (
        "llama",
        rope("yarn", beta_fast=7.0, beta_slow=2.0, **YARN),
        scaling("llama", "yarn", yarn_beta_fast=7.0, yarn_beta_slow=2.0, **WRITTEN_YARN),
        {},
    ),
    "yarn attention factor": (
        "llama",
        rope("yarn", attention_factor=0.7 * (1 + 0.1 * math.log(4)), **YARN),
        scaling("llama", "yarn", attn_factor=0.7, **WRITTEN_YARN),
        {},
    ),
    "llama3": ("llama", rope("llama3", **LLAMA3), {}, {"rope_freqs.weight": llama3_divisors()}),
    "longrope": (
        "phi3",
        {"original_max_position_embeddings": 31, **rope("longrope", attention_factor=1.3, **LONGROPE)},
        scaling("phi3", None, original_context_length=31, attn_factor=1.3),
        {f"rope_factors_{kind}.weight": steps(kind) for kind in ("long", "short")},
    ),
    "base": ("starcoder2", rope("default", 503.0), {}, {}),
    "base of stablelm": ("stablelm", rope("default", 503.0, partial_rotary_factor=4 / 7), {}, {}),
    "bases of gemma3": ("gemma3", {"rope_parameters": GEMMA3_ROPE}, GEMMA3_KEYS, {}),
    "window of phi3": ("phi3", {"sliding_window": tiny.WINDOW}, {}, {}),
    "window of starcoder2": ("starcoder2", {"sliding_window": tiny.WINDOW}, {}, {}),
    "softcap": ("gemma2", {"attn_logit_softcapping": 2.0}, {}, {}),
    "pattern": ("gemma3", {}, {"gemma3.attention.sliding_window_pattern": 6}, {}),
    "no softcap": ("gemma2", {"attn_logit_softcapping": None}, {"gemma2.attn_logit_softcapping": 0.0}, {}),
    "epsilon": ("starcoder2", {"norm_epsilon": 0.1}, {"starcoder2.attention.layer_norm_epsilon": 0.1}, {}),
    "layers that predict ahead": (
        "qwen3_5",
        {},
        {"qwen35.block_count": 3, "qwen35.nextn_predict_layers": 1},
        {"blk.2.nextn.eh_proj.weight": np.ones((84, 168))},
    ),
    "biases": ("llama", {"attention_bias": True, "mlp_bias": True}, {}, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_its_attention_is_that_of_the_model_in_a_folder(tmp_path, name) -> None:
    model_type, settings, keys, tensors = CASES[name]
    module, tokenizer = gguf_files.make(model_type, **settings)
    pre = "qwen2" if model_type == "qwen2" else "gpt-2"
    file = gguf_files.write(tmp_path / "tiny.gguf", module, tokenizer, pre=pre, keys=keys, tensors=tensors)
    loaded = load(file).module
    for length in (gguf_files.TEXT_LENGTH, 29):  # longer and shorter than the context of the training
        assert distance(gguf_files.attend(loaded, length), gguf_files.attend(module, length)) < 1e-5


@pytest.mark.parametrize(("layers", "scalar"), [(46, 144), (42, 128)])
def test_one_gemma_scales_its_queries_by_the_width_of_the_model(layers, scalar) -> None:
    """Gemma 2 of 27 billion parameters, which no key says."""
    sizes = {"hidden_size": 4608, "num_attention_heads": 32, "head_dim": 128, "num_hidden_layers": layers}
    metadata = Metadata(Path("gemma.gguf"), "gemma2", {"block_count": layers}, {}, (), {})
    assert configure(metadata, hf.Gemma2Config(**sizes)).query_pre_attn_scalar == scalar


NEUTRAL = {
    "rope.scaling.type": "none",
    "rope.scaling.factor": 1.0,
    "rope.scaling.attn_factor": 1.0,
    "rope.scaling.finetuned": True,
    "attention.scale": 0.0,
    "attention.causal": True,
    "attention.sliding_window": 0,
    "attention.max_alibi_bias": 0.0,
    "attention.clamp_kqv": 0.0,
    "attn_logit_softcapping": 0.0,
    "logit_scale": 1.0,
    "expert_count": 0,
    "pooling_type": 3,
    "attention.layer_norm_epsilon": 0.1,  # Llama has the other norm
    "vocab_size": tiny.BYTE_VOCABULARY,
}


def test_values_that_ask_for_nothing_are_no_reason_to_refuse(tmp_path) -> None:
    module, tokenizer = gguf_files.make("llama")
    keys = {f"llama.{key}": value for key, value in NEUTRAL.items()} | {"general.license": "mit", "split.count": 1}
    loaded = load(gguf_files.write(tmp_path / "tiny.gguf", module, tokenizer, keys=keys)).module
    assert distance(gguf_files.attend(loaded), gguf_files.attend(module)) < 1e-5


# ------------------------------------------------------------------ refused


REFUSED = {
    "llama.attention.causal": False,
    "llama.attention.clamp_kqv": 6.0,
    "llama.attention.head_count_kv": [2, 1],
    "llama.attention.max_alibi_bias": 8.0,
    "llama.attention.scale": 0.5,
    "llama.attention.sliding_window": 31,
    "llama.attention.temperature_length": 31,  # of no place in the table
    "llama.attention.value_length": 11,
    "llama.attn_logit_softcapping": 30.0,
    "llama.embedding_scale": 3.0,
    "llama.expert_count": 2,
    "llama.logit_scale": 0.5,
    "llama.residual_scale": 0.5,
    "llama.rope.dimension_count": 14,
    "llama.rope.dimension_sections": [5, 3, 3],
    "llama.rope.freq_base_swa": 503.0,
    "llama.rope.scaling.attn_factor": 0.5,
    "llama.rope.scaling.type": "dynamic",
    "llama.rope.scaling.yarn_ext_factor": 0.5,
    "llama.rope.scaling.yarn_log_multiplier": 0.5,
    "gemma2.attention.sliding_window_pattern": [True, False, False],
    "gpt2.rope.freq_base": 503.0,
    "phi3.rope.scaling.factor": 2.0,
    "qwen2.attention.key_length": 22,
    "qwen2.attention.sliding_window": 31,
}


def refuse(file: Path) -> str:
    with pytest.raises(ModelError) as refused:
        load(file)
    return str(refused.value)


@pytest.mark.parametrize("key", REFUSED)
def test_what_would_get_lost_is_refused_by_name(tmp_path, key) -> None:
    model = gguf_files.make(key.partition(".")[0])
    file = gguf_files.write(tmp_path / "tiny.gguf", *model, keys={key: REFUSED[key]})
    assert refuse(file) == f"the GGUF file {str(file)!r} declares {key} = {REFUSED[key]!r}, {LOST}"


@pytest.mark.parametrize("tensor", ["blk.2.attn_q.weight", "blk.0.attn_sinks.weight", "blk.1.attn_q_norm.weight"])
def test_a_tensor_that_no_parameter_takes_is_refused(tmp_path, tensor) -> None:
    file = gguf_files.write(tmp_path / "tiny.gguf", *gguf_files.make("llama"), tensors={tensor: np.ones((132, 84))})
    assert refuse(file) == (
        f"the GGUF file {str(file)!r} holds 1 of 22 tensors that would get lost on the way to transformers, such as "
        f"{tensor}, and other attention would be measured; {ADVICE}"
    )


def test_divisors_for_short_texts_alone_are_refused(tmp_path) -> None:
    tensors = {"rope_factors_short.weight": np.ones(11)}
    file = gguf_files.write(tmp_path / "tiny.gguf", *gguf_files.make("llama"), tensors=tensors)
    assert "1 of 22 tensors that would get lost on the way to transformers, such as rope_factors_s" in refuse(file)


def test_a_model_that_turns_its_queries_in_another_way_is_noticed(tmp_path, monkeypatch) -> None:
    """As if a later transformers no longer followed the configuration."""
    file = gguf_files.write(
        tmp_path / "tiny.gguf", *gguf_files.make("llama"), keys=scaling("llama", "linear", factor=8.0)
    )
    monkeypatch.setattr("headscope.capture.open.gguf_rope.Rope.parameters", lambda rope: {"rope_type": "default"})
    assert refuse(file) == f"the GGUF file {str(file)!r} declares llama.rope.scaling.type = 'linear', {LOST}"
