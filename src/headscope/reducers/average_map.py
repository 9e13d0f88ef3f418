"""The average attention map of each head on texts of any length, each divided into the same number of parts.

After the model view of BertViz (Vig 2019), which shows the maps of all heads side by side, on one text.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch
from headscope.errors import HeadscopeError
from headscope.heads import SHARE, describe
from headscope.reducers.reducer import Reducer, Sums
from headscope.reducers.support.ratios import mean

VIG = "headscope, after the model view of BertViz (Vig 2019)"

BINS = 16
"""The default number of parts of a text, which is also the number of rows and columns of a map."""

MOST_BINS = 512
"""The largest number of parts.

A larger map does not fit into a thumbnail, and the table has the square of this number of cells for each head.
"""


@dataclass(frozen=True)
class AverageMap(Reducer):
    """The average attention map of each head: how much it attends from each sixteenth of a text to each sixteenth.

    Texts have different lengths, so each is stretched to the length 1: token i of n (counted from 0, with special
    tokens) reaches from i/n to (i+1)/n of its text. It belongs to each part by the share of it that lies there.
    ``average_map`` is the attention to all keys of a part, as a mean over the queries of a part in all texts. A row
    sums to 1, or to the sum of the weights of its queries. So equal weights give equal values for all parts, whatever
    the length. Between an encoder and a decoder, each side is divided by its own length.

    Attributes:
        bins: The number of parts.

    Raises:
        HeadscopeError: The number of parts is not a whole number from 1 to 512.
    """

    bins: int = BINS

    name = "average_map"
    scope = "rows"
    samples_queries = True

    def __post_init__(self) -> None:
        """Raise an error if `bins` is not a whole number from 1 to `MOST_BINS`."""
        if type(self.bins) is not int or not 1 <= self.bins <= MOST_BINS:
            raise HeadscopeError(
                f"an average map cannot have {self.bins!r} bins; give a whole number from 1 to {MOST_BINS}, such as "
                f"{BINS}."
            )

    def prepare(self, batch: Batch, attention_type: str) -> "_Facts":
        """Return the share of each query and of each key that lies in each part of its text."""
        queries, keys = batch.queries(attention_type).real, batch.keys(attention_type).real
        shares = _divide(keys, self.bins).float() / self.bins
        return _Facts(_divide(queries, self.bins).double(), shares, not bool(queries.all()))

    def count(self, facts: "_Facts") -> Sums:
        """Sum over queries the share of each query in each part, times `bins`, so that the sums are whole numbers."""
        return {"queries": facts.queries.sum((0, 1)).long()}

    def observe(self, facts: "_Facts", attention: Attention) -> Sums:
        """Sum for each head the attention from the queries of each part of a text to the keys of each part."""
        rows, seen = attention.rows, attention.average(facts.keys)
        if facts.padded:
            # Padding may hold any value, also NaN, which a product with 0 would not remove.
            seen = seen.where(attention.queries.real[:, None, rows, None], 0)
        some = attention.batch.blocks.summed_rows
        chunks = zip(torch.split(facts.queries[:, rows], some, 1), torch.split(seen, some, 2), strict=True)
        # One product for all documents and heads, without a map for each document.
        totals = [torch.einsum("bqi,bhqj->hij", by_bin, chunk.double()) for by_bin, chunk in chunks]
        return {"attention": torch.stack(totals).sum(0)}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return the mean attention of each head from each part of a text to each part."""
        values = mean(sums["attention"], counts["queries"][:, None])
        what = "attention from the tokens of a part of a text to those of a part, the mean over tokens of all texts"
        dims = ("layer", "head", "query_bin", "key_bin")
        parts = range(1, self.bins + 1)
        variables = describe({"average_map": (values, dims, what, SHARE)}, VIG)
        return xr.Dataset(variables, coords={"query_bin": parts, "key_bin": parts})


@dataclass(frozen=True, eq=False)
class _Facts:
    """The facts of a batch that need no attention.

    Attributes:
        queries: The share of each query that lies in each part, times the number of parts; 0 for padding.
        keys: The share of each key that lies in each part.
        padded: Whether there is padding among the queries.
    """

    queries: Float64[Tensor, "batch query query_bin"]
    keys: Float[Tensor, "batch key key_bin"]
    padded: bool


def _divide(real: Bool[Tensor, "batch token"], bins: int) -> Int[Tensor, "batch token bin"]:
    """Return the share of each token that lies in each part of its text, multiplied by `bins` to a whole number."""
    first = ((real.cumsum(1) - 1) * bins)[
        ..., None
    ]  # where each token begins, in units in which a token is `bins` long
    length = real.sum(1)[:, None, None]
    part = torch.arange(bins, device=real.device) * length
    inside = torch.minimum(first + bins, part + length) - torch.maximum(first, part)
    return inside.clamp_min(0) * real[..., None]
