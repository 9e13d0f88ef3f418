"""The attention of each word of a sentence to the cue of a negation, and the sums for its regression."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Float64, Int, Int64
from torch import Tensor

from headscope import heads
from headscope.capture.tokens.batch import Batch

REGRESSORS = ("constant", "in_scope", "distance")
"""The variables on which the attention to the cue is regressed."""

SOURCE = "Zhao and Bethard 2020, section 4.2"


@dataclass(frozen=True, eq=False)
class Cues:
    """The cues of a batch, and the words that may attend to them.

    Words of the cue are left out, and so are words that the model did not read because they have no token. The distance
    of a word is its distance to the nearest word of the cue, in words, before or after. (The paper does not define its
    distance. It is not in words: its coefficient, 0.043, would then explain a sum of squares of 2,400 on its frames,
    and it explains 1.5.)

    Attributes:
        document: The index in the batch of the document of each negation.
        rank: The number of each negation among those of its document.
        cues: For each document and rank, the words of the cue.
        regressors: For each negation and word: 1, whether it is in the scope, and its distance; 0 if it is left out.
    """

    document: Int[Tensor, " negation"]
    rank: Int[Tensor, " negation"]
    cues: Bool[Tensor, "batch rank word"]
    regressors: Int64[Tensor, "negation word regressor"]

    @classmethod
    def from_negations(
        cls,
        batch: Batch,
        document: Int[Tensor, " negation"],
        is_cue: Bool[Tensor, "negation word"],
        in_scope: Bool[Tensor, "negation word"],
    ) -> "Cues":
        """Return the cues of negations, which must be sorted by their documents."""
        device, position = is_cue.device, torch.arange(is_cue.shape[1], device=is_cue.device)
        rank = torch.arange(len(document), device=device) - torch.searchsorted(document, document)
        ranks = max(rank.tolist(), default=-1) + 1
        cues = torch.zeros(len(batch.documents), ranks, len(position), dtype=torch.bool, device=device)
        cues[document, rank] = is_cue
        distance = torch.zeros(is_cue.shape, dtype=torch.long, device=device)
        for row, cue in enumerate(is_cue):
            distance[row] = (position[:, None] - cue.nonzero().T).abs().amin(-1)
        read = _read(batch)[document]
        scored = read & ~is_cue & (read & is_cue).any(-1, keepdim=True)
        regressors = torch.stack([scored.long(), (in_scope & scored).long(), distance * scored], -1)
        return cls(document, rank, cues, regressors)

    def products(self) -> Int64[Tensor, "negation regressor regressor"]:
        """Return for each negation the products of each pair of regressors, summed over words."""
        return (self.regressors[..., None] * self.regressors[..., None, :]).sum(1)

    def attention(self, weights: Float[Tensor, "batch head word other"]) -> Float64[Tensor, "negation head word"]:
        """Return the attention of each word to all words of a cue together; 0 for words that do not count."""
        # All negations of a document in one product, without a copy of the weights for each.
        to_cues = torch.bmm(weights.flatten(1, 2), self.cues.to(weights.dtype).mT)
        to_cue = to_cues.view(*weights.shape[:3], self.cues.shape[1])[self.document, :, :, self.rank]
        return to_cue.double() * self.regressors[:, None, :, 0]

    def moments(
        self, attention: Float64[Tensor, "negation head word"]
    ) -> tuple[Float64[Tensor, "negation head regressor"], Float64[Tensor, "negation head"]]:
        """Return two sums over words: of attention times each regressor, and of the squares of attention."""
        return attention @ self.regressors.double(), (attention**2).sum(-1)


def variables(sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> dict[str, xr.Variable]:
    """Return the variables for the regression: ``regressors`` from `counts`, ``products``, ``squares`` from `sums`."""
    by_head, what, units = ("layer", "head", "fold"), "added up over words", "sum of products"
    values = {
        "regressors": (counts["regressors"], ("fold", "regressor", "regressor_other"), "products of two regressors"),
        "products": (sums["products"], (*by_head, "regressor"), "products of a regressor and the attention to the cue"),
        "squares": (sums["squares"], by_head, "squares of the attention to the cue"),
    }
    return {
        f"fold_scope_{name}": heads.variable(data, dims, name=f"{label}, {what}", units=units, source=SOURCE)
        for name, (data, dims, label) in values.items()
    }


def _read(batch: Batch) -> Bool[Tensor, "batch word"]:
    """Return True for each word that has a token."""
    word = batch.encoder.word
    read = torch.zeros(len(word), batch.words + 1, dtype=torch.bool, device=word.device)
    return read.scatter_(1, word.where(word >= 0, batch.words), True)[:, :-1]
