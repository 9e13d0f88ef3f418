"""What is read from each part of a prompt, step by step, as the model itself returns it while it generates."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast


@dataclass(frozen=True)
class Step:
    """The prediction of one token: its id, and ``weights[layer, head, key]``, of all tokens before it."""

    token: int
    weights: np.ndarray


def generate_steps(model: PreTrainedModel, ids: Sequence[int], tokens: int) -> list[Step]:
    """What ``generate`` does and returns, greedily and with its cache."""
    eager = copy.deepcopy(model)
    eager.set_attn_implementation("eager")
    given = torch.tensor([[*ids]])
    done = eager.generate(
        given, attention_mask=torch.ones_like(given), max_new_tokens=tokens, do_sample=False, use_cache=True,
        output_attentions=True, return_dict_in_generate=True, pad_token_id=0,
    )  # fmt: skip
    written = done.sequences[0, len(ids) :].tolist()
    pairs = zip(written, done.attentions, strict=True)
    return [Step(token, _last_rows(layers, len(ids) + place)) for place, (token, layers) in enumerate(pairs)]


def force_steps(model: PreTrainedModel, ids: Sequence[int], own: Sequence[int]) -> list[Step]:
    """The same with a text that is given, a token at a time into the cache."""
    eager = copy.deepcopy(model)
    eager.set_attn_implementation("eager")
    steps, cache, read = [], None, [*ids]
    with torch.no_grad():
        for place, token in enumerate(own):
            output = eager(torch.tensor([read]), past_key_values=cache, use_cache=True, output_attentions=True)
            steps.append(Step(token, _last_rows(output.attentions, len(ids) + place)))
            cache, read = output.past_key_values, [token]
    return steps


def _last_rows(layers: Sequence[torch.Tensor], seen: int) -> np.ndarray:
    """The last query's weights on all tokens; a cache with a window holds the last of them alone."""
    rows = np.zeros((len(layers), layers[0].shape[1], seen))
    for number, layer in enumerate(layers):
        held = layer[0, :, -1].double().numpy()
        rows[number, :, seen - held.shape[-1] :] = held
    return rows


def mark_prompt(
    tokenizer: PreTrainedTokenizerFast, record: dict[str, Any], order: Sequence[int]
) -> tuple[list[int], list[str]]:
    """The tokens of a prompt with its documents in an order, and the part of each: that of its first letter."""
    text, marks = "", []

    def add(part: str, content: str) -> None:
        nonlocal text
        text += content
        marks.extend([part] * len(content))

    if record.get("system"):
        add("template", "Instructions: ")
        add("system", record["system"])
        add("template", "\n\n")
    for slot, document in enumerate(order, start=1):
        add("template", f"Document {slot}: ")
        add(f"document {slot}", record["documents"][document])
        add("template", "\n\n")
    add("template", "Question: ")
    add("question", record["question"])
    add("template", "\n\nAnswer:")
    return _mark_tokens(tokenizer, text, marks, special=True)


def mark_pieces(tokenizer: PreTrainedTokenizerFast, pieces: Sequence[tuple[str, str]]) -> list[str]:
    """The part of each token of a text in pieces, each with its part; the special tokens are in the text."""
    marks = [part for part, content in pieces for _ in content]
    return _mark_tokens(tokenizer, "".join(content for _, content in pieces), marks, special=False)[1]


def _mark_tokens(
    tokenizer: PreTrainedTokenizerFast, text: str, marks: Sequence[str], *, special: bool
) -> tuple[list[int], list[str]]:
    """The tokens of a text, and the mark of the first letter of each; perhaps with special tokens around them."""
    encoded = tokenizer(text, add_special_tokens=special, return_offsets_mapping=True, return_special_tokens_mask=True)
    parts = []
    for (start, end), added in zip(encoded["offset_mapping"], encoded["special_tokens_mask"], strict=True):
        letters = [place for place in range(start, end) if not text[place].isspace()]
        parts.append("template" if added else marks[letters[0] if letters else start])
    return encoded["input_ids"], parts


def ledger(steps: Sequence[Step], parts: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """``shares[token, layer, head, part]``: the weights of each step, added up by the part of the token they are on."""
    layers, heads, _ = steps[0].weights.shape
    shares = np.zeros((len(steps), layers, heads, len(names)))
    for number, step in enumerate(steps):
        for key in range(step.weights.shape[-1]):
            part = parts[key] if key < len(parts) else "own text"
            shares[number, :, :, names.index(part)] += step.weights[:, :, key]
    return shares


def content_effect(by_order: Sequence[np.ndarray], gold: int) -> np.ndarray:
    """Of one prompt, the attention to the document ``gold`` (from 1) less that to the others, over all orders.

    The documents of the order r are those of the given order, of which the first r stand behind the others.
    ``by_order[r][..., slot]`` are shares.
    """
    count = by_order[0].shape[-1]
    own, others = [], []
    for shift, shares in enumerate(by_order):
        order = [*range(count)][shift:] + [*range(count)][:shift]
        for slot, document in enumerate(order):
            (own if document == gold - 1 else others).append(shares[..., slot])
    return sum(own) / len(own) - sum(others) / len(others)
