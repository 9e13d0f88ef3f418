"""How the loss of a model changes with its attention, by autograd through the model's own eager attention."""

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from witnesses.means import mean
from witnesses.seen import Seen

CLASSES = ("cls", "sep", "punctuation", "first", "other", "all")


@dataclass(frozen=True)
class Held:
    """The weights of one call of eager attention, and a factor of 1 on the output of each head, both with gradients."""

    weights: Tensor
    gate: Tensor


@contextmanager
def hold_attention(module: PreTrainedModel) -> Iterator[list[Held]]:
    """What every call of eager attention does, from where it is used; what a model returns may be a copy."""
    held: list[Held] = []
    files = {sys.modules[type(part).__module__] for part in module.modules()}
    patches = [
        patch.object(file, "eager_attention_forward", _holding(file.eager_attention_forward, held))
        for file in files
        if hasattr(file, "eager_attention_forward")
    ]
    for each in patches:
        each.start()
    module.set_attn_implementation("eager")
    try:
        yield held
    finally:
        for each in patches:
            each.stop()


def _holding(eager: Callable, held: list[Held]) -> Callable:
    def attend(*arguments, **terms):
        output, weights = eager(*arguments, **terms)
        weights.retain_grad()
        gate = torch.ones(weights.shape[1], dtype=output.dtype, requires_grad=True)
        held.append(Held(weights, gate))
        return output * gate[:, None], weights

    return attend


def gradients(
    module: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    task: str,
    documents: Sequence[Mapping[str, Seen]],
    masked: Sequence[Collection[int]],
) -> dict[str, dict[str, np.ndarray]]:
    """For each attention type, each variable of each layer and head.

    Args:
        module: with its task head; the loss is its own, of labels that it is given.
        tokenizer: that of the model.
        task: what the head is for.
        documents: what the model without its head did on each, for its tokens and which of them see which.
        masked: the tokens of each that are masked.
    """
    means: dict[str, dict[str, list[np.ndarray]]] = {}
    for seen_by_type, hidden in zip(documents, masked, strict=True):
        inputs = _add_labels(module, tokenizer, task, seen_by_type, hidden)
        with hold_attention(module) as held:
            output = module(**inputs)
            count = int((inputs["labels"] != -100).sum())
            (output.loss * count if count else output.logits.sum() * 0).backward()
        for attention_type, seen in seen_by_type.items():
            size = (len(seen.queries), len(seen.keys))
            layers = [layer for layer in held if layer.weights.shape[2:] == size]
            values = [_describe(layer, seen, number, hidden) for number, layer in enumerate(layers)]
            for name in values[0]:
                value = np.array([value[name] for value in values])
                if not np.isnan(value).any():
                    means.setdefault(attention_type, {}).setdefault(name, []).append(value)
    return {
        attention_type: {name: sum(each) / len(each) for name, each in values.items()}
        for attention_type, values in means.items()
    }


def see_gradients(
    module: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    task: str,
    seen_by_type: Mapping[str, Seen],
    hidden: Collection[int] = (),
    *,
    times_attention: bool = False,
) -> dict[str, Seen]:
    """The same document with the share of each weight in the sizes of the gradients of its row, by autograd.

    Args:
        module: as in `gradients`.
        tokenizer: likewise.
        task: likewise.
        seen_by_type: what the model without its head did on a document.
        hidden: the tokens of it that are masked.
        times_attention: each gradient is multiplied with its weight.
    """
    inputs = _add_labels(module, tokenizer, task, seen_by_type, hidden)
    with hold_attention(module) as held:
        output = module(**inputs)
        (output.loss * int((inputs["labels"] != -100).sum())).backward()
    shown = {}
    for attention_type, seen in seen_by_type.items():
        size = (len(seen.queries), len(seen.keys))
        shares = np.zeros(seen.weights.shape)
        layers = [layer for layer in held if layer.weights.shape[2:] == size]
        for number, layer in enumerate(layers):
            weights, slopes = (side[0].detach().double().numpy() for side in (layer.weights, layer.weights.grad))
            for head, q in np.ndindex(*shares.shape[1:3]):
                sizes = [
                    abs(slopes[head, q, k] * (weights[head, q, k] if times_attention else 1))
                    if seen.visible[number, q, k]
                    else 0
                    for k in range(size[1])
                ]
                shares[number, head, q] = [each / sum(sizes) if sum(sizes) else 0 for each in sizes]
        queries, keys = (
            tuple(replace(token, kind="") if place in hidden else token for place, token in enumerate(side))
            for side in (seen.queries, seen.keys)
        )
        shown[attention_type] = replace(seen, weights=shares, queries=queries, keys=keys)
    return shown


def _add_labels(
    module: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    task: str,
    seen_by_type: Mapping[str, Seen],
    hidden: Collection[int],
) -> dict[str, Tensor]:
    """A document as the model reads it, and what it is to predict there."""
    seen = next(iter(seen_by_type.values()))
    words, cut = list(seen.document.words), seen.document.boundary
    segments = [words] if cut is None else [words[:cut], words[cut:]]
    inputs = dict(tokenizer(*segments, is_split_into_words=True, return_tensors="pt"))
    ids = inputs["input_ids"]
    of_words = torch.tensor([[token.word is not None for token in seen.keys]])
    if task == "masked-lm":
        predicted = torch.tensor([[place in hidden for place in range(len(seen.keys))]])
        inputs["input_ids"] = ids.masked_fill(predicted, tokenizer.mask_token_id)
        labels = ids.masked_fill(~predicted, -100)
    elif "cross" in seen_by_type:
        start = torch.tensor([[module.config.decoder_start_token_id]])
        inputs["decoder_input_ids"] = torch.cat([start, ids], dim=1)
        labels = torch.cat([ids.masked_fill(~of_words, -100), torch.tensor([[-100]])], dim=1)
    elif task == "causal-lm":
        labels = ids.masked_fill(~of_words, -100)
        labels[:, 0] = -100
    else:
        labels = module(**inputs).logits.argmax(-1)
        if task == "tagging":
            labels = labels.masked_fill(~of_words, -100)
        elif seen.document.label in module.config.label2id:
            labels = torch.tensor([module.config.label2id[seen.document.label]])
    return inputs | {"labels": labels}


def _describe(held: Held, seen: Seen, number: int, hidden: Collection[int]) -> dict[str, list[float]]:
    """Each variable of each head of a layer in one document; NaN where no token is of the class."""
    weights, values = held.weights.grad[0].abs().tolist(), defaultdict(list)
    for head, rows in enumerate(weights):
        for name in CLASSES:
            sizes = [
                [
                    row[k]
                    for k, key in enumerate(seen.keys)
                    if seen.visible[number, q, k] and _is_in(name, k, "" if k in hidden else key.kind)
                ]
                for q, row in enumerate(rows)
            ]
            flat = [size for row in sizes for size in row]
            values[f"gradient_{name}"].append(mean(flat))
            values[f"gradient_sum_{name}"].append(mean([sum(row) for row in sizes]) if flat else math.nan)
        values["head_gate"].append(abs(float(held.gate.grad[head])))
    return values


def _is_in(name: str, place: int, kind: str) -> bool:
    return {"all": True, "first": place == 0, "other": not kind}.get(name, kind == name)
