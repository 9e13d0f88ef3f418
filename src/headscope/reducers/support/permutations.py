"""Gold that is permuted to where it does not belong: the scores of heads that know nothing of it.

A link goes to another place in its document where it has the same length, the labels of a text's chains go round its
mentions, and a scope goes round the words of its sentence. All heads are scored on the same permutations, and
therefore the best score that any of them has in a permutation is what the best of all heads reaches by chance: the
maximum statistic of Westfall and Young (1993), which needs no assumption of how heads depend on one another.

In the permutations a head keeps what one habit earns it: to look so many words away, at near mentions of whatever
chain, at cues from wherever. A small p-value says that it does better than that, not that it knows grammar. Other
habits are lost:

* Mentions that are spelt alike mostly belong together. To look at the nearest earlier mention with the same head word
  is right for 0.62 of 855 mentions of 20 texts of LitBank, and in the permutations for 0.27 (p 0.001). Compare
  ``antecedent_head_match``. (To look at the nearest one of any is right for 0.52, and in the permutations too.)
* Scopes mostly begin behind the cue. Of the words just behind a cue in *SEM 2012 (dev) 0.93 are in its scope, and in
  the permutations 0.48 (p 0.001). Compare the fixed offsets.
* Links join certain words, and heads that nobody trained like certain words too: on 500 sentences of UD EWT (dev)
  minilm has 49 of 55 relations with ``best_q`` below 0.05, and with random weights it has 10. Compare the untrained
  model.

Links and scopes are permuted one by one. Where gold goes together more than that, chance varies more than the
permutations, and the p-values are too small. Chains are permuted text by text, and all that goes together in them stays
so: with chains shifted along the mentions of 11 texts, or assigned anew, so that no head can know them,
``antecedent_best_p`` was at most 0.05 in 4 and 4 of 100 worlds (LitBank), and in 4 and 6 (OntoGUM).
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
"""As many as usual, and the fewest that are made unasked: the smallest p-value is one thousandth."""

MOST = 5000
"""The most that are made unasked: hits are kept for each head, row and permutation, and all of them fill the memory."""

LEVEL = 0.05
"""The false discovery rate below which one row must be able to come alone."""

SOURCE = "Westfall and Young 1993 (maximum statistic)"

R = TypeVar("R")


@dataclass(frozen=True)
class Permutations:
    """Random places for what is annotated on a document; its name decides, so that no order or batch can change them.

    A copy is permuted as its original is (`headscope.corpora.originals`).

    Attributes:
        count: how often everything is permuted; 0 for not at all.
        seed: of the permutations.

    Raises:
        HeadscopeError: the number of permutations is negative.
    """

    count: int = PERMUTATIONS
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse less than nothing."""
        if self.count < 0:
            raise HeadscopeError(
                f"{self.count} permutations were asked for; ask for 0 (no p-values) or more, such as {PERMUTATIONS}."
            )

    @classmethod
    def for_rows(cls, rows: int) -> "Permutations":
        """As many as let one row of so many stand out alone, but 999 at least and 5000 at most.

        Its p-value must be below 0.05 divided by the number of rows (Benjamini and Hochberg 1995), and the smallest
        that n permutations allow is 1 / (n + 1).
        """
        return cls(min(max(PERMUTATIONS, round(rows / LEVEL)), MOST))

    def choose(self, document: Document, choices: Sequence[int]) -> Int[np.ndarray, "item permutation"]:
        """The place of each item of a document in each permutation, of so many that it can have, all equally likely."""
        digest = hashlib.sha256(f"{self.seed} {document.origin.id}".encode()).digest()
        uniform = np.random.default_rng(int.from_bytes(digest[:8])).random((len(choices), self.count))
        places: np.ndarray = uniform * np.array(choices, dtype=float).reshape(-1, 1)
        return places.astype(np.int32)


@dataclass(frozen=True, eq=False)
class PermutedItems:
    """Items of a batch in all permutations, each of which takes one of the places where such items may stand.

    Attributes:
        place: of each item in each permutation, its place; grouped by label, in each of these by permutation.
        start: where each group begins.
        labels: the number of labels.
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
        """The items, each of a label, which take a place in each permutation."""
        size = np.bincount(label, minlength=labels)
        # There are millions: in 32 bits, and laid out label by label, since a copy of all would take as much again.
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
        """The items of each label that are right in each permutation, from what is right at each place."""
        # Floats hold such numbers exactly up to 2 ** 24, and their rows are added many times as fast.
        count = embedding_bag(self.place, hits.float(), self.start, mode="sum")
        return count.view(self.labels, -1, hits.shape[1]).long()


def with_permutations(reducer: R, permutations: int | None) -> R:
    """The same reducer with so many permutations: None for its own number, and what knows no gold stays as it is."""
    given: Any = reducer
    if permutations is None or not isinstance(getattr(given, "permutations", None), Permutations):
        return reducer
    changed: R = replace(given, permutations=Permutations(permutations))
    return changed


@dataclass(frozen=True, eq=False)
class Permuted:
    """Scores beside those of the permutations.

    Attributes:
        mean: over the permutations; the shape of the scores.
        z: how many standard deviations of the permutations a score lies above their mean; where they vary less than by
            one hit, how many hits.
        p: the share of the permutations, the score itself among them, that are at least as large.
        best: for each row and permutation, the largest z of any head.
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
        """The comparison of each row of the scores with the permutations of the parts that are pooled in it.

        The score itself counts as one permutation more: where a head knows nothing, it is one of them, so the p-values
        hold at any number of permutations.
        """
        parts = []
        for row, pool in enumerate(pooled):
            values = np.concatenate([score[..., row, None], permuted[..., list(pool), :].sum(-2)], axis=-1)
            # In one layout, since the order in which numpy adds floats follows it.
            values = values.astype(float, order="C")
            mean, deviation = values.mean(-1, keepdims=True), values.std(-1, keepdims=True)
            # One hit of a head that has one in a thousand permutations would be 30 deviations, and hide those of
            # others.
            z = (values - mean) / np.maximum(deviation, 1)
            # A head that has no score is not compared.
            share = np.where(np.isnan(values[..., 0]), np.nan, (values >= values[..., :1]).mean(-1))
            parts.append((values[..., 1:].mean(-1), z[..., 0], share, z[..., 1:].reshape(-1, z.shape[-1] - 1).max(0)))
        mean, z, p, best = zip(*parts, strict=True)
        return cls(np.stack(mean, -1), np.stack(z, -1), np.stack(p, -1), np.stack(best))

    def variables(self, prefix: str, dims: Sequence[str], count: np.ndarray, units: str) -> dict[str, xr.Variable]:
        """The variables ``PREFIX_permuted``, ``PREFIX_z``, ``PREFIX_p`` and ``PREFIX_z_permuted`` of a table.

        The mean score is a share of the count of its row, which is the last dimension. Where the count is 0, there is
        nothing to test, and all are NaN.
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
