"""Value zeroing, Mohebbi et al. 2023, section 3, of one head: the model is run again for each value taken away."""

import copy
import re
from dataclasses import replace

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from headscope.corpora.document import Document
from witnesses.norms import OUTPUTS, TOGETHER, VALUES
from witnesses.seen import Seen, see

BLOCKS = {"bert": r"encoder\.layer\.\d+", "gpt2": r"h\.\d+"}


def see_zeroed(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, document: Document) -> dict[str, Seen]:
    """The same as `see`, with the share of each token in the changes of a token without the values of each.

    A pre-hook on the output projection takes the weight times the value away from the head's slice.
    """
    eager = copy.deepcopy(model)
    eager.set_attn_implementation("eager")
    kind = model.config.model_type
    ((name, seen),) = see(eager, tokenizer, document).items()
    inputs = tokenizer(list(document.words), is_split_into_words=True, return_tensors="pt")
    projections = find(eager, OUTPUTS.get(kind, r"o_proj"))
    blocks, values = find(eager, BLOCKS.get(kind, r"layers\.\d+")), find(eager, VALUES.get(kind, r"v_proj"))
    assert len(projections) == len(blocks) == len(values) == len(seen.weights)
    distances = np.zeros_like(seen.weights)
    with torch.no_grad():
        for layer, weights in enumerate(seen.weights):
            heads = len(weights)
            value = watch(eager, inputs, values[layer])
            if kind in TOGETHER:
                value = value[..., -value.shape[-1] // 3 :]
            before = watch(eager, inputs, blocks[layer])
            width = getattr(eager.config, "head_dim", None) or eager.config.hidden_size // heads
            shared = heads * width // value.shape[-1]
            for head, key in np.ndindex(heads, len(seen.keys)):
                group = head // shared
                vector = value[key, group * width : (group + 1) * width]
                taken = torch.tensor(weights[head, :, key])[:, None] * vector
                hook = projections[layer].register_forward_pre_hook(
                    take(slice(head * width, (head + 1) * width), taken)
                )
                after = watch(eager, inputs, blocks[layer])
                hook.remove()
                distances[layer, head, :, key] = 1 - torch.cosine_similarity(before, after, dim=-1).numpy()
    distances = np.where(seen.weights > 0, np.maximum(distances, 0), 0)
    return {name: replace(seen, weights=distances / distances.sum(-1, keepdims=True))}


def take(columns: slice, taken: torch.Tensor):
    def hook(_: nn.Module, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        z = given[0].clone()
        z[..., columns] -= taken.to(z.dtype)
        return (z, *given[1:])

    return hook


def watch(model: PreTrainedModel, inputs, module: nn.Module) -> torch.Tensor:
    """What a module returns for the one text."""
    returned: list[torch.Tensor] = []
    hook = module.register_forward_hook(
        lambda *call: returned.append(call[2][0] if isinstance(call[2], tuple) else call[2])
    )
    model(**inputs)
    hook.remove()
    return returned[0].reshape(-1, returned[0].shape[-1])


def find(model: PreTrainedModel, pattern: str) -> list[nn.Module]:
    return [part for name, part in model.named_modules() if re.search(rf"(^|\.){pattern}$", name)]
