#!/usr/bin/env bash
set -euo pipefail
source "$(dirname "$0")/setup.sh"

finding "Models of transformers that do not use AttentionInterface accept the name of an attention function and never call the function: from_config logs nothing, and the configuration shows the name; set_attn_implementation logs a line and keeps the old name."
install transformers==5.23.0 torch==2.13.0
run <<'EOF'
import copy
import logging
from logging.handlers import QueueHandler
from queue import SimpleQueue

import torch
import transformers as hf
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

logged = SimpleQueue()
logging.getLogger("transformers").addHandler(QueueHandler(logged))
calls = []


def attend(module, *arguments, **terms):
    calls.append(module)
    return sdpa_attention_forward(module, *arguments, **terms)


hf.AttentionInterface.register("ours", attend)
hf.AttentionMaskInterface.register("ours", sdpa_mask)
sizes = {"vocab_size": 50, "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2}
configs = [
    hf.BertConfig(**sizes, intermediate_size=12),
    hf.BloomConfig(**sizes, bos_token_id=1, eos_token_id=2),
    hf.DebertaConfig(**sizes, intermediate_size=12),
    hf.MPNetConfig(**sizes, intermediate_size=12),
    hf.XLNetConfig(vocab_size=50, d_model=12, n_layer=2, n_head=2, d_inner=12),
]
for config in configs:
    plain = copy.deepcopy(config)
    model = hf.AutoModel.from_config(config, attn_implementation="ours").eval()
    calls.clear()
    with torch.no_grad():
        model(torch.tensor([[3, 4, 5]]))
    name, is_silent = model.config._attn_implementation, logged.empty()
    print(f"{config.model_type:8} from_config: the name is {name!r}, the function is called {len(calls)} times")
    assert name == "ours", f"{config.model_type} does not take the name"
    assert is_silent, f"from_config logs: {logged.get().getMessage()}"

    model = hf.AutoModel.from_config(plain).eval()
    model.set_attn_implementation("ours")
    name, line = model.config._attn_implementation, "" if logged.empty() else logged.get().getMessage()
    print(f"{'':8} set_attn_implementation: the name is {name!r}, and {'a line' if line else 'nothing'} is logged")
    is_bert = config.model_type == "bert"
    assert len(calls) == (2 if is_bert else 0), f"{config.model_type} calls the function {len(calls)} times"
    assert (name == "ours", line == "") == (is_bert, is_bert), f"{config.model_type} answers otherwise"
EOF
