"""Permutations of the gold, and the scores that heads reach without knowing the gold.

A link moves to another place in its document where it has the same length. The labels of a text's chains rotate along
its mentions, and a scope rotates along the words of its sentence. All heads are scored on the same permutations. So the
best score of any head in a permutation is the score that the best of all heads reaches by chance: the maximum statistic
of Westfall and Young (1993), which makes no assumption about how heads depend on one another.

In the permutations a head keeps what one habit earns it: to attend a number of words away, to near mentions of any
chain, or to cues from anywhere. A small p-value says that the head does better than that, not that it knows grammar.
Other habits are lost:

* Mentions that are spelt alike mostly belong together. The rule to take the nearest earlier mention with the same head
  word is right for 0.62 of 855 mentions of 20 texts of LitBank, and in the permutations for 0.27 (p 0.001). Compare
  ``antecedent_head_match``. (The nearest mention of any kind is right for 0.52, and in the permutations too.)
* Scopes mostly begin after the cue. Of the words right after a cue in *SEM 2012 (dev) 0.93 are in its scope, and in the
  permutations 0.48 (p 0.001). Compare the fixed offsets.
* Links join certain words, and untrained heads prefer certain words too: on 500 sentences of UD EWT (dev) minilm has 49
  of 55 relations with ``best_q`` below 0.05, and with random weights it has 10. Compare the untrained model.

Links and scopes are permuted one by one. If items of the gold depend on one another, chance varies more than the
permutations, and the p-values are too small. Chains are permuted text by text, and what goes together in a text stays
together: with chains shifted along the mentions of 11 texts, or assigned at random, so that no head can know them,
``antecedent_best_p`` was at most 0.05 in 4 and 4 of 100 simulations (LitBank), and in 4 and 6 (OntoGUM).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Int, Int64, Num
from torch import Tensor
from torch.nn.functional import embedding_bag

from headscope import heads
from headscope.corpora.document import Document
from headscope.errors import HeadscopeError

PERMUTATIONS = 999
"""The usual and smallest default number of permutations, with which the least p-value is one thousandth."""

MOST = 5000
"""The largest default number of permutations, since memory holds the hits of each head, row and permutation."""

LEVEL = 0.05
"""The false discovery rate that one row must be able to pass on its own."""

SOURCE = "Westfall and Young 1993 (maximum statistic)"

R = TypeVar("R")


@dataclass(frozen=True)
class Permutations:
    """Random places for the annotation of a document, which depend only on the seed and the name of the document.

    A copy is permuted in the same way as its original (`headscope.corpora.originals`).

    Attributes:
        count: The number of permutations; 0 for none.
        seed: The seed of the permutations.

    Raises:
        HeadscopeError: The number of permutations is negative.
    """

    count: int = PERMUTATIONS
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise an error if the number of permutations is negative."""
        if self.count < 0:
            raise HeadscopeError(
                f"{self.count} permutations were asked for; ask for 0 (no p-values) or more, such as {PERMUTATIONS}."
            )

    @classmethod
    def for_rows(cls, rows: int) -> "Permutations":
        """Return enough permutations for one of `rows` rows to stand out alone, from 999 to 5000.

        The p-value of this row must be below 0.05 divided by the number of rows (Benjamini and Hochberg 1995), and the
        smallest p-value that n permutations allow is 1 / (n + 1).
        """
        return cls(min(max(PERMUTATIONS, round(rows / LEVEL)), MOST))

    def choose(self, document: Document, choices: Sequence[int]) -> Int[np.ndarray, "item permutation"]:
        """Choose at random one of the `choices` places of each item of a document, for each permutation."""
        digest = hashlib.sha256(f"{self.seed} {document.origin.id}".encode()).digest()
        uniform = np.random.default_rng(int.from_bytes(digest[:8])).random((len(choices), self.count))
        places: np.ndarray = uniform * np.array(choices, dtype=float).reshape(-1, 1)
        return places.astype(np.int32)


@dataclass(frozen=True, eq=False)
class PermutedItems:
    """The items of a batch in all permutations; each item takes one of the possible places.

    Attributes:
        place: The place of each item in each permutation, grouped by label and then by permutation.
        start: The index in `place` at which each group starts.
        labels: The number of labels.
    """

    place: Int[Tensor, " taken"]
    start: Int[Tensor, " group"]
    labels: int

    @classmethod
    def group(
        cls,
        places: Int[np.ndarray, "item permutation"],
        label: Int[np.ndarray, " item"],
        labels: int,
        device: torch.device,
    ) -> "PermutedItems":
        """Return the items, each with a label, grouped by label and permutation."""
        size = np.bincount(label, minlength=labels)
        # There are millions of places: use 32 bits, and fill them label by label, since a copy would take as much
        # again.
        number = np.int32 if places.size <= np.iinfo(np.int32).max else np.int64
        ends, permutations = size.cumsum()[:-1], places.shape[1]
        counts = np.repeat(size, permutations)
        start = (counts.cumsum() - counts).astype(number)
        place = np.empty(places.size, dtype=number)
        of_labels = np.split(np.argsort(label, kind="stable"), ends)
        for part, items in zip(np.split(place, ends * permutations), of_labels, strict=True):
            part.reshape(permutations, len(items))[:] = places[items].T
        return cls(torch.from_numpy(place).to(device), torch.from_numpy(start).to(device), labels)

    def count_hits(self, hits: Bool[Tensor, "place any"]) -> Int64[Tensor, "label permutation any"]:
        """Count the items of each label that are right in each permutation, from the hits at each place."""
        # Floats hold whole numbers exactly up to 2 ** 24, and adding their rows is many times as fast.
        count = embedding_bag(self.place, hits.float(), self.start, mode="sum")
        return count.view(self.labels, -1, hits.shape[1]).long()


def with_permutations(reducer: R, permutations: int | None) -> R:
    """Return the reducer with a number of permutations; unchanged if the number is None or it permutes nothing."""
    given: Any = reducer
    if permutations is None or not isinstance(getattr(given, "permutations", None), Permutations):
        return reducer
    changed: R = replace(given, permutations=Permutations(permutations))
    return changed


@dataclass(frozen=True, eq=False)
class Permuted:
    """Scores compared with the scores in permutations.

    Attributes:
        mean: The mean score over the permutations, in the shape of the scores.
        z: The score minus this mean, in standard deviations of the permutations, or in hits if the deviation is less
            than one hit.
        p: The share of the permutations with the score or a larger one; the score itself counts as a permutation.
        best: For each row and permutation, the largest z of any head.
    """

    mean: Float[np.ndarray, "layer head *choice row"]
    z: Float[np.ndarray, "layer head *choice row"]
    p: Float[np.ndarray, "layer head *choice row"]
    best: Float[np.ndarray, "row permutation"]

    @classmethod
    def compare(
        cls,
        score: Num[np.ndarray, "layer head *choice row"],
        permuted: Num[np.ndarray, "layer head *choice part permutation"],
        pooled: Sequence[Sequence[int]],
    ) -> "Permuted":
        """Compare the scores of each row with its permuted scores, which are the sums of the parts that the row pools.

        The score itself counts as one more permutation. For a head that knows nothing it is one of them, so the
        p-values hold for any number of permutations.
        """
        parts = []
        for row, pool in enumerate(pooled):
            values = np.concatenate([score[..., row, None], permuted[..., list(pool), :].sum(-2)], axis=-1)
            # In C order, since the order in which numpy adds floats depends on the layout.
            values = values.astype(float, order="C")
            mean, deviation = values.mean(-1, keepdims=True), values.std(-1, keepdims=True)
            # Otherwise one hit of a head with one hit in a thousand permutations would be 30 deviations, and hide other
            # heads.
            z = (values - mean) / np.maximum(deviation, 1)
            # A head without a score is not compared.
            share = np.where(np.isnan(values[..., 0]), np.nan, (values >= values[..., :1]).mean(-1))
            parts.append((values[..., 1:].mean(-1), z[..., 0], share, z[..., 1:].reshape(-1, z.shape[-1] - 1).max(0)))
        mean, z, p, best = zip(*parts, strict=True)
        return cls(np.stack(mean, -1), np.stack(z, -1), np.stack(p, -1), np.stack(best))

    def variables(self, prefix: str, dims: Sequence[str], count: np.ndarray, units: str) -> dict[str, xr.Variable]:
        """Return the variables ``PREFIX_permuted``, ``PREFIX_z``, ``PREFIX_p`` and ``PREFIX_z_permuted`` of a table.

        The mean score is a share of the count of its row, which is the last dimension. If the count is 0, nothing is
        tested, and all values are NaN.
        """
        deviations, largest = "standard deviations, of one hit at least", "the largest z of all heads in a permutation"
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = self.mean / count
        tested = np.asarray(count > 0)
        z, p = (np.where(tested, data, np.nan) for data in (self.z, self.p))
        best = np.where(tested.reshape(-1, tested.shape[-1]).T.any(1, keepdims=True), self.best, np.nan)
        values: dict[str, heads.Described] = {
            f"{prefix}_permuted": (mean, dims, "mean score over the permutations of the gold", units),
            f"{prefix}_z": (z, dims, "score above the mean over the permutations", deviations),
            f"{prefix}_p": (p, dims, "share of the permutations that score as much; not corrected", "probability"),
            f"{prefix}_z_permuted": (best, (dims[-1], "permutation"), largest, deviations),
        }
        return heads.describe(values, SOURCE)
