"""The norm view, Kobayashi et al. 2020, section 3: the length of what flows, one vector after the other."""

import copy
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from headscope.corpora.document import Document
from witnesses.seen import Seen, see

VALUES = {  # by model type, the modules whose output is the values, or queries, keys and values side by side
    "bert": r"self\.value", "roberta": r"self\.value", "electra": r"self\.value", "albert": r"attention\.value",
    "distilbert": r"v_lin", "modernbert": r"attn\.Wqkv", "gpt2": r"attn\.c_attn", "t5": r"Attention\.v",
}  # fmt: skip
TOGETHER = ("modernbert", "gpt2")
OUTPUTS = {
    "bert": r"attention\.output\.dense", "roberta": r"attention\.output\.dense", "modernbert": r"attn\.Wo",
    "electra": r"attention\.output\.dense", "albert": r"attention\.dense", "distilbert": r"out_lin",
    "gpt2": r"attn\.c_proj", "t5": r"Attention\.o", "bart": r"attn\.out_proj",
}  # fmt: skip


def see_norms(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, document: Document) -> dict[str, Seen]:
    """The same as `see`, with the share of each token in the lengths of all that flows to a token for its weight."""
    eager = copy.deepcopy(model)
    kind, values, projections = model.config.model_type, [], []

    def keep_values(module: nn.Module, _: object, output: torch.Tensor) -> None:
        width = output.shape[-1] // (3 if kind in TOGETHER else 1)
        values.append(output[0, :, -width:].double().numpy())

    def keep_weights(module: nn.Module, *_: object) -> None:
        weight = module.weight.detach().double().numpy()
        projections.append(weight.T if isinstance(module, nn.Linear) else weight)

    _hook(eager, VALUES.get(kind, r"v_proj"), keep_values)
    _hook(eager, OUTPUTS.get(kind, r"o_proj"), keep_weights)
    seen = see(eager, tokenizer, document)
    flows = {attention_type: [] for attention_type in seen}
    # `see` asks twice. A decoder's own attention and cross attention take turns, behind the encoder's.
    calls = [(name, layer) for name, maps in seen.items() if name != "cross" for layer in range(len(maps.weights))]
    if "cross" in seen:
        calls = [call for name, layer in calls for call in [(name, layer), *[("cross", layer)] * (name == "decoder")]]
    assert len(values) == len(projections) == 2 * len(calls)
    for (name, layer), value, projection in zip(calls, values, projections, strict=False):
        flows[name].append(_share(seen[name].weights[layer], value, projection))
    return {name: replace(maps, weights=np.stack(flows[name])) for name, maps in seen.items()}


def _hook(model: PreTrainedModel, pattern: str, keep: Callable[..., None]) -> None:
    for name, part in model.named_modules():
        if re.search(f"{pattern}$", name):
            part.register_forward_hook(keep)


def _share(weights: np.ndarray, values: np.ndarray, projection: np.ndarray) -> np.ndarray:
    """Of weights[head, query, key], values[key, width of all] and projection[width of all, model]."""
    heads, queries, keys = weights.shape
    width = len(projection) // heads
    sharing = heads * width // values.shape[1]  # query heads that have one key/value head
    shares = np.empty(weights.shape)
    for head in range(heads):
        own = slice(head // sharing * width, (head // sharing + 1) * width)
        for query in range(queries):
            lengths = []
            for key in range(keys):
                flow = (weights[head, query, key] * values[key, own]) @ projection[head * width : (head + 1) * width]
                lengths.append(sum(number * number for number in flow.tolist()) ** 0.5)
            shares[head, query] = np.array(lengths) / sum(lengths)
    return shares
