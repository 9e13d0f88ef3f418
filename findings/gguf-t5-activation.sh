#!/usr/bin/env bash
set -euo pipefail
source "$(dirname "$0")/setup.sh"

finding "transformers loads a T5 with gated GELU (T5 1.1, Flan-T5) from a GGUF file with all of its weights, but with ReLU, so that its outputs are others; it logs nothing."
install transformers==5.23.0 torch==2.13.0 gguf==0.19.0 accelerate==1.15.0
run <<'EOF'
import logging
from logging.handlers import QueueHandler
from queue import SimpleQueue

import gguf
import torch
from transformers import T5Config, T5EncoderModel
from transformers.activations import ACT2FN

logged = SimpleQueue()
logging.getLogger("transformers").addHandler(QueueHandler(logged))
torch.manual_seed(0)
config = T5Config(
    vocab_size=50, d_model=64, d_kv=32, d_ff=96, num_layers=2, num_heads=2, feed_forward_proj="gated-gelu"
)
model = T5EncoderModel(config).eval()

writer = gguf.GGUFWriter("t5.gguf", "t5encoder")
writer.add_vocab_size(config.vocab_size)
writer.add_context_length(512)
writer.add_embedding_length(config.d_model)
writer.add_feed_forward_length(config.d_ff)
writer.add_block_count(config.num_layers)
writer.add_head_count(config.num_heads)
writer.add_key_length(config.d_kv)
writer.add_value_length(config.d_kv)
writer.add_layer_norm_eps(config.layer_norm_epsilon)
writer.add_layer_norm_rms_eps(config.layer_norm_epsilon)
writer.add_relative_attn_buckets_count(config.relative_attention_num_buckets)
names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.T5ENCODER, config.num_layers)
for name, weights in model.state_dict().items():
    if name != "encoder.embed_tokens.weight":  # the same as shared.weight
        writer.add_tensor(names.get_name(name, (".weight",)), weights.contiguous().numpy())
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()

loaded, loading = T5EncoderModel.from_pretrained(
    ".", gguf_file="t5.gguf", dtype=torch.float32, output_loading_info=True
)


@torch.no_grad()
def compare():
    ids = torch.tensor([[3, 4, 5, 6]])
    return float((loaded.eval()(ids).last_hidden_state - model(ids).last_hidden_state).abs().max())


print(f"written: {config.feed_forward_proj}, loaded: {loaded.config.feed_forward_proj}", end=", ")
print(f"gated: {loaded.config.is_gated_act}, missing weights: {len(loading['missing_keys'])}")
before = compare()
for block in loaded.encoder.block:
    block.layer[-1].DenseReluDense.act = ACT2FN[config.dense_act_fn]
after = compare()
print(f"outputs differ by {before:.4f}; with the activation of the model that was written, by {after:.4f}")

assert not any(loading.values()), f"the weights are not those that were written: {loading}"
assert loaded.config.feed_forward_proj == "relu", "the activation is no longer that of the first T5"
assert before > 0.01, "the outputs are those of the model that was written"
assert after < 1e-5, "more than the activation differs"
assert logged.empty(), f"transformers logs: {logged.get().getMessage()}"
EOF
