"""Attention implementations of ours, under the names by which a configuration of transformers chooses them."""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface

NAME = "headscope"
"""Our name among transformers' attention implementations."""

EDITED_PREFIX = f"{NAME}-edited-"

EDITED = {name: f"{EDITED_PREFIX}{name}" for name in ("eager", "sdpa")}
"""The names of the implementations of which the output can be edited, and of the edited ones."""


def register(name: str, attend: Callable[..., Any], make_mask: Callable[..., Tensor | None]) -> None:
    """Register an attention function and the function that makes its masks.

    A function that is registered for attention alone gets no mask (``findings/attention-without-mask.sh``).
    """
    AttentionInterface.register(name, attend)
    AttentionMaskInterface.register(name, make_mask)
