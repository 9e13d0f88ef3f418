"""Heads changed by hand, where they are still apart: at the input of the output projection, found by its name."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import torch

import tiny
from headscope.capture.model.model import Model

PROJECTIONS = {  # the modules, in the order of the forward pass, whose input is z with the heads side by side
    "bert": r"attention\.output\.dense", "roberta": r"attention\.output\.dense", "distilbert": r"out_lin",
    "electra": r"attention\.output\.dense", "albert": r"attention\.dense", "modernbert": r"attn\.Wo",
    "gpt2": r"attn\.c_proj", "llama": r"o_proj", "qwen3": r"o_proj", "mistral": r"o_proj", "gemma2": r"o_proj",
    "gpt_oss": r"o_proj", "t5": r"Attention\.o", "bart": r"attn\.out_proj",
}  # fmt: skip


@contextmanager
def replaced(
    model: Model, family: str, call: int, head: int, change: Callable[[torch.Tensor], torch.Tensor]
) -> Iterator[None]:
    """A head (counted from 0) whose output [batch, token, width] is changed in one call of attention of each pass."""
    heads, calls, order = tiny.FAMILIES[family].heads, count(), len(order_of_calls(model))

    def put(module: torch.nn.Module, arguments: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        by_head = arguments[0].clone().unflatten(-1, (heads, -1))
        if next(calls) % order == call:
            by_head[..., head, :] = change(by_head[..., head, :])
        return (by_head.flatten(-2),)

    parts = [part for name, part in model.module.named_modules() if re.search(f"{PROJECTIONS[family]}$", name)]
    handles = [part.register_forward_pre_hook(put) for part in parts]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def order_of_calls(model: Model) -> list[tuple[str, int]]:
    """The layers as the forward pass comes by them; a decoder's own attention and cross attention take turns."""
    layers = [(kind, number) for kind, layers in model.layers.items() for number in range(1, layers + 1)]
    return sorted(layers, key=lambda layer: ("cross" in model.layers and layer[0] != "encoder", layer[1]))
