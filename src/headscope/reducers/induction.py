"""Heads that attend to an earlier occurrence of the same token, or to the token after it (induction heads).

Olsson et al. 2022, *In-context learning and induction heads*, and Wang et al. 2023 (duplicate token heads).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Int
from torch import Tensor

from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch, Tokens
from headscope.corpora.summary import CorpusSummary
from headscope.reducers.reducer import Reducer, Sums
from headscope.reducers.support.folds import FoldAssignment, total_by_fold
from headscope.reducers.support.ratios import score_table
from headscope.score import Rival, Score

OLSSON = "Olsson et al. 2022, section on prefix matching"

MATCHES = ("induction", "duplicate")
"""The keys to which a repeated token should attend: the token after its last earlier occurrence, or the occurrence."""

FARTHEST = 64
"""The largest distance, in tokens, that the rule with a fixed distance looks back."""

MASS = Score(
    "match_mass",
    "Tokens that come again",
    "the mean attention from a token that is earlier in its text too, to that place (duplicate) or to the token "
    "after it (induction)",
    numerator=("fold_match_mass",), denominator=("fold_match",),
    rivals=(
        Rival("back", "best fixed distance", ("fold_match_back",), ("fold_match",), ("back",), "{back} tokens back"),
        Rival("random", "a random earlier token", ("fold_match_random",), ("fold_match",)),
    ),
    items="tokens", rows="matches", attends="token", roles={match: match for match in MATCHES},
)  # fmt: skip


@dataclass(frozen=True)
class Induction(Reducer):
    """How much each head attends from a token that comes again to what followed it, and to where it stood.

    If a token occurs earlier in its text, its last earlier occurrence counts. ``match_mass`` is the mean attention to
    this occurrence (row ``duplicate``) and to the token after it (row ``induction``, prefix matching), over all such
    tokens of all texts. If the token after the occurrence is the attending token, or a special token, it does not
    count. Tokens are compared as the model reads them. On the corpus ``repeats`` the row ``induction`` is
    ``A[i, i - n + 1]`` in the second half of ``[r, r]``, where r has n random tokens, and n differs from text to text.

    The rivals of a head do not know the tokens: the best fixed distance back, and a random earlier token, which is
    right with a probability of one over the number of earlier tokens.

    Attributes:
        fold_assignment: The assignment of documents to folds; sums are kept by fold.
    """

    fold_assignment: FoldAssignment = field(default_factory=FoldAssignment)

    name = "induction"
    scope = "rows"
    scores = (MASS,)
    samples_queries = True

    @classmethod
    def supports(cls, summary: CorpusSummary) -> bool:
        """Return True if a corpus marks tokens that it repeats on purpose.

        If a user names the reducer, it measures any corpus.
        """
        return bool(summary.spans.get("repeat"))

    def prepare(self, batch: Batch, attention_type: str) -> "_Facts":
        """Return for each query the key of each of `MATCHES`, and the distances that the rules need."""
        queries, keys = batch.queries(attention_type), batch.keys(attention_type)
        matches = [find_matches(queries, keys, row) for row in range(len(batch.documents))]
        device = queries.ids.device
        place = torch.tensor(matches, dtype=torch.long, device=device)
        position = keys.position.gather(1, place.clamp_min(0).flatten(1)).view_as(place)
        back = queries.position[..., None] - position
        earlier = (queries.position - keys.position[:, :1]).clamp_min(1)
        return _Facts(
            place.clamp_min(0), place >= 0, back, earlier, self.fold_assignment.folds(batch.documents, device)
        )

    def count(self, facts: "_Facts") -> Sums:
        """Count the repeated tokens and the hits of each rule, for each match and fold."""
        matches = facts.is_matched.double()
        steps = torch.arange(1, FARTHEST + 1, device=matches.device)
        back = (facts.back[..., None] == steps).double() * matches[..., None]
        return {
            "fold_match": total_by_fold(matches.sum(1), facts.fold).T.long(),
            "fold_match_back": total_by_fold(back.sum(1), facts.fold).movedim(0, 1).long(),
            "fold_match_random": total_by_fold((matches / facts.earlier[..., None]).sum(1), facts.fold).T,
        }

    def observe(self, facts: "_Facts", attention: Attention) -> Sums:
        """Sum by head, match and fold the attention from each repeated token to the key of the match."""
        rows = attention.rows
        seen = attention.at(facts.place[:, rows]).where(facts.is_matched[:, None, rows], 0)
        # Convert to float64 in chunks: a long text in one piece would take as much memory as its queries and keys.
        some = attention.batch.blocks.summed_rows
        by_text = torch.stack([chunk.double().sum(2) for chunk in torch.split(seen, some, 2)]).sum(0)
        return {"fold_match_mass": total_by_fold(by_text, facts.fold).permute(1, 2, 0)}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return the mean attention of each head to each match (NaN without repeated tokens), and the sums by fold."""
        rows, unit = {"match": list(MATCHES)}, self.fold_assignment.unit
        table = score_table(MASS, {**sums, **counts}, rows, source=OLSSON, units="share of attention", fold_unit=unit)
        return table.assign_coords(back=list(range(1, FARTHEST + 1)))


@dataclass(frozen=True, eq=False)
class _Facts:
    """The facts of a batch that need no attention.

    Attributes:
        place: The key of each query for each match; any key if there is none.
        is_matched: Whether each query has a key for each match.
        back: The distance in tokens from each query back to this key.
        earlier: The number of tokens before each query.
        fold: The fold of each document.
    """

    place: Int[Tensor, "batch query match"]
    is_matched: Bool[Tensor, "batch query match"]
    back: Int[Tensor, "batch query match"]
    earlier: Int[Tensor, "batch query"]
    fold: Int[Tensor, " batch"]


def find_matches(queries: Tokens, keys: Tokens, row: int) -> list[list[int]]:
    """Return for each query of the text `row` of a batch the index of the key of each of `MATCHES`; -1 for no key.

    Special tokens and padding have no matches and are not matches.
    """
    ids, positions, words = (side[row].tolist() for side in (keys.ids, keys.position, keys.word))
    tokens = zip(*(side[row].tolist() for side in (queries.ids, queries.position, queries.word)), strict=True)
    last: dict[int, int] = {}  # the last place of each token before the query
    ahead, matches = 0, []
    for token, position, word in tokens:
        while ahead < len(ids) and positions[ahead] < position:
            if words[ahead] >= 0:
                last[ids[ahead]] = ahead
            ahead += 1
        place = last.get(token, -1) if word >= 0 else -1
        behind = place + 1
        follows = place >= 0 and behind < len(ids) and words[behind] >= 0 and positions[behind] < position
        matches.append([behind if follows else -1, place])
    return matches
