"""Attention sinks: tokens that get much of a head's attention from all over a text.

Gu et al. 2025, *When attention sink emerges in language models*, section 3; for delimiters, Sun et al. 2024, *Massive
activations in large language models*.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch, Tokens
from headscope.heads import SHARE, describe
from headscope.reducers.reducer import Reducer, Sums
from headscope.reducers.support.folds import FoldAssignment, total_by_fold
from headscope.reducers.support.ratios import mean, score_table
from headscope.score import Rival, Score

GU = "Gu et al. 2025, section 3"

THRESHOLD = 0.3
"""The mean attention above which a token is a sink (Gu et al. 2025, section 3)."""

SHORTEST = 16
"""The least number of tokens that a text must have to count; in a decoder, tokens before the sink do not count.

In a very short text uniform attention passes the threshold.
"""

FIRST = ("first token", "second token", "third token")
SINKS = (*FIRST, "first separator", "first full stop or comma")
"""The tokens that may be sinks; the last two are never the first token of the text."""

SHARE_OF_TEXTS = Score(
    "sink_share",
    "Attention sinks",
    f"the share of texts in which the token gets more than {THRESHOLD} of the head's attention, on average over all "
    "tokens that can see it",
    numerator=("fold_sink_texts",), denominator=("fold_sink",),
    rivals=(
        Rival("uniform", "uniform attention", ("fold_sink_uniform",), ("fold_sink",)),
        Rival("beside", "the same head and the token next to it", ("fold_sink_beside",), ("fold_sink",)),
    ),
    items="texts", rows="tokens that may be sinks", label="sink: {}", attends="token",
    roles={FIRST[0]: "sink"}, role_from=0.5, role_rank=1,
)  # fmt: skip


@dataclass(frozen=True)
class Sinks(Reducer):
    """In how many texts each head has an attention sink: at one of the first tokens, or at the first delimiter.

    A token is a sink of a head in a text if its mean attention, over all tokens that can see it, is above 0.3 (Gu et
    al. 2025, who count the tokens from the sink on, itself included). ``sink_share`` is the share of such texts; Gu et
    al. take its mean over all heads. ``sink_mass`` is the mean attention itself, as a mean over texts. A text counts if
    it has at least 16 tokens (in a decoder, from the sink on).

    A head with a sink passes the threshold more often than uniform attention does, and more often at this token than at
    the token after it (the token before it, if it is the last).

    Attributes:
        fold_assignment: The assignment of documents to folds; sums are kept by fold.
    """

    fold_assignment: FoldAssignment = field(default_factory=FoldAssignment)

    name = "sinks"
    scope = "layer"
    scores = (SHARE_OF_TEXTS,)
    by_name = True

    def prepare(self, batch: Batch, attention_type: str) -> "_Facts":
        """Return the tokens that may be sinks, their neighbours, and the queries over which attention is averaged."""
        queries, keys = batch.queries(attention_type), batch.keys(attention_type)
        place, length = _find_places(keys), keys.real.sum(1, keepdim=True)
        beside = place + torch.where(place + 1 < length, 1, -1)
        places = torch.cat([place, beside.where(place >= 0, -1)], dim=1)
        sees = queries.real[..., None] & (places >= 0)[:, None]
        if attention_type == "decoder":
            sees &= queries.position[..., None] >= (keys.position[:, :1] + places)[:, None]
        shares = sees / sees.sum(1, keepdim=True).clamp_min(1).double()
        columns = torch.arange(keys.length, device=keys.ids.device)[None, :, None] == places[:, None]
        # Count by the text itself, so that all attention types of a model count the same texts.
        in_text, tokens = _find_places(batch.encoder), batch.encoder.real.sum(1, keepdim=True)
        is_causal = batch.decoder is not None or attention_type == "decoder"
        counts = (in_text >= 0) & (tokens - (in_text if is_causal else 0) >= SHORTEST)
        folds = self.fold_assignment.folds(batch.documents, keys.ids.device)
        return _Facts(columns.float(), shares, counts, folds)

    def count(self, facts: "_Facts") -> Sums:
        """Count by fold the texts that have each of `SINKS` and are long enough for it."""
        return {"fold_sink": total_by_fold(facts.counts.long(), facts.fold).T}

    def observe(self, facts: "_Facts", attention: Attention) -> Sums:
        """Count by head and fold the texts in which each of `SINKS` is a sink, and sum its mean attention over texts.

        Count also the texts in which its neighbour passes the threshold, and the texts in which it would pass the
        threshold under uniform attention.
        """
        seen = attention.average(facts.columns).where(attention.queries.real[:, None, :, None], 0)
        some = attention.batch.blocks.summed_rows
        chunks = zip(torch.split(seen, some, 2), torch.split(facts.shares, some, 1), strict=True)
        masses = torch.stack([torch.einsum("bhqt,bqt->bht", chunk.double(), share) for chunk, share in chunks]).sum(0)
        itself, beside = masses.chunk(2, dim=-1)
        even = torch.einsum(
            "bq,bqt->bt", 1 / attention.visible().clamp_min(1).double(), facts.shares[..., : len(SINKS)]
        )
        sums = {"texts": itself, "beside": beside, "uniform": even[:, None].expand_as(itself)}
        passed = {name: ((mass > THRESHOLD) & facts.counts[:, None]).long() for name, mass in sums.items()}
        by_fold = {
            f"fold_sink_{name}": total_by_fold(texts, facts.fold).permute(1, 2, 0) for name, texts in passed.items()
        }
        return by_fold | {"mass": (itself * facts.counts[:, None]).sum(0)}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return the share of texts with a sink and the mean attention (NaN without texts), and the sums by fold."""
        rows, unit = {"sink": list(SINKS)}, self.fold_assignment.unit
        table = score_table(SHARE_OF_TEXTS, {**sums, **counts}, rows, source=GU, fold_unit=unit)
        what = "mean attention to the token, in the texts that count"
        masses = mean(sums["mass"], counts["fold_sink"].sum(-1))
        return table.assign(describe({"sink_mass": (masses, ("layer", "head", "sink"), what, SHARE)}, GU))


@dataclass(frozen=True, eq=False)
class _Facts:
    """The facts of a batch that need no attention.

    Attributes:
        columns: For each of `SINKS`, and then for the neighbour of each: 1 at the key of this token, 0 elsewhere.
        shares: For each of these tokens, the share of each query in the mean attention to the token.
        counts: Whether the text counts for each of `SINKS`.
        fold: The fold of each document.
    """

    columns: Float[Tensor, "batch key token"]
    shares: Float64[Tensor, "batch query token"]
    counts: Bool[Tensor, "batch sink"]
    fold: Int[Tensor, " batch"]


def _find_places(tokens: Tokens) -> Int[Tensor, "batch sink"]:
    """Return the position of each of `SINKS` in each text, counted from 0; -1 if it is missing."""
    place = torch.arange(tokens.length, device=tokens.ids.device)
    first = place[: len(FIRST)].expand(len(tokens.ids), -1)
    first = first.where(first < tokens.real.sum(1, keepdim=True), -1)
    delimiters = []
    for kind in (tokens.sep, tokens.punctuation):
        is_delimiter = kind & (place > 0)
        delimiters.append(is_delimiter.int().argmax(1).where(is_delimiter.any(1), -1))
    return torch.cat([first, torch.stack(delimiters, dim=1)], dim=1)
