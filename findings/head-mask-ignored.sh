#!/usr/bin/env bash
set -euo pipefail
source "$(dirname "$0")/setup.sh"

finding "transformers 5 has no head_mask any more, but models accept it, ignore it and log nothing, so code for transformers 4 that disables heads disables none; prune_heads is gone as well."
install transformers==5.23.0 torch==2.13.0
run <<'EOF'
import logging
from logging.handlers import QueueHandler
from queue import SimpleQueue

import torch
from transformers import AutoModel, BertConfig, BloomConfig, DistilBertConfig, GPT2Config, RobertaConfig, XLNetConfig

logged = SimpleQueue()
logging.getLogger("transformers").addHandler(QueueHandler(logged))
sizes = {"vocab_size": 50, "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2}
tokens = {"bos_token_id": 1, "eos_token_id": 2}
configs = [
    BertConfig(**sizes, intermediate_size=12),
    RobertaConfig(**sizes, intermediate_size=12),
    DistilBertConfig(vocab_size=50, dim=12, n_layers=2, n_heads=2, hidden_dim=12),
    XLNetConfig(vocab_size=50, d_model=12, n_layer=2, n_head=2, d_inner=12),
    GPT2Config(vocab_size=50, n_embd=12, n_layer=2, n_head=2, **tokens),
    BloomConfig(**sizes, **tokens),
]
ids, no_head = torch.tensor([[3, 4, 5]]), torch.zeros(2, 2)
for config in configs:
    torch.manual_seed(0)
    model = AutoModel.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        change = model(ids, head_mask=no_head).last_hidden_state - model(ids).last_hidden_state
    largest, can_prune = float(change.abs().max()), hasattr(model, "prune_heads")
    print(f"{config.model_type}: head_mask=0 for all heads changes the output by {largest}; prune_heads: {can_prune}")
    assert largest == 0, f"{config.model_type} reads head_mask"
    assert not can_prune, f"{config.model_type} has prune_heads"
assert logged.empty(), f"transformers logs: {logged.get().getMessage()}"
EOF
