"""The token whose logit each value raises most, if the output embeddings read directly what a head adds.

A head adds ``sum_j a[i, j] * (v[j] @ W)`` to token i, where W is its part of the output projection. The last norm and
the output embeddings read this sum directly, past the layers between (Elhage et al. 2021, "OV circuits"). The norm
scales the sum by one positive number. So the logit that the value of token j raises most depends on token and head
alone, not on the query.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.capture.model.block_sizes import BlockSizes


@dataclass(frozen=True, eq=False)
class Unembedding:
    """The map from the values of each head directly to the logits.

    Attributes:
        projections: The part of the output projection of each head, by attention type and number of the layer.
        norm: The last norm as a matrix, up to its scale.
        embeddings: The output embedding of each token.
    """

    projections: Mapping[tuple[str, int], Float[Tensor, "head width model"]]
    norm: Float[Tensor, "model model"]
    embeddings: Float[Tensor, "vocabulary model"]

    def read(
        self, ids: Int[Tensor, "batch key"], of_words: Bool[Tensor, "batch key"], device: torch.device
    ) -> "list[Vocabulary]":
        """Return the vocabulary of each text on a device: its distinct tokens where `of_words` is True."""
        vocabularies = []
        for tokens, shown in zip(ids, of_words, strict=True):
            types = tokens[shown].unique()
            chosen = self.embeddings[types.to(self.embeddings.device)]
            vocabularies.append(
                Vocabulary(types.to(device), (chosen.to(self.norm) @ self.norm).mT.to(device), shown.to(device))
            )
        return vocabularies

    def find_raised(
        self,
        attention_type: str,
        layer: int,
        values: Float[Tensor, "batch key_head key width"],
        vocabularies: "Sequence[Vocabulary]",
    ) -> Int[Tensor, "batch head key"]:
        """Find, for each query head and key, the token of the text whose logit the value of the key raises most.

        Special tokens are left out, as keys and as tokens to raise. Keys of special tokens and of padding have -1.
        """
        parts = self.projections[attention_type, layer].to(values.dtype)
        raised = torch.full((len(values), len(parts), values.shape[2]), -1, device=values.device)
        for row, vocabulary in enumerate(vocabularies):
            types, shown = vocabulary.types, vocabulary.shown
            if not len(types):
                continue
            directions = parts @ vocabulary.unembeddings.to(values.dtype)
            heads = values[row, :, shown].repeat_interleave(len(parts) // values.shape[1], dim=0)
            step = max(1, BlockSizes.measure(values.device).kept // (len(parts) * len(types)))
            largest = torch.cat([(some @ directions).argmax(-1) for some in torch.split(heads, step, 1)], dim=1)
            raised[row, :, shown] = types[largest]
        return raised


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The distinct word tokens of a text.

    Attributes:
        types: The ids of the tokens.
        unembeddings: The vector of each token. Its product with the residual stream is the logit, up to the scale of
            the last norm.
        shown: True for the keys that are one of these tokens.
    """

    types: Int[Tensor, " type"]
    unembeddings: Float[Tensor, "model type"]
    shown: Bool[Tensor, " key"]
