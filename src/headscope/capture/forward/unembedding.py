"""Which token each value raises: what a head adds, as the output embeddings of the model read it.

A head adds ``sum_j a[i, j] * (v[j] @ W)`` to token i, where W is its part of the output projection. The part that
reaches the logits with no layer between is read by the last norm and the output embeddings (Elhage et al. 2021, "OV
circuits"). The norm scales all of it by one number above 0, so which logit the value of token j raises most depends on
the token and the head alone, and not on who attends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.capture.model.block_sizes import BlockSizes


@dataclass(frozen=True, eq=False)
class Unembedding:
    """The way from the values of each head to the logits.

    Attributes:
        projections: of each layer, by attention type and number, the part of the output projection of each head.
        norm: the last norm as a matrix, up to its scale.
        embeddings: the output embedding of each token.
    """

    projections: Mapping[tuple[str, int], Float[Tensor, "head width model"]]
    norm: Float[Tensor, "model model"]
    embeddings: Float[Tensor, "vocabulary model"]

    def read(
        self, ids: Int[Tensor, "batch key"], of_words: Bool[Tensor, "batch key"], device: torch.device
    ) -> "list[Vocabulary]":
        """Return the different tokens of words of each text, and how the logit of each is read, on a device."""
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
        """The token of the text whose logit the value of each key raises most, by query head; -1 for other keys.

        Special tokens are neither asked about nor among those that may be raised.
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
    """The different tokens of a text.

    Attributes:
        types: their ids.
        unembeddings: what the residual stream is multiplied with for the logit of each, but for the last norm's scale.
        shown: True for the keys that are one of them.
    """

    types: Int[Tensor, " type"]
    unembeddings: Float[Tensor, "model type"]
    shown: Bool[Tensor, " key"]
