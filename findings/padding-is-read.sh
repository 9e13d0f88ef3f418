#!/usr/bin/env bash
set -euo pipefail
source "$(dirname "$0")/setup.sh"

finding "ConvBERT, Nyströmformer and MobileBERT in transformers read padding in spite of attention_mask, because they also mix neighbouring tokens by other means than attention: a text gives other outputs in a batch than alone."
install transformers==5.23.0 torch==2.13.0
run <<'EOF'
import torch
from transformers import AutoModel, BertConfig, ConvBertConfig, MobileBertConfig, NystromformerConfig

sizes = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
sizes |= {"intermediate_size": 12, "initializer_range": 0.3}
configs = [
    BertConfig(**sizes),
    ConvBertConfig(**sizes, embedding_size=16, head_ratio=1),
    NystromformerConfig(**sizes),
    MobileBertConfig(**sizes, embedding_size=16, intra_bottleneck_size=16),
]
text = torch.tensor([[3, 4, 5, 6, 7, 8]])
batch = torch.nn.functional.pad(text, (0, 4))
for config in configs:
    torch.manual_seed(0)
    model = AutoModel.from_config(config).eval()
    with torch.no_grad():
        # PyTorch starts the vector of padding at 0 and does not train it; weights converted from TensorFlow have one.
        model.get_input_embeddings().weight[0].normal_(std=0.3)
        alone = model(text, attention_mask=torch.ones_like(text)).last_hidden_state
        padded = model(batch, attention_mask=(batch > 0).long()).last_hidden_state[:, :6]
    share = float((padded - alone).abs().max() / alone.abs().max())
    print(f"{config.model_type}: padding changes the output by up to {share:.5f} of its largest number")
    if config.model_type == "bert":
        assert share < 1e-5, "BERT reads padding"
    else:
        assert share > 0.01, f"{config.model_type} no longer reads padding"
EOF
