"""Attention masks as blocks of rows, never whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from transformers.masking_utils import sdpa_mask

from headscope.errors import ModelError


@dataclass(eq=False)
class _Kept:
    """What a mask is to be made from, once the rows are known.

    Attributes:
        ticket: the tensor that stands for the mask until then.
        arguments: those of transformers' mask function.
        made: the block that was asked for last, by its first and last row.
    """

    ticket: Tensor
    arguments: dict[str, Any]
    made: dict[tuple[int, int], tuple[Tensor | None, Tensor]] = field(default_factory=dict)

    def rows(self, rows: slice) -> tuple[Tensor | None, Tensor]:
        """Whether each key may be seen (None where all may), and how many may."""
        block = (rows.start, rows.stop)
        if block not in self.made:
            queries, arguments = rows.stop - rows.start, self.arguments
            seen = sdpa_mask(**arguments | {"q_length": queries, "q_offset": arguments["q_offset"] + rows.start})
            if seen is None:
                size = (arguments["batch_size"], queries)
                allowed = torch.full(size, float(arguments["kv_length"]), device=arguments["device"])
            else:
                allowed = seen[:, 0].sum(-1, dtype=torch.float32)
            self.made = {block: (seen, allowed)}
        return self.made[block]


@dataclass(eq=False)
class Masks:
    """The masks of one forward pass.

    Where a model asks transformers for a mask it is handed a ticket, an empty tensor, which it
    passes on to attention. There the mask is made, for the rows of a block.
    """

    _kept: dict[int, _Kept] = field(default_factory=dict)

    def keep(self, arguments: Mapping[str, Any]) -> Tensor:
        """A ticket for the mask that these arguments of transformers' mask function would make."""
        defaults: dict[str, Any] = {"allow_is_bidirectional_skip": False, "device": "cpu"}
        kept = defaults | dict(arguments) | {"allow_is_causal_skip": False}
        size = (int(kept["batch_size"]), 1, int(kept["q_length"]), 0)
        ticket: Tensor = torch.empty(size, device=kept["device"])
        self._kept[id(ticket)] = _Kept(ticket, kept)
        return ticket

    def arguments(self, attention_mask: Tensor) -> Mapping[str, Any]:
        """What a mask would be made from; nothing if the model made it itself."""
        kept = self._kept.get(id(attention_mask))
        return {} if kept is None else kept.arguments

    def rows(
        self, attention_mask: Tensor | None, rows: slice, query: Tensor, keys: int
    ) -> tuple[Tensor | None, Float[Tensor, "batch query"]]:
        """The rows of a mask as an eager attention function wants it, and the number of keys it leaves.

        Raises:
            ModelError: the model has made something else of its ticket.
        """
        size = (query.shape[0], rows.stop - rows.start)
        if attention_mask is None:
            return None, torch.full(size, float(keys), device=query.device)
        kept = self._kept.get(id(attention_mask))
        if kept is not None:
            seen, allowed = kept.rows(rows)
            if seen is None:
                return None, allowed
            zero = torch.zeros((), dtype=query.dtype, device=query.device)
            return torch.where(seen, zero, torch.finfo(query.dtype).min), allowed
        if attention_mask.ndim != 4 or attention_mask.shape[-1] != keys:
            raise ModelError(
                f"the model rewrites its attention mask to the shape {tuple(attention_mask.shape)}, "
                "which cannot be followed; its attention cannot be captured."
            )
        # Some models make the mask themselves: a sum that is far below zero, or a Boolean, where a key is hidden.
        block = attention_mask if attention_mask.shape[-2] == 1 else attention_mask[:, :, rows]
        visible = block if block.dtype == torch.bool else block > torch.finfo(block.dtype).min / 2
        return block, visible[:, 0].sum(-1, dtype=torch.float32).expand(size)
