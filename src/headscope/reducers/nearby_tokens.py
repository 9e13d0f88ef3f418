"""Heads that attend to the previous token, to the next token, or to a token a few tokens away.

Clark et al. 2019, section 3.1, and Elhage et al. 2021, *A mathematical framework for transformer circuits*.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Int
from torch import Tensor

from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch
from headscope.heads import SHARE
from headscope.reducers.reducer import Reducer, Sums
from headscope.reducers.support.folds import FoldAssignment, total_by_fold
from headscope.reducers.support.ratios import score_table
from headscope.score import Rival, Score

CLARK = "Clark et al. 2019, section 3.1"

FARTHEST = 4
"""The largest distance in tokens that has a row of its own."""

NEARBY: Mapping[str, int] = {
    "previous token": -1,
    **{f"{distance} tokens back": -distance for distance in range(2, FARTHEST + 1)},
    "next token": 1,
    **{f"{distance} tokens ahead": distance for distance in range(2, FARTHEST + 1)},
}
"""The rows of the table, each with the position of the nearby token minus the position of the query."""

SIDES = {"a token nearer": -1, "a token farther": 1}
"""The two neighbours of a nearby token, each with the number of tokens by which it is farther from the query."""

DISTANCES = range(-FARTHEST - 1, FARTHEST + 2)
_OWN = [DISTANCES.index(distance) for distance in NEARBY.values()]
_BESIDE = [
    [place + step * (1 if distance > 0 else -1) for place, distance in zip(_OWN, NEARBY.values(), strict=True)]
    for step in SIDES.values()
]
"""The indices in `DISTANCES` of the nearby tokens, and of their neighbours on each side."""

MASS = Score(
    "nearby_mass",
    "Tokens nearby",
    "the mean attention to the token at a fixed distance, from all tokens that have one there",
    numerator=("fold_nearby_mass",), denominator=("fold_nearby",),
    rivals=(
        Rival("uniform", "uniform attention", ("fold_nearby_uniform",), ("fold_nearby",)),
        Rival(
            "beside", "attention of the same head next to it", ("fold_nearby_beside",), ("fold_nearby",),
            ("beside",), "the same head {beside}",
        ),
    ),
    items="tokens", rows="tokens nearby", attends="token", roles={"previous token": "previous token"},
)  # fmt: skip


@dataclass(frozen=True)
class NearbyTokens(Reducer):
    """How much each head attends to the token before, to the token after, and to those up to four tokens away.

    ``nearby_mass`` is the mean attention to the token at that distance, over all tokens of all texts that have a token
    there. In a decoder without an encoder, the rows of tokens ahead are empty.

    A head that looks at a fixed distance gives the token there more attention than uniform attention would (1/i for
    token i of a decoder), and more than it gives the two neighbours of that token: attention to everything nearby does
    not depend on one distance. The stronger neighbour is chosen in the same way as other rivals are. If the text ends
    before a neighbour, the neighbour counts as having the same attention as the token: the second token of a text has
    only one token before it, which says nothing about distances.

    Attributes:
        fold_assignment: The assignment of documents to folds; sums are kept by fold.
    """

    fold_assignment: FoldAssignment = field(default_factory=FoldAssignment)

    name = "nearby_tokens"
    scope = "rows"
    scores = (MASS,)
    samples_queries = True
    by_name = True

    def prepare(self, batch: Batch, attention_type: str) -> "_Facts":
        """Return the key at each of `DISTANCES` from each query, and whether the query can see a token there."""
        queries, keys = batch.queries(attention_type), batch.keys(attention_type)
        position = queries.position[..., None] + torch.tensor(DISTANCES, device=queries.ids.device)
        # The start token of a decoder precedes the text.
        there = (queries.real & (queries.position >= 0))[..., None] & (position >= 0)
        there &= position < batch.encoder.real.sum(1)[:, None, None]
        if batch.is_causal(attention_type):
            there &= position <= queries.position[..., None]
        place = (position - keys.position[:, :1, None]).clamp(0, keys.length - 1)
        return _Facts(place, there, self.fold_assignment.folds(batch.documents, queries.ids.device))

    def count(self, facts: "_Facts") -> Sums:
        """Count by row and fold the queries that can see a token at the distance of the row."""
        return {"fold_nearby": total_by_fold(facts.there[..., _OWN].sum(1), facts.fold).T.long()}

    def observe(self, facts: "_Facts", attention: Attention) -> Sums:
        """Sum by head, row and fold the attention to the nearby token and its two neighbours, and uniform attention."""
        there, uniform = facts.there[:, attention.rows], 1 / attention.visible().clamp_min(1)
        seen = attention.at(facts.place[:, attention.rows]).where(there[:, None], 0)
        # Convert to float64 in chunks: a long text in one piece would take as much memory as its queries and keys.
        some = attention.batch.blocks.summed_rows
        sides = torch.split(there, some, 1), torch.split(uniform, some, 1)
        chunks = zip(torch.split(seen, some, 2), *sides, strict=True)
        by_text = []
        for masses, inside, even in chunks:
            own = inside[..., _OWN].double()
            compared = masses[..., [_OWN, *_BESIDE]].double()
            compared = compared.where(inside[:, None, :, [_OWN, *_BESIDE]], compared[..., :1, :])
            parts = torch.einsum("bhqcr,bqr->bhrc", compared, own)
            evenly = torch.einsum("bq,bqr->br", even.double(), own)[:, None, :, None].expand(-1, attention.heads, -1, 1)
            by_text.append(torch.cat([parts, evenly], dim=-1))
        mass, *beside, even = total_by_fold(torch.stack(by_text).sum(0), facts.fold).permute(3, 1, 2, 0)
        return {
            "fold_nearby_mass": mass,
            "fold_nearby_beside": torch.stack(beside, dim=-1),
            "fold_nearby_uniform": even,
        }

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return the mean attention of each head to each nearby token (NaN without tokens), and the sums by fold."""
        rows, unit = {"nearby": list(NEARBY)}, self.fold_assignment.unit
        table = score_table(MASS, {**sums, **counts}, rows, source=CLARK, units=SHARE, fold_unit=unit)
        return table.assign_coords(beside=list(SIDES))


@dataclass(frozen=True, eq=False)
class _Facts:
    """The facts of a batch that need no attention.

    Attributes:
        place: The key at each of `DISTANCES` from each query; any key if there is none.
        there: Whether the query can see a token of the text at each distance.
        fold: The fold of each document.
    """

    place: Int[Tensor, "batch query distance"]
    there: Bool[Tensor, "batch query distance"]
    fold: Int[Tensor, " batch"]
