"""Tiny models of which some layers have no attention, or in which attention hides a sink in its output."""

import torch
import transformers as hf
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from tiny import BYTE_VOCABULARY, EXPERTS, GPT2, LLAMA, ROTARY, WINDOW, Family, build, tokenizer

SIZES = {
    "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 14, "hidden_size": 42, "intermediate_size": 37,
    "max_position_embeddings": 149,
}  # fmt: skip
LINEAR = {
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 7, "linear_value_head_dim": 7,
}  # fmt: skip
MAMBA = {"mamba_num_heads": 3, "mamba_head_dim": 14, "ssm_state_size": 11, "n_groups": 1, "expand": 1}

# fmt: off
HYBRIDS: dict[str, Family] = {
    "qwen3_5": Family(
        hf.Qwen3_5TextModel, hf.Qwen3_5TextConfig, GPT2, {"decoder": 5},
        {**SIZES, **LINEAR, "num_hidden_layers": 5,
         "layer_types": ["linear_attention", "full_attention", "linear_attention", "linear_attention",
                         "full_attention"]},
        heads=6, width=42, spread=0.2),
    "nemotron_h": Family(
        hf.NemotronHModel, hf.NemotronHConfig, LLAMA, {"decoder": 5},
        {**SIZES, **MAMBA, **EXPERTS, "layers_block_type": ["mamba", "attention", "moe", "attention", "mlp"],
         "n_routed_experts": 2, "moe_intermediate_size": 37, "moe_shared_expert_intermediate_size": 37, "n_group": 1,
         "topk_group": 1},
        heads=6, width=42, spread=0.2),
    "lfm2": Family(
        hf.Lfm2Model, hf.Lfm2Config, LLAMA, {"decoder": 3},
        {**SIZES, "hidden_size": 84, "num_hidden_layers": 3, "layer_types": ["conv", "full_attention", "conv"],
         "block_auto_adjust_ff_dim": False},
        heads=6, width=84, spread=0.15),
    "granite_swa": Family(
        hf.GraniteSWAModel, hf.GraniteSWAConfig, LLAMA, {"decoder": 3},
        {**SIZES, **ROTARY, "num_hidden_layers": 3, "sliding_window": WINDOW,
         "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
        heads=6, width=42, spread=0.3),
}
# fmt: on

ATTENTION_LAYERS = {"qwen3_5": (2, 5), "nemotron_h": (2, 4), "lfm2": (2,), "granite_swa": (1, 2, 3)}
"""The layers that have attention, counted from 1."""


LAYERS = {"num_hidden_layers": 4, "hidden_size": 84}
HALF = {**LAYERS, "layer_types": ["linear_attention", "full_attention"] * 2}
MOE = {**EXPERTS, "num_experts": 2, "moe_intermediate_size": 37, "shared_expert_intermediate_size": 37}
SSM = {"mamba_n_heads": 12, "mamba_d_head": 14, "mamba_d_state": 11, "mamba_n_groups": 1}
# fmt: off
FURTHER = {  # by model type; of four layers the second and the fourth have attention
    "qwen3_next": {**HALF, **LINEAR, **MOE},
    "jamba": {**LAYERS, **MOE, "attn_layer_offset": 1, "attn_layer_period": 2, "mamba_d_state": 11,
              "mamba_dt_rank": 5, "use_mamba_kernels": False},
    "olmo_hybrid": {**HALF, **LINEAR},
    "lfm3": {**LAYERS, "sliding_window": WINDOW,
             "layer_types": ["conv", "full_attention", "conv", "sliding_attention"]},
    "minimax": {**HALF, **EXPERTS, "block_size": 17},
    "granitemoehybrid": {**LAYERS, **EXPERTS, **SSM, "layer_types": ["mamba", "attention"] * 2,
                         "shared_intermediate_size": 37},
    "bamba": {**LAYERS, **SSM, "attn_layer_indices": [1, 3]},
    "zamba2": {**LAYERS, "layers_block_type": ["mamba", "hybrid"] * 2, "mamba_ngroups": 1, "n_mamba_heads": 12,
               "mamba_d_state": 11, "num_mem_blocks": 1, "adapter_rank": 5},
    "recurrent_gemma": {**LAYERS, "block_types": ["recurrent", "attention"], "attention_window_size": 17},
}
# fmt: on


def make_further(model_type: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A tiny model of this type with the weights that transformers gives it, and its tokenizer."""
    words = tokenizer(LLAMA)
    numbers = {"vocab_size": BYTE_VOCABULARY, "pad_token_id": 2, "bos_token_id": 0, "eos_token_id": 1}
    config = hf.AutoConfig.for_model(model_type, **{**SIZES, **FURTHER[model_type], **numbers})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return hf.AutoModel.from_config(config).eval(), words


def make(family: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A tiny model of this family, and its tokenizer."""
    return build(HYBRIDS[family], family)
