r"""How far fine-tuning has turned the attention of each head: Kovaleva et al. 2019, section 4.3 and figure 5.

The model before and after run side by side over each batch::

    batch --> before: every layer's attention is held --+--> Similarity --> sums
         \-> after: layer by layer --------------------/

No more than one batch of attention is ever held (`HELD_WEIGHTS`), and none is written to disk.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from headscope import heads
from headscope.capture.attention import Attention
from headscope.capture.batch import Batch
from headscope.capture.model import Model
from headscope.corpora.corpus import CorpusSummary
from headscope.errors import HeadscopeError, ModelError
from headscope.reducers.reducer import Sums

KOVALEVA = "Kovaleva et al. 2019, section 4.3"

HELD_WEIGHTS = 1 << 27
"""Attention weights of the model before that are held at once (512 MiB), if one document does not have more alone.

The longest document that is compared, of 512 tokens, has 38 million in a model of 12 layers of 12 heads, and 101
million in one of 24 layers of 16.
"""

BLOCK_WEIGHTS = 1 << 20
"""Weights of one model that are multiplied at once, in float64: what a processor's cache holds."""


@dataclass(frozen=True)
class Similarity:
    """The cosine of each head's attention map before and after fine-tuning, the mean over documents.

    A map is all weights of a head on a document as one vector, special tokens included and padding left out. Weights
    are not negative, so the cosine of two heads that have nothing in common is well above 0: compare heads with one
    another, and task with control.
    """

    name: ClassVar[str] = "similarity"
    whole: ClassVar[bool] = True
    max_tokens: ClassVar[int | None] = 512

    @classmethod
    def supports(cls, summary: CorpusSummary) -> bool:
        """No corpus has the second model that it takes, so it is measured where it is asked for by name."""
        return False

    @classmethod
    def for_corpus(cls, summary: CorpusSummary) -> "Similarity":
        """The reducer as it stands."""
        return cls()

    def count(self, batch: Batch, attention_type: str) -> Sums:
        """The number of documents."""
        return {"documents": torch.tensor(len(batch.documents))}

    def observe(self, attention: Attention) -> Sums:
        """The sum over documents of the cosine of two maps.

        Raises:
            HeadscopeError: the attention of the model before is not there.
        """
        if attention.before is None:
            raise HeadscopeError("`similarity` compares two models and was shown one; give `before` as well.")
        real = attention.queries.real[:, attention.rows, None] & attention.keys.real[:, None]
        products = _products(attention.before.weights(), attention.weights(), real)
        norms = products.diagonal(dim1=-2, dim2=-1).sqrt()
        return {"cosine": (products[..., 0, 1] / norms.prod(-1)).sum(0)}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """The mean cosine, and over how many documents."""
        documents = counts["documents"]
        what = "cosine of a head's attention maps before and after fine-tuning"
        similarity = heads.variable(
            sums["cosine"] / documents, ("layer", "head"), name=what, units="cosine", source=KOVALEVA
        )
        count = heads.variable(documents, (), name="documents compared", units="documents", source=KOVALEVA)
        return xr.Dataset({"similarity": similarity, "similarity_count": count})


def refuse_other_shape(before: Model, after: Model) -> None:
    """Refuse two models whose heads cannot be compared one by one.

    Raises:
        ModelError: they differ in layers, heads or vocabulary, or are on different devices.
    """
    if difference := before.shape.difference(after.shape):
        raise ModelError(
            f"{before.name!r} and {after.name!r} differ in {difference}; "
            "compare a model with the one that it was tuned from."
        )
    if before.device != after.device:
        raise ModelError(
            f"{before.name!r} is on {before.device} and {after.name!r} on {after.device}; put both on one."
        )


def refuse_other_tokens(before: Model, after: Model, batch: Batch | None, beside: Batch | None) -> None:
    """Refuse a batch that two models read differently.

    Args:
        before: the model that read `beside`.
        after: the model that read `batch`.
        batch: some documents; None where there are no more.
        beside: what should be the same documents and the same tokens.

    Raises:
        ModelError: it is not.
    """
    if batch is None or beside is None or not _same(batch, beside):
        near = next(one.documents[0].id for one in (batch, beside) if one is not None)
        raise ModelError(
            f"{after.name!r} turns {near!r}, or a document of about its length, into other tokens than "
            f"{before.name!r}; only models with one tokenizer can be compared."
        )


def batch_weights(model: Model) -> int:
    """The attention weights of one head that may be in a batch, so that no more than `HELD_WEIGHTS` are held."""
    return HELD_WEIGHTS // model.shape.together


def _same(batch: Batch, beside: Batch) -> bool:
    if [one.id for one in batch.documents] != [one.id for one in beside.documents]:
        return False
    ours, theirs = _shown(batch), _shown(beside)
    return ours.keys() == theirs.keys() and all(torch.equal(values, theirs[name]) for name, values in ours.items())


def _shown(batch: Batch) -> dict[str, Tensor]:
    """What the model is called with, padding as 0: a tokenizer that had no token to pad with was given one."""
    shown = batch.inputs | {"input_ids": batch.encoder.ids.where(batch.encoder.real, 0)}
    if batch.decoder is not None:
        shown["decoder_input_ids"] = batch.decoder.ids.where(batch.decoder.real, 0)
    return shown


def _products(
    before: Float[Tensor, "batch head query key"],
    after: Float[Tensor, "batch head query key"],
    real: Bool[Tensor, "batch query key"],
) -> Float64[Tensor, "batch head 2 2"]:
    """The inner products of the two maps of each head, as vectors, with themselves and one another."""
    batch, head, queries, keys = before.shape
    rows = max(1, BLOCK_WEIGHTS // (batch * head * keys))
    products = torch.zeros(batch, head, 2, 2, dtype=torch.float64, device=before.device)
    for start in range(0, queries, rows):
        block = slice(start, start + rows)
        padding = ~real[:, None, block]
        both = [one[:, :, block].double().masked_fill_(padding, 0.0).flatten(2) for one in (before, after)]
        vectors = torch.stack(both, dim=2)
        products += vectors @ vectors.mT
    return products
