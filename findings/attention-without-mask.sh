#!/usr/bin/env bash
set -euo pipefail
source "$(dirname "$0")/setup.sh"

finding "transformers gives an attention function that is registered in AttentionInterface alone no mask, and logs nothing: a decoder then reads the tokens ahead."
install transformers==5.23.0 torch==2.13.0
run <<'EOF'
import logging
from logging.handlers import QueueHandler
from queue import SimpleQueue

import torch
from transformers import AttentionInterface, AttentionMaskInterface, LlamaConfig, LlamaModel
from transformers.masking_utils import eager_mask
from transformers.models.llama.modeling_llama import eager_attention_forward

logged = SimpleQueue()
logging.getLogger("transformers").addHandler(QueueHandler(logged))
masks = []


def attend(module, query, key, value, attention_mask, **terms):
    """The model's own function, which also notes the mask that it is given."""
    masks.append(attention_mask)
    return eager_attention_forward(module, query, key, value, attention_mask, **terms)


@torch.no_grad()
def compare():
    """By how much the output for the first token changes with the last token, which a decoder must not see."""
    first, second = (model(torch.tensor([ids])).last_hidden_state[0, 0] for ids in ([3, 4, 5], [3, 4, 9]))
    return float((first - second).abs().max())


torch.manual_seed(0)
sizes = {"vocab_size": 50, "hidden_size": 12, "intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2}
model = LlamaModel(LlamaConfig(**sizes, initializer_range=0.5)).eval()
model.set_attn_implementation("eager")
own = compare()
print(f"its own function:              the first token changes by {own:.3f} with the last")

AttentionInterface.register("ours", attend)
model.set_attn_implementation("ours")
alone = compare()
print(f"registered alone:              the first token changes by {alone:.3f}; the mask is {masks[-1]}")
is_silent = logged.empty()

AttentionMaskInterface.register("ours", eager_mask)
both = compare()
print(f"with a mask function as well:  the first token changes by {both:.3f}; the mask is {tuple(masks[-1].shape)}")

assert own == both == 0, "with a mask the first token depends on the last one"
assert masks[0] is None, "a function that is registered alone is given a mask"
assert alone > 0.01, "without a mask the first token does not depend on the last one"
assert is_silent, f"transformers logs that there is no mask: {logged.get().getMessage()}"
EOF
