"""TransformerLens: `run_with_cache` of the attention patterns alone, then their statistics in torch."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from clock import mean_of, run
from matrix import statistics
from shapes import Text
from torch import nn
from transformer_lens.model_bridge import TransformerBridge
from transformers import AutoConfig, AutoTokenizer, BertForMaskedLM, LlamaForCausalLM


def load(folder: Path) -> TransformerBridge:
    """The model inside TransformerLens's bridge, which takes models with a head only.

    The head is made one word wide: none of the other ways has one, and its cost is not to be compared.
    """
    if AutoConfig.from_pretrained(folder).model_type == "bert":
        model = BertForMaskedLM.from_pretrained(folder, attn_implementation="eager").eval()
        model.cls.predictions.decoder = nn.Linear(model.config.hidden_size, 1)
    else:
        model = LlamaForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
        model.lm_head = nn.Linear(model.config.hidden_size, 1, bias=False)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return TransformerBridge.boot_transformers(str(folder), hf_model=model, tokenizer=tokenizer)


def of_text(model: TransformerBridge, text: Text) -> dict[str, np.ndarray]:
    """One forward pass into the cache, then the statistics of each layer."""
    names = [f"blocks.{layer}.attn.hook_pattern" for layer in range(model.cfg.n_layers)]
    _, cache = model.run_with_cache(text.ids, names_filter=names, use_cache=False)
    return statistics((cache[name][0] for name in names), text)


def measure(model: TransformerBridge, texts: Sequence[Text]) -> dict[str, np.ndarray]:
    """The mean over the texts."""
    return mean_of(of_text(model, text) for text in texts)


if __name__ == "__main__":
    run(load, measure)
