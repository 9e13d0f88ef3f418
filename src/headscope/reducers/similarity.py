"""How much fine-tuning changes the attention of each head: Kovaleva et al. 2019, section 4.3 and figure 5.

The model before runs first on each batch, and its layers are held while the model after runs
(`headscope.runner.local`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from headscope.capture.model.block_sizes import BlockSizes
from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch
from headscope.heads import Described, describe
from headscope.reducers.reducer import Reducer, Sums
from headscope.score import Score

KOVALEVA = "Kovaleva et al. 2019, section 4.3"


@dataclass(frozen=True)
class Similarity(Reducer):
    """The cosine of each head's attention map before and after fine-tuning, the mean over documents.

    A map is all weights of a head on a document as one vector, with special tokens and without padding. Weights are not
    negative, so the cosine of two heads that have nothing in common is well above 0: compare heads with one another,
    and the task with its control.
    """

    name = "similarity"
    scope = "layer"
    models = 2
    max_tokens = 512
    scores = (
        Score(
            "similarity",
            "Similarity to the model before",
            "the cosine of a head's attention maps before and after fine-tuning",
            items="documents",
            ascending=True,
        ),
    )
    by_name = True

    def prepare(self, batch: Batch, attention_type: str) -> Bool[Tensor, "batch query key"]:
        """Return True for each weight from a token to a token, False for padding."""
        return batch.queries(attention_type).real[..., None] & batch.keys(attention_type).real[:, None]

    def count(self, facts: Bool[Tensor, "batch query key"]) -> Sums:
        """Count the documents."""
        return {"documents": torch.tensor(len(facts))}

    def observe(self, facts: Bool[Tensor, "batch query key"], after: Attention, before: Attention) -> Sums:
        """Sum over documents the cosine of the two maps of each head."""
        products = _products(before.weights(), after.weights(), facts)
        norms = products.diagonal(dim1=-2, dim2=-1).sqrt()
        return {"cosine": (products[..., 0, 1] / norms.prod(-1)).sum(0)}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return the mean cosine, and the number of documents."""
        what, documents = "cosine of a head's attention maps before and after fine-tuning", counts["documents"]
        values: dict[str, Described] = {
            "similarity": (sums["cosine"] / documents, ("layer", "head"), what, "cosine"),
            "similarity_count": (documents, (), "documents compared", "documents"),
        }
        return xr.Dataset(describe(values, KOVALEVA))


def _products(
    before: Float[Tensor, "batch head query key"],
    after: Float[Tensor, "batch head query key"],
    real: Bool[Tensor, "batch query key"],
) -> Float64[Tensor, "batch head 2 2"]:
    """Return the 2 x 2 matrix of the inner products of the two maps of each head, before and after."""
    batch, head, queries, keys = before.shape
    rows = max(1, BlockSizes.measure(before.device).weights // (batch * head * keys))
    products = torch.zeros(batch, head, 2, 2, dtype=torch.float64, device=before.device)
    for start in range(0, queries, rows):
        block = slice(start, start + rows)
        padding = ~real[:, None, block]
        both = [maps[:, :, block].double().masked_fill_(padding, 0.0).flatten(2) for maps in (before, after)]
        vectors = torch.stack(both, dim=2)
        products += vectors @ vectors.mT
    return products
