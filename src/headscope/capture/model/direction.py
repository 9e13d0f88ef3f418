"""Whether the tokens of a text see those behind them, as the mask shows that a model hands to its attention."""

from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.masking_utils import sdpa_mask

from headscope.capture.model.dispatched import NOWHERE, find_device
from headscope.capture.model.implementation import register
from headscope.capture.model.mask import shown
from headscope.capture.model.turns import hold, list_configs
from headscope.capture.model.unwrap import run_uncompiled

NAME = "headscope-direction"
"""The name among transformers' attention implementations of one that only looks at the mask."""

TOKENS = 3


class _MaskReachedError(Exception):
    """End a forward pass at the first layer of attention."""

    def __init__(self, mask: Tensor | None) -> None:
        super().__init__("the mask was reached")
        self.mask = mask


def _stop_at_mask(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **terms: Any
) -> NoReturn:
    raise _MaskReachedError(attention_mask)


def _make_mask(**arguments: Any) -> Tensor | None:
    """Return the mask that transformers would leave out where a kernel needs none."""
    mask: Tensor | None = sdpa_mask(**arguments | {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False})
    return mask


register(NAME, _stop_at_mask, _make_mask)


def sees_ahead(module: PreTrainedModel) -> bool | None:
    """Return whether a token sees those behind it in a model without an encoder of its own.

    The model is run up to its first attention on a text of three tokens.

    Returns:
        None if the model cannot be run on text, or shows neither its mask nor its attention.
    """
    device = find_device(module)
    if device.type == NOWHERE:
        return None
    ids = torch.arange(TOKENS, device=device)[None]
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    configs = list_configs(module)
    try:
        with hold(configs), torch.inference_mode(), run_uncompiled(module):
            for config in configs:
                config._attn_implementation = NAME
            module(**inputs)
        # A family that asks for no implementation by its name.
        with hold(configs), torch.inference_mode(), run_uncompiled(module):
            for config in configs:  # a fused kernel may need no mask, and Falcon then returns weights without one
                config._attn_implementation = "eager"
            (first, *_) = module(**inputs, output_attentions=True).attentions
            return bool((first.triu(1) > 0).any())
    except _MaskReachedError as reached:
        return reached.mask is None or bool(shown(reached.mask)[..., 0, 1:].any())
    except Exception:  # each model raises errors of its own on text; the run that follows reports them
        return None
