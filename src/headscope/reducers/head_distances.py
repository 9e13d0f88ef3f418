"""The distances between the attention of heads, of one model or of two: Clark et al. 2019, section 6.

The distance is the Jensen-Shannon divergence between the attention of two heads from the same token, as a mean over the
tokens of a document, and then over documents. The paper sums over all tokens, so that long texts weigh more. Its code
adds 0.001 / n to the weights, which the divergence does not need.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Float64, Int
from torch import Tensor

from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch
from headscope.corpora.document import Document
from headscope.corpora.summary import CorpusSummary
from headscope.errors import HeadscopeError
from headscope.heads import Described, describe
from headscope.reducers.reducer import Reducer, Sums
from headscope.reducers.support.divergence import compare_rows
from headscope.reducers.support.folds import FoldAssignment
from headscope.reducers.support.ratios import mean

CLARK = "Clark et al. 2019, section 6"
HALVES = ("even", "odd")
"""The halves of the corpus: the documents of even and of odd folds."""

ROWS = 32
"""The number of rows of a document that are compared by default."""

PAIR = ("layer", "head", "layer_other", "head_other")
BOUND = 1.96
"""The number of standard errors within which a normal variable lies in 95 of 100 cases."""


@dataclass(frozen=True)
class HeadDistances(Reducer):
    """How far apart the attention of each two heads is: their Jensen-Shannon divergence, the mean over documents.

    Attributes:
        rows: Compare the heads in this number of random rows (queries) of each document, and state the error. With
            None, compare all rows, which is exact. Documents with no more rows than this are compared in all rows. The
            reducer for a corpus (`for_corpus`) compares 32 rows.
        seed: The seed of the choice of rows. The name of the document also determines the choice, so that it does not
            depend on the order or the batch.
        fold_assignment: The assignment of documents to folds, and so to halves of the corpus.

    Raises:
        HeadscopeError: `rows` is less than 2; fewer rows say nothing about the error.
    """

    rows: int | None = None
    seed: int = 0
    fold_assignment: FoldAssignment = field(default_factory=FoldAssignment)

    name = "head_distances"
    scope = "pass"
    max_tokens = 512
    on_sample = True

    def __post_init__(self) -> None:
        """Raise an error if `rows` is less than 2, since fewer rows say nothing about the error."""
        if self.rows is not None and self.rows < 2:
            raise HeadscopeError(
                f"{self.rows} rows of a document say nothing of the error of a sample; give 2 or more, such as 16, or "
                "none for all rows."
            )

    @classmethod
    def for_corpus(cls, summary: CorpusSummary) -> "HeadDistances":
        """Return the reducer for a corpus, which compares heads in `ROWS` random rows of each document."""
        return cls(ROWS, fold_assignment=FoldAssignment.for_corpus(summary))

    def prepare(self, batch: Batch, attention_type: str) -> "_Facts":
        """Return for each document the rows in which heads are compared, the keys, and its half of the corpus."""
        queries, keys = batch.queries(attention_type), batch.keys(attention_type)
        rows = [self._choose(document, real) for document, real in zip(batch.documents, queries.real, strict=True)]
        half = self.fold_assignment.folds(batch.documents, queries.real.device) % len(HALVES)
        return _Facts(rows, [real.nonzero()[:, 0] for real in keys.real], queries.real.sum(1).tolist(), half)

    def count(self, facts: "_Facts") -> Sums:
        """Count the documents in each half."""
        return {"documents": torch.bincount(facts.half, minlength=len(HALVES))}

    def observe(self, facts: "_Facts", *attentions: Attention) -> Sums:
        """Sum over the documents of each half the mean divergence of each pair of heads.

        If `rows` limits the rows, also sum the variance of this mean over all documents.
        """
        weights = [attention.weights() for attention in attentions]
        layers, heads = len(weights), weights[0].shape[1]
        distance = np.zeros((len(HALVES), layers * heads, layers * heads))
        variance = np.zeros_like(distance[0])
        for document, (rows, keys, length, half) in enumerate(facts.documents):
            maps = torch.cat([layer[document][:, rows][..., keys] for layer in weights]).detach().cpu().numpy()
            mean_distance, mean_variance = _average(maps, length)
            distance[half] += mean_distance
            variance += mean_variance
        sums = {"distance": distance.swapaxes(0, 1)} | ({} if self.rows is None else {"variance": variance})
        by_head = {name: values.reshape(layers, heads, *values.shape[1:]) for name, values in sums.items()}
        return {name: torch.from_numpy(values).to(weights[0].device) for name, values in by_head.items()}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return the mean distance of each pair of heads, on all documents and by half; with `rows`, also its error."""
        documents = counts["documents"]
        layers, heads, *_ = sums["distance"].shape
        halves = sums["distance"].reshape(layers, heads, len(HALVES), layers, heads).transpose(2, 0, 1, 3, 4)
        by_half = mean(halves.clip(0), documents[:, None, None, None, None])
        what = "Jensen-Shannon divergence of the attention of two heads"
        values: dict[str, Described] = {
            "js_distance": (halves.sum(0).clip(0) / documents.sum(), PAIR, what, "nats"),
            "js_distance_by_half": (by_half, ("half", *PAIR), f"{what}, on half of the documents", "nats"),
            "js_distance_count": (documents.sum(), (), "documents on which heads are compared", "documents"),
        }
        if self.rows is not None:
            error = BOUND * np.sqrt(sums["variance"].reshape(layers, heads, layers, heads)) / documents.sum()
            what = (
                f"half the width of the 95 % interval of js_distance on these documents, from {self.rows} rows of each"
            )
            values["js_distance_error"] = (error, PAIR, what, "nats")
        coords = {"layer_other": range(1, layers + 1), "head_other": range(1, heads + 1), "half": list(HALVES)}
        return xr.Dataset(describe(values, CLARK), coords=coords)

    def _choose(self, document: Document, real: Tensor) -> Int[Tensor, " row"]:
        """Return the rows of a document in which the heads are compared."""
        rows = real.nonzero()[:, 0]
        if self.rows is None or len(rows) <= self.rows:
            return rows
        digest = hashlib.sha256(f"{self.seed} {document.origin.id}".encode()).digest()
        chosen = np.random.default_rng(int.from_bytes(digest[:8])).choice(len(rows), self.rows, replace=False)
        return rows[torch.from_numpy(np.sort(chosen)).to(rows.device)]


@dataclass(frozen=True)
class HeadDistancesBefore(Reducer):
    """How far each head's attention is from that of each head of the model before: their Jensen-Shannon divergence.

    It is the mean over the queries of a document, and then over documents. Every head is compared with every head of
    the model before, so that the values show which head has become which, or that heads have changed places.
    """

    name = "head_distances_before"
    scope = "pass"
    models = 2
    max_tokens = 512
    on_sample = True
    by_name = True

    def prepare(self, batch: Batch, attention_type: str) -> list[tuple[Int[Tensor, " _"], Int[Tensor, " _"]]]:
        """Return the queries and keys of each document that are not padding."""
        sides = batch.queries(attention_type).real, batch.keys(attention_type).real
        return [(rows.nonzero()[:, 0], keys.nonzero()[:, 0]) for rows, keys in zip(*sides, strict=True)]

    def count(self, facts: list[tuple[Tensor, Tensor]]) -> Sums:
        """Count the documents."""
        return {"documents": torch.tensor(len(facts))}

    def observe(self, facts: list[tuple[Tensor, Tensor]], *attentions: Attention) -> Sums:
        """Sum over documents the mean divergence between each head and each head of the model before."""
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
        """Return the mean distance between each head and each head of the model before."""
        layers, heads, *_ = sums["distance"].shape
        distance = sums["distance"].reshape(layers, heads, layers, heads).clip(0) / counts["documents"]
        what, dims = "Jensen-Shannon divergence of a head", ("layer", "head", "layer_before", "head_before")
        values: dict[str, Described] = {
            "js_distance_before": (distance, dims, f"{what} and one of the model before", "nats"),
            "js_distance_before_count": (counts["documents"], (), "documents on which heads are compared", "documents"),
        }
        coords = {"layer_before": range(1, layers + 1), "head_before": range(1, heads + 1)}
        return xr.Dataset(describe(values, CLARK), coords=coords)


@dataclass(frozen=True, eq=False)
class _Facts:
    """The facts of a batch that need no attention.

    Attributes:
        rows: The queries of each document in which the heads are compared.
        keys: The keys of each document that are not padding.
        lengths: The number of queries of each document.
        half: The half of the corpus of each document.
    """

    rows: list[Int[Tensor, " _"]]
    keys: list[Int[Tensor, " _"]]
    lengths: list[int]
    half: Int[Tensor, " document"]

    @property
    def documents(self) -> "zip[tuple[Tensor, Tensor, int, int]]":
        """The rows, the keys, the length and the half of each document."""
        return zip(self.rows, self.keys, self.lengths, self.half.tolist(), strict=True)


def _average(
    maps: Float[np.ndarray, "head row key"], length: int
) -> tuple[Float64[np.ndarray, "head head"], Float64[np.ndarray, "head head"] | float]:
    """Return the mean divergence of each pair of heads over rows, and the mean's variance: 0 if no row is left out."""
    count, parts = maps.shape[1], compare_rows(maps)
    if count == length:
        return np.sum([part.sum(-1) for part in parts], axis=0) / count, 0.0
    rows = np.concatenate(list(parts), axis=-1)
    # Rows are chosen without replacement, so a sample of all rows has no error.
    return rows.mean(-1), rows.var(-1, ddof=1) / count * (1 - count / length)
