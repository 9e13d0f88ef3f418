"""The two models and the text that every way measures.

A model of random weights is saved once, and every process loads that folder; so whatever a way does with
it, the numbers must come out the same. This module knows nothing of any way and imports none.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, models
from torch import Tensor
from transformers import AutoModel, BertConfig, LlamaConfig, PreTrainedConfig, PreTrainedTokenizerFast

SHARPER = 3.0
"""Untrained queries and keys are multiplied with this. As they are initialized, every head attends to all tokens
almost alike, and ways that disagree would give the same numbers."""


@dataclass(frozen=True)
class Shape:
    """A model without weights.

    Attributes:
        title: for the reader.
        config: without a limit of tokens.
        causal: a query sees no key behind it.
        separated: the first token counts as the classification token and the last as a separator.
    """

    title: str
    config: PreTrainedConfig
    causal: bool
    separated: bool


LLAMA = LlamaConfig(
    vocab_size=1000,
    hidden_size=512,
    intermediate_size=1376,
    num_hidden_layers=4,
    num_attention_heads=8,
    num_key_value_heads=2,
)

SHAPES = {
    "llama": Shape("Llama: 4 layers, 8 heads, 2 key-value heads, width 512", LLAMA, causal=True, separated=False),
    "bert": Shape("BERT-base: 12 layers, 12 heads, width 768", BertConfig(), causal=False, separated=True),
}


def save_model(shape: Shape, length: int, folder: Path) -> None:
    """Make a model with random weights that reads `length` tokens, and save it with a tokenizer of two words."""
    config = type(shape.config)(**shape.config.to_dict() | {"max_position_embeddings": max(512, length)})
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        model = AutoModel.from_config(config)
        for name, weight in model.named_parameters():
            if any(part in name for part in ("q_proj.weight", "k_proj.weight", "query.weight", "key.weight")):
                weight.mul_(SHARPER)
    model.save_pretrained(folder)
    vocabulary = Tokenizer(models.WordLevel({"[UNK]": 0, "one": 1, "two": 2}, unk_token="[UNK]"))
    PreTrainedTokenizerFast(tokenizer_object=vocabulary, unk_token="[UNK]").save_pretrained(folder)


@dataclass(frozen=True, eq=False)
class Text:
    """Random tokens, and what is known of them before any attention.

    Attributes:
        ids: what the model reads; axes batch (of 1) and token.
        cls, sep, punctuation: which tokens count as such; axis token.
        causal: a query sees no key behind it.
    """

    ids: Tensor
    cls: Tensor
    sep: Tensor
    punctuation: Tensor
    causal: bool

    @classmethod
    def with_length(cls, shape: Shape, length: int, number: int = 1) -> "Text":
        """A text of this length: the same in every process, another for each number."""
        ids = torch.randint(3, shape.config.vocab_size, (1, length), generator=torch.Generator().manual_seed(number))
        place = torch.arange(length)
        first, last = (place == 0) & shape.separated, (place == length - 1) & shape.separated
        return cls(ids, first, last, ids[0] % 17 == 0, shape.causal)

    @property
    def length(self) -> int:
        """The number of tokens."""
        return self.ids.shape[1]

    def allowed(self) -> np.ndarray:
        """The number of keys that the mask leaves to each query, axis query."""
        return np.arange(1, self.length + 1) if self.causal else np.full(self.length, self.length)
