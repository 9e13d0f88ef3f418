"""How far each head is from each head of the model before: what to match the heads of two models by.

The distance of Clark et al. 2019, section 6 (`headscope.reducers.head_distances`), between heads of two models.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from jaxtyping import Int
from torch import Tensor

from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch
from headscope.heads import Described, describe
from headscope.reducers.head_distances import CLARK
from headscope.reducers.reducer import Reducer, Sums
from headscope.reducers.support.divergence import compare_rows


@dataclass(frozen=True)
class HeadDistancesBefore(Reducer):
    """How far each head's attention is from that of each head of the model before: their Jensen-Shannon divergence.

    It is the mean over the queries of a document, and then over documents; every head is compared with every other,
    so that it shows which head has become which, or that heads have changed places.
    """

    name = "head_distances_before"
    scope = "pass"
    models = 2
    max_tokens = 512
    on_sample = True
    by_name = True

    def prepare(self, batch: Batch, attention_type: str) -> list[tuple[Int[Tensor, " _"], Int[Tensor, " _"]]]:
        """The queries and keys of each document that are no padding."""
        sides = batch.queries(attention_type).real, batch.keys(attention_type).real
        return [(rows.nonzero()[:, 0], keys.nonzero()[:, 0]) for rows, keys in zip(*sides, strict=True)]

    def count(self, facts: list[tuple[Tensor, Tensor]]) -> Sums:
        """The number of documents."""
        return {"documents": torch.tensor(len(facts))}

    def observe(self, facts: list[tuple[Tensor, Tensor]], *attentions: Attention) -> Sums:
        """The sum over documents of the mean divergence of each head and each head of the model before."""
        layers, heads = len(attentions) // 2, attentions[0].heads
        weights = [attention.weights() for attention in attentions]
        distance = np.zeros((layers * heads, layers * heads))
        for document, (rows, keys) in enumerate(facts):
            maps = torch.cat([layer[document][:, rows][..., keys] for layer in weights]).detach().cpu().numpy()
            after, before = np.split(maps, 2)
            distance += np.sum([part.sum(-1) for part in compare_rows(after, before)], axis=0) / len(rows)
        by_head = torch.from_numpy(distance.reshape(layers, heads, -1))
        return {"distance": by_head.to(weights[0].device)}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """The mean distance of each two heads."""
        layers, heads, *_ = sums["distance"].shape
        distance = sums["distance"].reshape(layers, heads, layers, heads).clip(0) / counts["documents"]
        what, dims = "Jensen-Shannon divergence of a head", ("layer", "head", "layer_before", "head_before")
        values: dict[str, Described] = {
            "js_distance_before": (distance, dims, f"{what} and one of the model before", "nats"),
            "js_distance_before_count": (counts["documents"], (), "documents on which heads are compared", "documents"),
        }
        coords = {"layer_before": range(1, layers + 1), "head_before": range(1, heads + 1)}
        return xr.Dataset(describe(values, CLARK), coords=coords)
