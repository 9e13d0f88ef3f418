#!/usr/bin/env bash
set -euo pipefail
source "$(dirname "$0")/setup.sh"

finding "With output_attentions=True, Falcon in transformers computes something else under its default attention (sdpa): it adds the Boolean mask to the scores, and so reads the tokens ahead."
install transformers==5.23.0 torch==2.13.0
run <<'EOF'
import copy

import torch
from transformers import AutoModel, FalconConfig, FalconModel

torch.manual_seed(0)
sizes = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
config = FalconConfig(**sizes, initializer_range=0.5, bos_token_id=1, eos_token_id=2)
default = FalconModel(copy.deepcopy(config))
ids = torch.tensor([[3, 4, 5, 6, 7]])
outputs, ahead = {}, {}
for name in ("eager", "sdpa"):
    model = AutoModel.from_config(copy.deepcopy(config), attn_implementation=name).eval()
    model.load_state_dict(default.state_dict())
    for asks in (False, True):
        with torch.no_grad():
            output = model(ids, output_attentions=asks)
        outputs[name, asks] = output.last_hidden_state
        if asks:
            ahead[name] = max(float(weights.triu(1).sum(-1).max()) for weights in output.attentions)


def compare(name, asks):
    return float((outputs[name, asks] - outputs["eager", False]).abs().max())


for name, asks in outputs:
    weight = f"; weight on tokens ahead: up to {ahead[name]:.3f}" if asks else ""
    print(f"{name:5} output_attentions={asks!s:5}  differs from eager by {compare(name, asks):.6f}{weight}")

assert default.config._attn_implementation == "sdpa", "the default is another one"
assert compare("sdpa", False) < 1e-4, "sdpa and eager differ even when nobody asks for attention"
assert compare("eager", True) < 1e-4, "eager attention gives another output where somebody asks for it"
assert ahead["eager"] == 0, "eager attention reads ahead"
assert compare("sdpa", True) > 0.01, "sdpa gives the same output whether or not somebody asks for attention"
assert ahead["sdpa"] > 0.01, "under sdpa no token reads the tokens ahead"
EOF
