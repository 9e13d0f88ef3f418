"""Greedy generation with a cache of keys and values, token by token.

In a cached step, a token attends as it does in one pass over the whole text. So a text is generated first, and its
attention is observed afterwards, in one pass of the seam.

The ``generate`` of transformers is not used, since it takes settings from the model, such as penalties for repeated
tokens, which would punish copying from a document.
"""

import inspect
from collections.abc import Iterator, Sequence
from itertools import islice

import torch

from headscope.capture.model.model import Model
from headscope.errors import ModelError


def check_decoder(model: Model) -> None:
    """Raise an error if a model cannot generate text: it must be a decoder alone, with a head that predicts tokens."""
    if {*model.layers} != {"decoder"} or model.module.get_output_embeddings() is None:
        raise ModelError(
            f"{model.title} is no decoder-only language model, so it generates no "
            "text from what it has read; give one, such as smollm2."
        )


def generate(model: Model, ids: Sequence[int], tokens: int) -> list[int]:
    """Return the ids of the greedy continuation of a text, at most `tokens` tokens, without the end token."""
    return [*islice(_generate(model, ids), tokens)]


def _generate(model: Model, ids: Sequence[int]) -> Iterator[int]:
    module, ends = model.module, _list_ends(model)
    # The logits of all tokens of a long prompt would not fit into memory.
    few = {"logits_to_keep": 1} if "logits_to_keep" in inspect.signature(module.forward).parameters else {}
    cache, read = None, list(ids)
    while True:
        with torch.inference_mode():
            output = module(torch.tensor([read], device=model.device), past_key_values=cache, use_cache=True, **few)
        cache, token = output.past_key_values, int(output.logits[0, -1].argmax())
        if token in ends:
            return
        yield token
        read = [token]


def _list_ends(model: Model) -> set[int]:
    """Return the ids of the tokens that end a text, by the model and by its tokenizer."""
    ends = getattr(getattr(model.module, "generation_config", None), "eos_token_id", None)
    listed = ends if isinstance(ends, list | tuple) else [ends]
    return {int(token) for token in (*listed, model.tokenizer.eos_token_id) if token is not None}
