"""The attention to tokens whose own logit their value raises most, one head, token and text after the other."""

from collections.abc import Sequence

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from headscope.corpora.document import Document


def copying(
    module: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, documents: Sequence[Document]
) -> dict[str, np.ndarray]:
    """By layer and head: the mean attention to copied tokens, the same of those whose next token is raised; and chance.

    Of GPT-2 and of models with the modules of Llama, whose weights are read by their names.
    """
    copied = behind = 0.0
    tokens, chance = 0, 0.0
    for document in documents:
        words, cut = list(document.words), document.boundary
        segments = [words] if cut is None else [words[:cut], words[cut:]]
        encoded = tokenizer(*segments, is_split_into_words=True, return_tensors="pt")
        of_words = [place for place, word in enumerate(encoded.word_ids()) if word is not None]
        ids = encoded["input_ids"][0].tolist()
        weights, values = _run(module, encoded["input_ids"])
        types = sorted({ids[place] for place in of_words})
        raised = _find_raised(module, values, types)
        own, following = np.zeros(weights.shape[:2]), np.zeros(weights.shape[:2])
        for layer, head in np.ndindex(weights.shape[:2]):
            for query in of_words:
                for key in of_words:
                    weight = weights[layer, head, query, key]
                    token = types[raised[layer, head, key]]
                    own[layer, head] += weight * (token == ids[key])
                    is_behind = key + 1 in of_words and token == ids[key + 1]
                    following[layer, head] += weight * is_behind
        copied, behind = copied + own, behind + following
        tokens, chance = tokens + len(of_words), chance + len(of_words) / len(types)
    return {"copied": copied / tokens, "behind": behind / tokens, "random": np.array(chance / tokens)}


def _run(module: PreTrainedModel, ids: torch.Tensor) -> tuple[np.ndarray, list[np.ndarray]]:
    """The weights by layer, head, query and key; of each layer the values by key head, key and width."""
    config, held = module.config, []
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    key_heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
    names = ("v_proj", "c_attn")
    hooks = [
        part.register_forward_hook(lambda part, given, returned: held.append(returned[0]))
        for name, part in module.named_modules()
        if name.endswith(names)
    ]
    module.set_attn_implementation("eager")
    with torch.no_grad():
        attentions = module(ids, output_attentions=True).attentions
    for hook in hooks:
        hook.remove()
    values = [each[:, -key_heads * width :].reshape(-1, key_heads, width).permute(1, 0, 2).double() for each in held]
    return np.stack([each[0].double().numpy() for each in attentions]), [each.numpy() for each in values]


def _find_raised(module: PreTrainedModel, values: list[np.ndarray], types: list[int]) -> np.ndarray:
    """By layer, head and key: the number in `types` of the token whose logit the value raises most."""
    heads = module.config.num_attention_heads
    rows = module.get_output_embeddings().weight.detach().double().numpy()[types]
    is_gpt2 = module.config.model_type == "gpt2"
    norm = module.transformer.ln_f if is_gpt2 else module.model.norm
    rows = rows * norm.weight.detach().double().numpy()
    if is_gpt2:  # the norm takes the mean away
        rows = rows - rows.mean(1, keepdims=True)
    layers = module.transformer.h if is_gpt2 else module.model.layers
    raised = []
    for layer, of_layer in zip(layers, values, strict=True):
        projection = layer.attn.c_proj.weight if is_gpt2 else layer.self_attn.o_proj.weight.T
        parts = np.split(projection.detach().double().numpy(), heads)
        groups = heads // len(of_layer)
        raised.append(
            [[int(np.argmax(rows @ (value @ part))) for value in of_layer[head // groups]]
             for head, part in enumerate(parts)]
        )  # fmt: skip
    return np.array(raised)
