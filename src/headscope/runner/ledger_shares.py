"""The attention of each head to each part of a prompt while the model writes, for each order of the documents.

prompt --tokenize--> tokens in each order --capture--> Attention --> shares of attention by part, token and head
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Float32, Int
from torch import Tensor

from headscope.capture.forward.comparisons import Reasons, run_again_with_matrix
from headscope.capture.forward.interface import Capture
from headscope.capture.forward.verify import are_finite, refuse_not_finite
from headscope.capture.passes.room import Room
from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch, collate
from headscope.capture.tokens.prompt_tokens import PromptTokens, make_text
from headscope.corpora.prompts import OWN


@dataclass(frozen=True, eq=False)
class Ledger:
    """The attention to each part of a prompt, in each order of its documents.

    Attributes:
        shares: The shares of attention at the prediction of each token of the model's own text. They sum to 1 over the
            parts, or to less if the model has attention sinks that are not tokens.
        uniform: The same shares if attention is spread evenly over all tokens that a decoder can see.
        lengths: The number of tokens of each part of the prompt in each order.
    """

    shares: Float32[np.ndarray, "order token layer head part"]
    uniform: Float[np.ndarray, "order token part"]
    lengths: Float[np.ndarray, "order part"]


def observe_ledger(
    capture: Capture, name: str, prompts: Sequence[PromptTokens], own: Sequence[int], parts: Sequence[str],
    *, batch_tokens: int, fused: bool | None = None,
) -> Ledger:  # fmt: skip
    """Measure the attention to each part of a prompt while the model writes, in each order of its documents.

    The tokens of the model's own text are the same in each order. The model needs no task head. Batches of orders have
    at most `batch_tokens` tokens, padding included.

    Raises:
        ModelError: The model's outputs are not finite.
    """
    place = {part: number for number, part in enumerate(parts)}
    numbers = [[*(place[part] for part in each.parts), *[place[OWN]] * (len(own) - 1)] for each in prompts]
    longest = max(map(len, numbers))
    size = max(1, batch_tokens // longest)

    def observe(rows: Sequence[int]) -> Float32[np.ndarray, "order token layer head part"]:
        # The prediction at the last token is not read, so the token is left out.
        batch = collate(capture.model, [make_text(name, prompts[row], own[:-1]) for row in rows])
        starts = torch.tensor([len(prompts[row].ids) - 1 for row in rows], device=batch.encoder.ids.device)
        queries = starts[:, None] + torch.arange(len(own), device=starts.device)
        of_texts = [numbers[row] for row in rows]
        return run_again_with_matrix(partial(_observe_batch, capture, batch, of_texts, queries, len(parts), fused))

    room, shares = Room(capture.model), list[np.ndarray]()
    for first in range(0, len(prompts), size):
        rows = range(first, min(first + size, len(prompts)))
        shares += room.run_items(rows, longest, observe, lambda row: f"of the prompt {name!r}")
    uniform = np.stack([_spread_evenly(of_text, len(own), len(parts)) for of_text in numbers])
    lengths = np.stack([np.bincount([place[part] for part in each.parts], minlength=len(parts)) for each in prompts])
    return Ledger(np.concatenate(shares), uniform, lengths.astype(float))


def _observe_batch(
    capture: Capture, batch: Batch, numbers: Sequence[Sequence[int]], queries: Int[Tensor, "order token"], parts: int,
    fused: bool | None, with_matrix: Reasons,
) -> Float32[np.ndarray, "order token layer head part"]:  # fmt: skip
    """Return the shares of attention to each part of the prompt, for a batch of orders.

    `numbers` are the parts of all tokens, and `queries` are the tokens that predict the model's own text.
    """
    columns = torch.zeros(len(numbers), batch.encoder.length, parts, device=queries.device)
    for row, of_text in enumerate(numbers):
        columns[row, range(len(of_text)), of_text] = 1
    layers: dict[int, Tensor] = {}

    def observe(attention: Attention) -> None:
        rows, device = attention.rows, attention.batch.device
        places = queries.to(device)
        held = (places >= rows.start) & (places < rows.stop)
        if not bool(held.any()):
            return
        average = attention.average(columns.to(device))
        index = (places - rows.start).clamp(0, average.shape[2] - 1)[:, None, :, None]
        chosen = average.gather(2, index.expand(-1, average.shape[1], -1, parts))
        chosen = chosen.masked_fill(~held[:, None, :, None], 0)
        layers[attention.layer] = layers.get(attention.layer, 0) + chosen

    outputs = capture.run(batch, observe, fused=fused, with_matrix=with_matrix)
    if not bool(are_finite(batch, outputs.verified).all()):
        raise refuse_not_finite(capture.model.name, f"for the prompt {batch.documents[0].id!r}")
    by_layer = torch.stack([layers[layer].cpu() for layer in sorted(layers)], dim=1)  # batch layer head token part
    result: Float32[np.ndarray, "order token layer head part"] = by_layer.movedim(3, 1).float().numpy()
    return result


def _spread_evenly(numbers: Sequence[int], tokens: int, parts: int) -> Float[np.ndarray, "token part"]:
    """Return the share of each part among the tokens that are visible at the prediction of each token."""
    seen = np.cumsum(np.eye(parts)[list(numbers)], axis=0)[-tokens:]
    shares: Float[np.ndarray, "token part"] = seen / seen.sum(1, keepdims=True)
    return shares
