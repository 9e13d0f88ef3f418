"""Tiny language models, and the GGUF files that llama.cpp's converter would write of them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
import transformers as hf

import tiny

HEADS, WIDTH, TEXT_LENGTH = 6, 84, 61

SIZES = {"num_hidden_layers": 2, "num_attention_heads": HEADS, "hidden_size": WIDTH, "intermediate_size": 37}
SIZES |= {"num_key_value_heads": 2, "max_position_embeddings": tiny.POSITIONS}
WINDOWED = {"num_hidden_layers": 7, "hidden_size": 42, "head_dim": 14, "sliding_window": tiny.WINDOW}
EXPERTS = {"num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 12}  # a multiple of 4, as must be
LFM2 = {"layer_types": ["conv", "full_attention"], "block_auto_adjust_ff_dim": False}
QWEN35 = {"layer_types": ["linear_attention", "full_attention"], "linear_num_key_heads": 2, "head_dim": 22}
QWEN35 |= {"linear_num_value_heads": 6, "linear_key_head_dim": 5, "linear_value_head_dim": 7}
TURNED = {"rope_theta": 503.0, "mrope_section": [3, 1, 1], "mrope_interleaved": True, "partial_rotary_factor": 10 / 22}
QWEN35 |= {"linear_conv_kernel_dim": 3, "rope_parameters": {"rope_type": "default", **TURNED}}

MODELS: dict[str, tuple[type, type, dict[str, Any]]] = {
    "llama": (hf.LlamaForCausalLM, hf.LlamaConfig, SIZES | {"head_dim": 22}),
    "qwen2": (hf.Qwen2ForCausalLM, hf.Qwen2Config, SIZES),
    "qwen3": (hf.Qwen3ForCausalLM, hf.Qwen3Config, SIZES | {"head_dim": 22}),
    "phi3": (hf.Phi3ForCausalLM, hf.Phi3Config, SIZES),
    "starcoder2": (hf.Starcoder2ForCausalLM, hf.Starcoder2Config, SIZES),
    "stablelm": (hf.StableLmForCausalLM, hf.StableLmConfig, SIZES | {"partial_rotary_factor": 4 / 7}),
    "nemotron": (hf.NemotronForCausalLM, hf.NemotronConfig, SIZES | {"partial_rotary_factor": 3 / 7}),
    "gemma2": (hf.Gemma2ForCausalLM, hf.Gemma2Config, SIZES | WINDOWED | {"query_pre_attn_scalar": 14}),
    "gemma3": (hf.Gemma3ForCausalLM, hf.Gemma3TextConfig, SIZES | WINDOWED | {"query_pre_attn_scalar": 14}),
    "qwen2_moe": (hf.Qwen2MoeForCausalLM, hf.Qwen2MoeConfig, SIZES | EXPERTS | {"shared_expert_intermediate_size": 13}),
    "qwen3_moe": (
        hf.Qwen3MoeForCausalLM,
        hf.Qwen3MoeConfig,
        SIZES | EXPERTS | {"head_dim": 22, "norm_topk_prob": True},
    ),
    "qwen3_5": (hf.Qwen3_5ForCausalLM, hf.Qwen3_5TextConfig, SIZES | QWEN35),
    "lfm2": (hf.Lfm2ForCausalLM, hf.Lfm2Config, SIZES | LFM2),
    "falcon": (hf.FalconForCausalLM, hf.FalconConfig, SIZES | {"ffn_hidden_size": 37, "num_kv_heads": 1}),
    "bloom": (hf.BloomForCausalLM, hf.BloomConfig, {"n_layer": 2, "n_head": HEADS, "hidden_size": WIDTH}),
    "gpt2": (
        hf.GPT2LMHeadModel,
        hf.GPT2Config,
        {"n_layer": 2, "n_head": HEADS, "n_embd": WIDTH, "n_inner": 37, "n_positions": tiny.POSITIONS},
    ),
}

KEYS = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.sliding_window": "sliding_window",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    "shortconv.l_cache": "conv_L_cache",
    "ssm.conv_kernel": "linear_conv_kernel_dim",
    "ssm.state_size": "linear_key_head_dim",
    "ssm.group_count": "linear_num_key_heads",
    "ssm.time_step_rank": "linear_num_value_heads",
}
"""What the converter writes of a configuration, and what it is called there."""


def make(model_type: str, **settings: Any) -> tuple[hf.PreTrainedModel, hf.PreTrainedTokenizerFast]:
    """A tiny language model of this type with its head, and its tokenizer."""
    model, config, sizes = MODELS[model_type]
    layers = {"decoder": sizes.get("num_hidden_layers", 2)}
    plan = tiny.Family(
        model,
        config,
        tiny.LLAMA,
        layers,
        sizes | settings,
        heads=HEADS,
        width=sizes.get("hidden_size", WIDTH),
        spread=0.2,
    )
    return tiny.build(plan, model_type, seed=7)


def write(
    path: Path,
    module: hf.PreTrainedModel,
    tokenizer: hf.PreTrainedTokenizerFast,
    *,
    pre: str | None = "gpt-2",
    architecture: str | None = None,
    keys: dict[str, Any] | None = None,
    tensors: dict[str, np.ndarray] | None = None,
    without: str = "none",
    sentencepiece: bool = False,
) -> Path:
    """A file of the model and its tokenizer.

    Args:
        path: of the file.
        module: the model, with its language-model head.
        tokenizer: of byte-level BPE.
        pre: the name of its pre-tokenizer.
        architecture: as llama.cpp calls it. Default: as transformers does.
        keys: of the architecture or the tokenizer, beyond or in place of the others; None leaves one out.
        tensors: further ones.
        without: the weights whose names have this in them.
        sentencepiece: whether the tokens are written as those of such a tokenizer.
    """
    config = module.config
    usual = config.model_type.removesuffix("_text").replace("_", "")
    architecture = architecture or usual
    writer = gguf.GGUFWriter(path, architecture)
    values = {f"{architecture}.{key}": getattr(config, name, None) for key, name in KEYS.items()}
    values |= {f"{architecture}.{key}": value for key, value in _list_others(config).items()}
    values |= {"tokenizer.ggml.pre": pre, "tokenizer.ggml.add_bos_token": True}
    values["tokenizer.ggml.model"] = "llama" if sentencepiece else "gpt2"
    for key, value in (values | (keys or {})).items():
        if value is not None:
            writer.add_key_value(
                key, value, _type(value), sub_type=_type(value[0]) if isinstance(value, list) else None
            )
    _add_tokenizer(writer, tokenizer, config.vocab_size, sentencepiece)
    names = gguf.get_tensor_name_map({name: key for key, name in gguf.MODEL_ARCH_NAMES.items()}[usual], 7)
    for name, weights in _list_weights(module):
        written = [names.get_name(part, (".weight", ".bias")) for part in (name, name.partition(".")[2])]
        if any(written) and without not in name:
            (tensor, *_) = filter(None, written)
            writer.add_tensor(tensor, _order(tensor, weights, config).contiguous().numpy())
    for name, values in (tensors or {}).items():
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _list_others(config: hf.PreTrainedConfig) -> dict[str, Any]:
    """The keys that are no attribute of a configuration as they are."""
    size = getattr(config, "head_dim", None) or config.hidden_size // HEADS
    others = {"attention.key_length": size, "attention.value_length": size}
    widths = (getattr(config, name, None) for name in ("ffn_hidden_size", "n_inner", "intermediate_size"))
    others["feed_forward_length"] = next(filter(None, widths), 4 * WIDTH)
    if rope := getattr(config, "rope_parameters", None):
        rope = rope.get("full_attention", rope)
        others["rope.freq_base"] = float(rope["rope_theta"])
        others["rope.dimension_count"] = round(size * rope.get("partial_rotary_factor", 1))
    if config.model_type == "qwen3_5_text":
        others["full_attention_interval"] = 2
        others["ssm.inner_size"] = config.linear_num_value_heads * config.linear_value_head_dim
        others["rope.dimension_sections"] = [*rope["mrope_section"], 0]
    if config.model_type == "falcon":
        others["attention.head_count_kv"] = config.num_kv_heads
    if config.model_type == "lfm2":
        count = config.num_key_value_heads
        others["attention.head_count_kv"] = [count if kind == "full_attention" else 0 for kind in config.layer_types]
        others["attention.layer_norm_rms_epsilon"] = config.norm_eps
    return others


def _list_weights(module: hf.PreTrainedModel) -> Iterator[tuple[str, torch.Tensor]]:
    for name, weights in module.state_dict().items():
        if name.endswith("experts.gate_up_proj"):
            for part, half in zip(("gate", "up"), weights.chunk(2, 1), strict=True):
                yield name.replace("gate_up", part) + ".weight", half
        elif name.endswith("dt_bias"):
            yield name.replace("dt_bias", "dt_proj.bias"), weights
        elif name.endswith("experts.down_proj"):
            yield name + ".weight", weights
        elif name != "lm_head.weight" or not module.config.tie_word_embeddings:
            yield name, weights


def _type(value: Any) -> gguf.GGUFValueType:
    types = gguf.GGUFValueType
    named = {bool: types.BOOL, int: types.UINT32, float: types.FLOAT32, str: types.STRING, list: types.ARRAY}
    return named[type(value)]


def _add_tokenizer(
    writer: gguf.GGUFWriter, tokenizer: hf.PreTrainedTokenizerFast, size: int, sentencepiece: bool
) -> None:
    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    vocabulary = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    control, normal, unused = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL, gguf.TokenType.UNUSED
    types = [control if token in tokenizer.all_special_tokens else normal for token in vocabulary]
    beyond = range(len(vocabulary), size)
    tokens = [*vocabulary, *(f"[PAD{number}]" for number in beyond)]
    writer.add_token_types([*types, *(unused for _ in beyond)])
    if sentencepiece:
        writer.add_token_list([token.replace("Ġ", "▁") for token in tokens])
        writer.add_token_scores([float(-number) for number in range(size)])
    else:
        writer.add_token_list(tokens)
        writer.add_token_merges([" ".join(merge) for merge in model["merges"]])
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)


def _order(name: str, weights: torch.Tensor, config: hf.PreTrainedConfig) -> torch.Tensor:
    """The weights as llama.cpp has them."""
    kind = config.model_type
    if kind == "llama" and (".attn_q." in name or ".attn_k." in name):
        heads = config.num_attention_heads if ".attn_q." in name else config.num_key_value_heads
        return weights.reshape(heads, 2, -1, *weights.shape[1:]).swapaxes(1, 2).reshape(weights.shape)
    if kind == "qwen3_5_text":
        return _order_qwen35(name, weights, config)
    if kind in ("gemma2", "gemma3_text", "nemotron") and name.endswith("norm.weight"):
        return weights + 1
    if kind == "gpt2" and "blk" in name and weights.ndim == 2:
        return weights.T
    if kind == "bloom" and "attn_qkv" in name:
        return weights.reshape(HEADS, 3, -1, *weights.shape[1:]).swapaxes(0, 1).reshape(weights.shape)
    if "ffn_gate_inp_shexp" in name:
        return weights[0]
    return weights[:, 0] if "shortconv.conv" in name else weights


def _order_qwen35(name: str, weights: torch.Tensor, config: hf.PreTrainedConfig) -> torch.Tensor:
    """With the heads of values by their number within a group, not by group."""
    heads, width = config.linear_num_key_heads, config.linear_value_head_dim
    others = 2 * heads * config.linear_key_head_dim

    def regroup(rows: torch.Tensor, size: int) -> torch.Tensor:
        return rows.reshape(heads, -1, size, *rows.shape[1:]).swapaxes(0, 1).reshape(rows.shape)

    if "ssm_a" in name and "alpha" not in name:
        return -regroup(weights, 1).exp()
    if any(part in name for part in ("ssm_alpha", "ssm_beta", "ssm_dt")):
        return regroup(weights, 1)
    if "attn_gate" in name:
        return regroup(weights, width)
    if "attn_qkv" in name or "ssm_conv1d" in name:
        ordered = torch.cat([weights[:others], regroup(weights[others:], width)])
        return ordered[:, 0] if "ssm_conv1d" in name else ordered
    if "ssm_out" in name:
        return regroup(weights.T, width).T
    return weights + 1 if name.endswith("norm.weight") and "ssm" not in name else weights


def attend(module: hf.PreTrainedModel, length: int = TEXT_LENGTH) -> torch.Tensor:
    """The attention to random tokens."""
    tokens = torch.randint(3, tiny.BYTE_VOCABULARY, (1, length), generator=torch.Generator().manual_seed(3))
    module.set_attn_implementation("eager")
    with torch.no_grad():
        return torch.stack(module(tokens, output_attentions=True).attentions)[:, 0]
