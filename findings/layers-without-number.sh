#!/usr/bin/env bash
set -euo pipefail
source "$(dirname "$0")/setup.sh"

finding "An attention function of transformers cannot tell the layer from the module that it is handed: that of DistilBERT has no layer_idx, and ALBERT hands over one module for all layers."
install transformers==5.23.0 torch==2.13.0
run <<'EOF'
import torch
import transformers as hf
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

modules = []


def attend(module, *arguments, **terms):
    modules.append(module)
    return sdpa_attention_forward(module, *arguments, **terms)


hf.AttentionInterface.register("ours", attend)
hf.AttentionMaskInterface.register("ours", sdpa_mask)
sizes = {"vocab_size": 50, "hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 12}
configs = [
    hf.BertConfig(**sizes),
    hf.DistilBertConfig(vocab_size=50, dim=12, n_layers=3, n_heads=2, hidden_dim=12),
    hf.AlbertConfig(**sizes, embedding_size=12),
]
found = {}
for config in configs:
    model = hf.AutoModel.from_config(config, attn_implementation="ours").eval()
    modules.clear()
    with torch.no_grad():
        model(torch.tensor([[3, 4, 5]]))
    numbers = [getattr(module, "layer_idx", None) for module in modules]
    found[config.model_type] = (len(modules), len(set(map(id, modules))), numbers)
    print("{}: {} calls, {} modules, layer_idx {}".format(config.model_type, *found[config.model_type]))

assert found["bert"] == (3, 3, [0, 1, 2]), "BERT does not number its layers"
assert found["distilbert"] == (3, 3, [None] * 3), "DistilBERT numbers its layers"
assert found["albert"] == (3, 1, [None] * 3), "ALBERT has a module for each layer, or numbers it"
EOF
