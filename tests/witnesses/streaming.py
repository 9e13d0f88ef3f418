"""What is left of a head's output where a token sees few others, one token, head and layer after the other."""

from collections.abc import Sequence

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from headscope.corpora.document import Document
from witnesses.seen import Seen, see

NAMES = ("tokens", "kept", "others", "uniform", "change", "mass", "uniform_mass")


def streaming(
    module: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    documents: Sequence[Document],
    *,
    first: int,
    recent: int,
) -> dict[str, np.ndarray]:
    """By layer and head: the number of tokens that count and the mean over them of each of `NAMES`.

    Of GPT-2 and of models with the modules of Llama, whose values are read by the names of modules.
    """
    total: dict[str, np.ndarray] = {}
    for document in documents:
        seen = see(module, tokenizer, document)["decoder"]
        values = see_values(module, torch.tensor([[token.id for token in seen.keys]]))
        for layer, head in np.ndindex(seen.weights.shape[:2]):
            of_layer = values[layer]
            of_head = of_layer[head // (seen.weights.shape[1] // len(of_layer))]
            for name, value in _measure(seen, layer, head, of_head, first, recent).items():
                total.setdefault(name, np.zeros(seen.weights.shape[:2]))[layer, head] += value
    tokens = total.pop("tokens")
    with np.errstate(invalid="ignore"):
        return {"tokens": tokens} | {name: value / tokens for name, value in total.items()}


def see_values(module: PreTrainedModel, ids: torch.Tensor) -> list[np.ndarray]:
    """Of each layer the values by key head, key and width."""
    config, held = module.config, []
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    key_heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    hooks = [
        part.register_forward_hook(lambda part, given, returned: held.append(returned[0].double().numpy()))
        for name, part in module.named_modules()
        if name.endswith(("v_proj", "c_attn"))
    ]
    with torch.no_grad():
        module(ids)
    for hook in hooks:
        hook.remove()
    return [each[:, -key_heads * width :].reshape(-1, key_heads, width).transpose(1, 0, 2) for each in held]


def choose(visible: np.ndarray, query: int, first: int, recent: int) -> tuple[list[int], list[int]]:
    """The keys that a query keeps, and as many others in the middle of equal parts of the rest; none if too few."""
    keys = [key for key in range(len(visible)) if visible[key]]
    kept = [key for key in keys if key < first or query - recent < key <= query]
    rest = [key for key in keys if key not in kept]
    if len(keys) < 2 * len(kept):
        return [], []
    return kept, [rest[(2 * number + 1) * len(rest) // (2 * len(kept))] for number in range(len(kept))]


def _measure(seen: Seen, layer: int, head: int, values: np.ndarray, first: int, recent: int) -> dict[str, float]:
    """The number of tokens of a text, and the sums over them."""
    sums, length, even, tokens = dict.fromkeys(NAMES, 0.0), 0.0, 0.0, 0
    for query in range(len(seen.queries)):
        visible, weights = seen.visible[layer, query], seen.weights[layer, head, query]
        kept, others = choose(visible, query, first, recent)
        if not kept:
            continue
        tokens += 1
        whole = weights @ values
        length += np.linalg.norm(whole)
        for name, keys in (("kept", kept), ("others", others)):
            # Of a sink that is no token the weight stays in the softmax.
            hidden = 1 - weights.sum() if weights.sum() < 0.9999 else 0
            cut = sum(weights[key] * values[key] for key in keys) / (sum(weights[key] for key in keys) + hidden)
            change = np.linalg.norm(cut - whole)
            sums[name] += max(0, np.linalg.norm(whole) - change)
            if keys is kept:
                sums["change"] += change
        evenly, cut = values[visible].mean(0), values[kept].mean(0)
        even += np.linalg.norm(evenly)
        sums["uniform"] += max(0, np.linalg.norm(evenly) - np.linalg.norm(cut - evenly))
        sums["mass"] += sum(weights[key] for key in kept)
        sums["uniform_mass"] += len(kept) / visible.sum()
    shares = {"kept": length, "others": length, "uniform": even, "change": length}
    return {
        name: tokens if name == "tokens" else tokens * value / (shares[name] or 1) if name in shares else value
        for name, value in sums.items()
    }
