"""The views that can be measured in place of the weights of attention, by name. This module does not load torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from headscope.errors import HeadscopeError


@dataclass(frozen=True)
class View:
    """The description of a view, as tables state it.

    Attributes:
        share: The unit of its weights.
        shows: The definition of a weight, and its source.
        of_loss: True if it needs the loss of a task head, which the model must have.
        max_tokens: The most tokens of a text. Longer texts are skipped or cut, and counted; None for any length.
        settings: The settings of the view, which the table has as attributes.
    """

    share: str
    shows: str
    of_loss: bool = False
    max_tokens: int | None = None
    settings: Mapping[str, float] = field(default_factory=dict)


RESIDUAL = 0.5
"""The share of a token that the residual stream keeps in each layer (Abnar and Zuidema 2020, section 3)."""

ROLLOUT_TOKENS = 512
"""The most tokens of a text for the rollout, which multiplies matrices of all tokens."""

VALUE_ZEROING_TOKENS = 64
"""The most tokens of a text for value zeroing, which runs each block once for each head and token."""

_ROLLOUT = (
    f"the attention to each token of the input, carried down through the layers below, each of which keeps {RESIDUAL} "
    "of a token in the residual stream and mixes the rest by the mean attention of its heads"
)

ViewName: TypeAlias = Literal[
    "norm", "gradient", "gradient-x-attention", "rollout", "rollout-without-sink", "value-zeroing"
]
"""The name of a view, which is a key of `VIEWS`."""

NORM: ViewName = "norm"
"""The name of the norm view, whose weights are the attention weights times a norm of each key."""

VIEWS: Mapping[str, View] = {
    NORM: View(
        "share of what flows",
        "the norm of what flows from each token (its value after the output projection, times its weight), as a share "
        "of the sum of these norms over all tokens (Kobayashi et al. 2020, section 3)",
    ),
    "gradient": View(
        "share of the gradient",
        "the size of the gradient of the loss by the weight of each token, as a share of the sum of these sizes over "
        "all tokens (the gradient of Clark et al. 2019, section 3.2)",
        of_loss=True,
    ),
    "gradient-x-attention": View(
        "share of gradient x attention",
        "the size of the weight of each token times the gradient of the loss by it, which is about what the loss would "
        "change by without the weight, as a share of the sum of these sizes over all tokens",
        of_loss=True,
    ),
    "rollout": View(
        "share of the input",
        f"{_ROLLOUT} (Abnar and Zuidema 2020, section 3)",
        max_tokens=ROLLOUT_TOKENS,
        settings={"residual": RESIDUAL},
    ),
    "rollout-without-sink": View(
        "share of the input",
        f"{_ROLLOUT} (Abnar and Zuidema 2020, section 3), attention to special tokens (in a decoder, to the first "
        "token) being left out of every row and layer",
        max_tokens=ROLLOUT_TOKENS,
        settings={"residual": RESIDUAL},
    ),
    "value-zeroing": View(
        "share of the change",
        "the cosine distance of what the block of a layer returns for a token with and without the value of each token "
        "in the head, as a share of the sum of these distances over all tokens (Mohebbi et al. 2023, section 3, for "
        "each head by itself)",
        max_tokens=VALUE_ZEROING_TOKENS,
    ),
}


def check_view(view: str | None) -> None:
    """Raise an error if a name is not in `VIEWS`; None means the weights themselves."""
    if view is not None and view not in VIEWS:
        raise HeadscopeError(f"there is no view {view!r}; name one of {', '.join(VIEWS)}, or none for the weights.")
