"""Attention as an engine of somebody's own might save it: taken from a model of transformers, without headscope."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

FORMAT = "headscope-attention-1"


def record_attention(module: Any, inputs: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    """The queries, keys, values and outputs of each layer in one pass on one text, and the scale of each."""
    layers: list[dict[str, Tensor]] = []

    def attend(
        layer: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float, **_: Any
    ) -> tuple[Tensor, None]:
        groups = query.shape[1] // key.shape[1]
        scores = scaling * query @ key.repeat_interleave(groups, 1).transpose(-1, -2) + (0 if mask is None else mask)
        output = scores.softmax(-1) @ value.repeat_interleave(groups, 1)
        tensors = {"query": query, "key": key, "value": value, "output": output}
        layers.append({name: tensor[0].clone() for name, tensor in tensors.items()} | {"scale": torch.tensor(scaling)})
        return output.transpose(1, 2).contiguous(), None

    AttentionInterface.register("recorded", attend)
    AttentionMaskInterface.register("recorded", eager_mask)
    module.set_attn_implementation("recorded")
    with torch.inference_mode():
        module(**inputs)
    module.set_attn_implementation("eager")
    return layers


def save_text(
    folder: Path,
    module: Any,
    tokenizer: Any,
    name: str,
    words: Sequence[str],
    header: Mapping[str, Any],
    parts: Sequence[str] = ("query", "key", "value", "output"),
) -> Path:
    """One text of a folder, with the header as JSON."""
    encoded = tokenizer(list(words), is_split_into_words=True, return_tensors="pt")
    layers = record_attention(module, {"input_ids": encoded["input_ids"]})
    tensors = {
        f"layers.{number}.{part}": layer[part].contiguous()
        for number, layer in enumerate(layers, start=1)
        for part in parts
    }
    about = {
        "format": FORMAT,
        "id": name,
        "words": json.dumps(list(words)),
        "tokens": json.dumps(tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])),
        "word_of_token": json.dumps([-1 if word is None else word for word in encoded.word_ids()]),
        "scale": json.dumps([float(layer["scale"]) for layer in layers]),
    }
    file = folder / f"{len([*folder.iterdir()]):03}.safetensors"
    save_file(tensors, file, {**about, **{key: json.dumps(value) for key, value in header.items()}})
    return file
