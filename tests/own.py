"""Reducers of somebody's own, passed as objects: one of each scope, none of which is in the package."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool
from torch import Tensor

from headscope import heads
from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch
from headscope.reducers import Reducer, Sums


@dataclass(frozen=True)
class LastToken(Reducer):
    """Attention to the last token of a text, the mean over its queries: needs rows only."""

    name = "last_token"
    scope = "rows"

    def prepare(self, batch: Batch, attention_type: str) -> tuple[Tensor, Tensor]:
        queries, keys = batch.queries(attention_type), batch.keys(attention_type)
        last = keys.position == keys.position.where(keys.real, -1).amax(1, keepdim=True)
        share = queries.real.double() / queries.real.sum(1, keepdim=True)
        return (last & keys.real).float()[..., None], share

    def count(self, facts: tuple[Tensor, Tensor]) -> Sums:
        return {"documents": torch.tensor(len(facts[1]))}

    def observe(self, facts: tuple[Tensor, Tensor], attention: Attention) -> Sums:
        last, share = facts
        share = share[:, None, attention.rows]
        mass = attention.average(last)[..., 0].double().where(share > 0, 0)
        return {"mass": (mass * share).sum((0, 2))}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        mass = sums["mass"] / counts["documents"]
        name, units = "attention to the last token", "share of attention"
        return xr.Dataset({"mass_last": heads.variable(mass, ("layer", "head"), name=name, units=units, source="own")})


@dataclass(frozen=True)
class HeadCosines(Reducer):
    """The cosine of each head's map with that of every head of every layer, the mean over texts: needs a whole pass."""

    name = "head_cosines"
    scope = "pass"
    max_tokens = 512

    def prepare(self, batch: Batch, attention_type: str) -> Bool[Tensor, "batch query key"]:
        return batch.queries(attention_type).real[..., None] & batch.keys(attention_type).real[:, None]

    def count(self, facts: Bool[Tensor, "batch query key"]) -> Sums:
        return {"documents": torch.tensor(len(facts))}

    def observe(self, facts: Bool[Tensor, "batch query key"], *attentions: Attention) -> Sums:
        weights = [attention.weights().double().where(facts[:, None], 0).flatten(2) for attention in attentions]
        maps = torch.nn.functional.normalize(torch.stack(weights, dim=1), dim=-1)
        return {"cosine": torch.einsum("blhw,bmgw->lhmg", maps, maps)}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        dims = ("layer", "head", "layer_other", "head_other")
        cosine = sums["cosine"] / counts["documents"]
        values = heads.variable(cosine, dims, name="cosine of two heads' maps", units="cosine", source="own")
        places = {dim: np.arange(1, size + 1) for dim, size in zip(dims[2:], cosine.shape[2:], strict=True)}
        return xr.Dataset({"head_cosine": values}, coords=places)


OWN = (LastToken(), HeadCosines())
