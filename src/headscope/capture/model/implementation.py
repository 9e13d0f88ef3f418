"""The names of headscope's attention implementations in transformers, and their registration."""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface

NAME = "headscope"
"""The name of headscope among transformers' attention implementations."""

EDITED_PREFIX = f"{NAME}-edited-"

EDITED = {name: f"{EDITED_PREFIX}{name}" for name in ("eager", "sdpa")}
"""The name of the implementation that edits heads, by the name of the transformers implementation that it calls."""


def register(name: str, attend: Callable[..., Any], make_mask: Callable[..., Tensor | None]) -> None:
    """Register an attention function, and the function that makes its masks, in transformers under a name.

    A function that is registered only for attention gets no mask (``findings/attention-without-mask.sh``).
    """
    AttentionInterface.register(name, attend)
    AttentionMaskInterface.register(name, make_mask)
