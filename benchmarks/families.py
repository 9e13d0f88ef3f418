"""Every type of model that transformers knows: built tiny, measured, and compared with what the model itself returns.

    python benchmarks/families.py [--types bert gpt2 ...] [--part 1/3] [--save outcomes.json]

A type is built from its own configuration with small numbers in it. Each head's attention on two texts, one of them
padded, must be that of `output_attentions` in eager for each text alone.

Outcomes: ``equal``; ``refused`` by a sentence; ``differs`` or ``raises``, which would be faults; ``not run`` where the
untouched model takes no text; ``not built`` where the small configuration is none that transformers takes.
"""

import argparse
import dataclasses
import gc
import json
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModel, PreTrainedConfig, PreTrainedTokenizerFast
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.utils import logging

from headscope.capture.forward.interface import Capture
from headscope.capture.model.model import Model
from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import collate
from headscope.corpora import Document
from headscope.errors import HeadscopeError

VOCABULARY, LARGEST = 131, 20_000_000
TEXTS = [
    Document(str(size), tuple(f"w{(size * place) % 97 + 10}" for place in range(1, size + 1))) for size in (17, 11)
]
# The tokens of a text beside these are words; some models read the first ids as special ones.
SMALL = {
    "vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "decoder_start_token_id": 1,
    "sep_token_id": 2, "cls_token_id": 1, "mask_token_id": 3, "num_experts": 2, "num_local_experts": 2,
    "n_routed_experts": 2, "num_experts_per_tok": 1, "n_shared_experts": 1, "moe_topk": 1, "n_group": 1,
    "topk_group": 1, "first_k_dense_replace": 0, "sliding_window": 7, "attention_window": 8, "local_attention": 8,
    "q_lora_rank": 24, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 12,
    "embedding_size": 48, "image_size": 32, "patch_size": 16, "num_channels": 3,
}  # fmt: skip
ENDS = {
    ("num_hidden_layers", "n_layers", "n_layer", "num_layers", "encoder_layers", "decoder_layers", "depth",
     "num_decoder_layers", "num_encoder_layers", "n_enc_layers"): 2,
    ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"): 2,
    ("num_attention_heads", "n_heads", "n_head", "num_heads", "attention_heads"): 4,
    ("head_dim", "attention_head_size", "d_kv", "d_head", "kv_channels"): 12,
    ("intermediate_size", "ffn_dim", "d_ff", "d_inner", "n_inner", "ffn_hidden_size", "hidden_dim"): 64,
    ("hidden_size", "d_model", "n_embd", "dim", "emb_dim", "embed_dim", "projection_dim"): 48,
    ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "seq_length"): 128,
}  # fmt: skip


def main() -> None:
    """Print the outcome of each type, and how often each occurs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--types", nargs="+", help="default: all")
    parser.add_argument("--part", default="1/1", help="of the types, as K/N")
    parser.add_argument("--save", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.set_verbosity(logging.CRITICAL)
    torch.set_num_threads(1)
    part, parts = map(int, arguments.part.split("/"))
    types = arguments.types or sorted(CONFIG_MAPPING.keys())[part - 1 :: parts]
    outcomes: dict[str, tuple[str, str]] = {}
    for model_type in types:
        outcomes[model_type] = measure(model_type)
        print(f"{model_type:32s} {outcomes[model_type][0]:10s} {outcomes[model_type][1]}"[:220], flush=True)
        gc.collect()
    print(dict(Counter(outcome for outcome, _ in outcomes.values())))
    if arguments.save:
        arguments.save.write_text(json.dumps(outcomes, indent=1))


def measure(model_type: str) -> tuple[str, str]:
    """Return the outcome for a type of model, and the reason or the largest difference."""
    try:
        config = shrink(CONFIG_MAPPING[model_type]())
        with torch.device("meta"):
            size = sum(parameter.numel() for parameter in AutoModel.from_config(config).parameters())
        if size > LARGEST:
            return "not built", f"{size:,} parameters are not tiny"
        torch.manual_seed(7)
        module = AutoModel.from_config(config, dtype=torch.float32).eval()
        spread(module)
    except Exception as error:
        return "not built", f"{type(error).__name__}: {error}".replace("\n", " ")
    fault = ""
    try:
        with torch.no_grad():
            encoder_decoder = {"decoder_input_ids": torch.tensor([[1, 7, 8]])} if config.is_encoder_decoder else {}
            module(input_ids=torch.tensor([[7, 8, 9]]), **encoder_decoder)
    except Exception as error:
        fault = f"{type(error).__name__}: {error}".replace("\n", " ")
    try:
        model = Model.from_module(module, make_tokenizer(), name=model_type)
        texts, _ = Alignment.for_model(model).align(TEXTS)
        batch = collate(model, texts)
        seen: list[Attention] = []
        Capture.verified(model, batch).run(batch, seen.append, whole=True)
        return compare(model, texts, seen)
    except HeadscopeError as error:
        return ("not run" if fault else "refused"), str(error)
    except Exception as error:
        return "raises", f"{type(error).__name__}: {error} {fault and f'(untouched: {fault})'}".replace("\n", " ")


def shrink(config: PreTrainedConfig) -> PreTrainedConfig:
    """Return a configuration of the same class with small numbers, its parts included."""
    settings: dict[str, Any] = {}
    for field in dataclasses.fields(config) if dataclasses.is_dataclass(config) else ():
        value = getattr(config, field.name, None)
        if isinstance(value, PreTrainedConfig):
            settings[field.name] = shrink(value).to_dict()
        elif field.name in SMALL and value is not None:
            settings[field.name] = SMALL[field.name]
        elif isinstance(value, int) and not isinstance(value, bool):
            settings[field.name] = min(next((n for ends, n in ENDS.items() if field.name.endswith(ends)), value), value)
        elif field.name == "rope_parameters" and isinstance(value, dict) and "mrope_section" in value:
            settings[field.name] = value | {"mrope_section": [2, 2, 2]}  # half of a head's size
    if "kv_lora_rank" in settings and "num_key_value_heads" in settings:
        settings["num_key_value_heads"] = settings["num_attention_heads"]
    return type(config)(**settings)


def spread(module: torch.nn.Module) -> None:
    """Make the weights so wide that attention is far from uniform."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.ndim == 2 and parameter.is_floating_point():
                parameter.normal_(0, 0.2)


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer with a token for each word."""
    vocabulary = {"<pad>": 0, "<s>": 1, "</s>": 2, "<mask>": 3, "<unk>": 4}
    vocabulary |= {f"w{number}": number for number in range(5, 110)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def compare(model: Model, texts: list[Any], seen: list[Attention]) -> tuple[str, str]:
    """Compare what was captured with what the model returns in eager for each text alone."""
    model.module.set_attn_implementation("eager")
    largest, weights = 0.0, 0
    # The weights that some families with sinks return sum to 1 without them (granite_swa).
    has_sinks = any(name.endswith("sinks") for name, _ in model.module.named_parameters())
    for row, text in enumerate(texts):
        batch = collate(model, [text])
        with torch.no_grad():
            output = model.module(**batch.inputs, output_attentions=True)
        names = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}
        for attention in seen:
            returned = getattr(output, names[attention.attention_type], None) or getattr(output, "attentions", None)
            numbers = model.attention_layers[attention.attention_type]
            matrices = [each for each in returned or () if each is not None]
            if len(matrices) == model.layers[attention.attention_type] != len(numbers):
                matrices = [matrices[number - 1] for number in numbers]
            expected = matrices[numbers.index(attention.layer)][0]
            ours = attention.weights()[row, :, : expected.shape[1], : expected.shape[2]]
            if has_sinks:
                ours, expected = (each / each.sum(-1, keepdim=True) for each in (ours, expected))
            largest = max(largest, float((ours - expected).abs().max()))
            weights += expected.numel()
    if not weights:
        return "raises", "no weights were compared"
    return ("equal" if largest < 1e-4 else "differs"), f"{largest:.1e} over {weights:,} weights"


if __name__ == "__main__":
    sys.exit(main())
