"""A text as headscope's batch."""

from typing import TYPE_CHECKING

import torch

from headscope.capture import Batch, Tokens
from headscope.corpora import Document

if TYPE_CHECKING:  # imported as a script's neighbour by some, as a package's module by others
    from ways.shapes import Text


def batch_of(text: "Text") -> Batch:
    """The text with its marks; made here, since a random text has no words to find them by."""
    real, position = torch.ones_like(text.ids, dtype=torch.bool), torch.arange(text.length)[None]
    tokens = Tokens(text.ids, real, position, position, text.cls[None], text.sep[None], text.punctuation[None])
    inputs = {"input_ids": text.ids, "attention_mask": real.long()}
    return Batch((Document("text", ("word",)),), tokens, None, 1, inputs)
