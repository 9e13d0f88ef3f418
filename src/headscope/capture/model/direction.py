"""Finds out whether tokens see later tokens, by the mask that a model passes to its attention."""

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
"""The name of an attention implementation for transformers that only looks at the mask."""

TOKENS = 3


class _MaskReachedError(Exception):
    """Raised to end a forward pass at its first attention layer."""

    def __init__(self, mask: Tensor | None) -> None:
        super().__init__("the mask was reached")
        self.mask = mask


def _stop_at_mask(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **terms: Any
) -> NoReturn:
    raise _MaskReachedError(attention_mask)


def _make_mask(**arguments: Any) -> Tensor | None:
    """Make the mask, even if transformers would leave it out because a kernel needs none."""
    mask: Tensor | None = sdpa_mask(**arguments | {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False})
    return mask


register(NAME, _stop_at_mask, _make_mask)


def sees_ahead(module: PreTrainedModel) -> bool | None:
    """Return whether a token sees later tokens, in a model that is not an encoder-decoder.

    The model runs on a text of three tokens, up to its first attention layer.

    Returns:
        None if the model cannot be run on text, or if it shows neither its mask nor its attention.
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
        # This family does not look up the implementation by its name, so its weights are read instead.
        with hold(configs), torch.inference_mode(), run_uncompiled(module):
            for config in configs:  # with a fused kernel, Falcon may leave out the mask and return unmasked weights
                config._attn_implementation = "eager"
            (first, *_) = module(**inputs, output_attentions=True).attentions
            return bool((first.triu(1) > 0).any())
    except _MaskReachedError as reached:
        return reached.mask is None or bool(shown(reached.mask)[..., 0, 1:].any())
    except Exception:  # any error may come from a model that cannot read text; the later run reports it
        return None
