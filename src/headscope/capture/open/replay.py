"""A model that computes only attention, from queries, keys and values that another engine saved.

It calls attention as the models of transformers do, so all code for their attention interface works on it.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.masking_utils import (
    ALL_MASK_ATTENTION_FUNCTIONS,
    bidirectional_mask_function,
    causal_mask_function,
    sliding_window_bidirectional_mask_function,
    sliding_window_causal_mask_function,
)
from transformers.modeling_outputs import BaseModelOutput
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from headscope.capture.forward.verify import find_tolerance
from headscope.capture.model.mask import as_mask
from headscope.capture.model.saved import SavedTexts
from headscope.capture.model.saved_text import ALL, CAUSAL, PARTS, TENSOR, SavedText, Settings
from headscope.capture.rows.kernel import average_values, products
from headscope.errors import ModelError

Located = Sequence[tuple[SavedText, list[int]]]
"""For each row of a batch, the text of its tokens, and the indices of the tokens in that text."""


def eager_attention_forward(
    module: nn.Module,
    query: Float[Tensor, "batch head query size"],
    key: Float[Tensor, "batch key_head key size"],
    value: Float[Tensor, "batch key_head key width"],
    attention_mask: Tensor | None,
    scaling: float,
    **terms: Any,
) -> tuple[Float[Tensor, "batch query head width"], Float[Tensor, "batch head query key"]]:
    """Compute the output and the weights of ``softmax(scaling * q . k + mask)``."""
    scores = scaling * products(query, key)
    weights = (scores if attention_mask is None else scores + attention_mask).softmax(-1)
    return average_values(weights, value).transpose(1, 2).contiguous(), weights


class ReplayedAttention(nn.Module):
    """The attention of one layer, computed from saved queries, keys and values."""

    def __init__(self, config: PreTrainedConfig, settings: Settings, layer: int) -> None:
        """Make the attention of a layer, counted from 1."""
        super().__init__()
        self.config, self.layer = config, layer
        # `is_causal` is off, since the mask alone tells which keys are visible.
        self.scaling, self.is_causal = settings.scales[layer - 1], False
        self.num_key_value_groups = settings.heads // settings.key_heads
        self.mask_function = _find_mask_function(settings.mask, settings.windows[layer - 1])

    def forward(self, located: Located, real: Bool[Tensor, "batch token"]) -> Float[Tensor, "batch token head width"]:
        """Compute the output of attention for the tokens of each row."""
        query, key, value = (self._read(part, located, real) for part in PARTS)
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention_forward)
        mask = self._make_mask(located, real, query)
        output: Tensor = attend(self, query, key, value, mask, scaling=self.scaling, dropout=0.0)[0]
        self._compare(located, output)
        return output

    def _read(
        self, part: str, located: Located, real: Bool[Tensor, "batch token"]
    ) -> Float[Tensor, "batch head token size"]:
        """Read the saved queries, keys or values of the tokens of each row; 0 for padding."""
        rows = [text.read(f"layers.{self.layer}.{part}")[:, own] for text, own in located]
        return torch.stack([pad(row, (0, 0, 0, real.shape[1] - row.shape[1])) for row in rows]).to(real.device)

    def _make_mask(self, located: Located, real: Bool[Tensor, "batch token"], query: Tensor) -> Tensor | None:
        batch, tokens = real.shape
        if self.mask_function is None:
            seen = torch.zeros(batch, tokens, tokens, dtype=torch.bool)
            for row, (text, own) in enumerate(located):
                seen[row, : len(own), : len(own)] = text.read("mask").bool()[own][:, own]
                if not bool(seen[row, : len(own)].any(-1).all()):
                    raise ModelError(
                        f"the mask of {text.file} shows a token nothing, not even itself; let each token see one at "
                        "least."
                    )
            return as_mask(~seen, query.dtype)[:, None].to(query.device)
        make: Callable[..., Tensor | None] = ALL_MASK_ATTENTION_FUNCTIONS[self.config._attn_implementation]
        return make(
            batch_size=batch, q_length=tokens, kv_length=tokens, q_offset=0, kv_offset=0,
            mask_function=self.mask_function, attention_mask=real, allow_is_causal_skip=False, dtype=query.dtype,
            device=query.device, config=self.config,
        )  # fmt: skip

    def _compare(self, located: Located, output: Float[Tensor, "batch token head width"]) -> None:
        """Raise an error if the output differs from the saved output of the engine, if there is one."""
        for (text, own), ours in zip(located, output, strict=True):
            # If tokens are left out, the outputs before the first gap are the same only under a causal mask.
            same = next((place for place, saved in enumerate(own) if place != saved), len(own))
            if self.layer not in text.outputs or (len(own) < len(text.tokens) and text.settings.mask != CAUSAL):
                continue
            theirs = text.read(f"layers.{self.layer}.output")[:, :same].transpose(0, 1).to(ours.device)
            difference = float((ours[:same].float() - theirs.float()).abs().max()) if same else 0.0
            bound = find_tolerance(ours.dtype) * max(1.0, float(theirs.float().abs().max()))
            if not difference <= bound:
                raise ModelError(
                    f"the attention of layer {self.layer} in {text.file} gives other outputs than were saved, by "
                    f"{difference:.2g} (at most {bound:.2g} is allowed); save queries and keys as they are when they "
                    "are multiplied, after rotary embedding and norms, with the scale and the mask of the model."
                )


def _find_mask_function(mask: str, window: int | None) -> Callable[..., Any] | None:
    """Return transformers' mask function for a mask and a window; None if the mask is a tensor."""
    if mask == TENSOR:
        return None
    everything, make_window = {
        CAUSAL: (causal_mask_function, sliding_window_causal_mask_function),
        ALL: (bidirectional_mask_function, sliding_window_bidirectional_mask_function),
    }[mask]
    chosen: Callable[..., Any] = everything if window is None else make_window(window)
    return chosen


class ReplayedModel(PreTrainedModel):  # type: ignore[misc]  # transformers is untyped to mypy
    """All layers of saved attention; no layer reads the output of another."""

    config_class = PreTrainedConfig
    _supports_sdpa = True

    def __init__(self, config: PreTrainedConfig, texts: SavedTexts) -> None:
        """Make the layers of a folder of saved attention."""
        super().__init__(config)
        self.texts = texts
        # This parameter gives the model a device, on which attention is computed, and the type of the saved tensors.
        dtype = getattr(torch, texts.settings.dtype)
        self.anchor = nn.Parameter(torch.zeros((), dtype=dtype), requires_grad=False)
        self.layers = nn.ModuleList(
            ReplayedAttention(config, texts.settings, layer) for layer in range(1, texts.settings.layers + 1)
        )

    def forward(
        self,
        input_ids: Int[Tensor, "batch token"],
        attention_mask: Int[Tensor, "batch token"],
        places: Int[Tensor, "batch token"],
        **named: Any,
    ) -> BaseModelOutput:
        """Return the sum of the outputs of all layers, so that a change in any layer changes the output.

        `places` has the index of each token among all saved tokens; -1 is padding.
        """
        located, real = [self.texts.locate(row) for row in places.tolist()], attention_mask.bool()
        output = reduce(torch.add, (layer(located, real) for layer in self.layers))
        return BaseModelOutput(last_hidden_state=output.flatten(2))


def make_model(texts: SavedTexts) -> ReplayedModel:
    """Make the model that replays the texts of a folder."""
    settings = texts.settings
    config = PreTrainedConfig(
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        num_key_value_heads=settings.key_heads,
        is_decoder=settings.mask == CAUSAL,
        attn_implementation="sdpa",
    )
    model = ReplayedModel(config, texts)
    model.eval()
    return model


def make_tokenizer(texts: SavedTexts) -> PreTrainedTokenizerFast:
    """Make a tokenizer that only knows the spelling of the tokens of a folder; it reads no text."""
    special = {f"{kind}_token": spelling for kind, spelling in texts.settings.special}
    words = Tokenizer(WordLevel(texts.spellings, unk_token=next(iter(texts.spellings))))
    return PreTrainedTokenizerFast(tokenizer_object=words, **special)
