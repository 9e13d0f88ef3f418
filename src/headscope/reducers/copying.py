"""Copying heads: heads that make a token that they attend to more probable as the next token.

Elhage et al. 2021, *A mathematical framework for transformer circuits* (OV circuits, copying); Olsson et al. 2022,
*In-context learning and induction heads*, who ask about induction heads: do they raise the logit of the token
that they attend to?
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch
from headscope.heads import SHARE
from headscope.reducers.reducer import Reducer, Sums
from headscope.reducers.support.folds import FoldAssignment, total_by_fold
from headscope.reducers.support.ratios import score_table
from headscope.score import Rival, Score

ELHAGE = "Elhage et al. 2021, section on copying; Olsson et al. 2022, section on copying"

MASS = Score(
    "copying_mass",
    "Copied tokens",
    "the mean attention to tokens that the head copies: whose value raises the logit of the token itself above those "
    "of all other tokens of the text",
    numerator=("fold_copied",), denominator=("fold_copying",),
    rivals=(
        Rival("random", "a random token of the text", ("fold_copied_random",), ("fold_copying",)),
        Rival("behind", "the same head and the token after", ("fold_copied_behind",), ("fold_copying",)),
    ),
    items="tokens", attends="token", roles={"": "copying"},
)  # fmt: skip


@dataclass(frozen=True)
class Copying(Reducer):
    """How much each head attends to tokens that it copies, whose logits it raises above those of all others.

    A head copies a token if the value of the token, after the output projection, raises the logit of the token itself
    above the logits of all other tokens of the same text (`headscope.capture.forward.unembedding`; each token counts
    once, however often it occurs there, and special tokens do not count). ``copying_mass`` is the mean, over the tokens
    of all texts, of the attention to tokens that the head copies. It is high only if a head both attends to tokens and
    copies them: on the corpus ``repeats`` for the head that completes a repetition, on any text for a head that repeats
    an earlier word.

    If a value raised a random token, the probability that it raises its own would be one over the number of different
    tokens in the text. A head that raises the token that followed last time, and not the token that it attends to, has
    more attention on tokens whose values raise the token after them.

    The model must be a causal language model whose output embeddings read its residual stream.

    Attributes:
        fold_assignment: The assignment of documents to folds; sums are kept by fold.
    """

    fold_assignment: FoldAssignment = field(default_factory=FoldAssignment)

    name = "copying"
    scope = "rows"
    scores = (MASS,)
    samples_queries = True
    reads_logits = True
    by_name = True

    def prepare(self, batch: Batch, attention_type: str) -> "_Facts":
        """Return, for each text, the ids of the tokens of words and of the next tokens, the queries, chance and folds.

        Chance is the probability that a random token of the text is the right one: 1 / the number of different tokens.
        """
        queries, keys = batch.queries(attention_type), batch.keys(attention_type)
        of_words = keys.word >= 0
        tokens = keys.ids.where(of_words, NONE)
        behind = tokens.roll(-1, 1)
        behind[:, -1] = NONE
        different = [len(ids[shown].unique()) for ids, shown in zip(keys.ids, of_words, strict=True)]
        chance = 1 / torch.tensor(different, dtype=torch.float64, device=keys.ids.device).clamp_min(1)
        folds = self.fold_assignment.folds(batch.documents, keys.ids.device)
        return _Facts(tokens, behind, queries.word >= 0, chance, folds)

    def count(self, facts: "_Facts") -> Sums:
        """Count by fold the queries that belong to words, and the expected hits if values raised random tokens."""
        tokens = facts.queries.sum(1)
        return {
            "fold_copying": total_by_fold(tokens, facts.fold),
            "fold_copied_random": total_by_fold(tokens * facts.chance, facts.fold),
        }

    def observe(self, facts: "_Facts", attention: Attention) -> Sums:
        """Sum by head and fold the attention to tokens whose value raises the token itself, or the token after it."""
        raised = attention.raised()
        columns = torch.stack([(raised == facts.tokens[:, None]), (raised == facts.behind[:, None])], dim=-1)
        columns &= (raised >= 0)[..., None]
        seen = attention.average_by_head(columns.float())
        seen = seen.where(facts.queries[:, None, attention.rows, None], 0)
        some = attention.batch.blocks.summed_rows
        by_text = torch.stack([chunk.double().sum(2) for chunk in torch.split(seen, some, 2)]).sum(0)
        copied, behind = total_by_fold(by_text, facts.fold).permute(2, 1, 0)
        return {"fold_copied": copied, "fold_copied_behind": behind}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return the mean attention of each head to tokens that it copies, NaN without tokens, and the sums by fold."""
        unit = self.fold_assignment.unit
        return score_table(MASS, {**sums, **counts}, source=ELHAGE, units=SHARE, fold_unit=unit)


NONE = -2
"""The id in place of special tokens and padding; it differs from -1, by which `Attention.raised` marks them."""


@dataclass(frozen=True, eq=False)
class _Facts:
    """The facts of a batch that need no attention.

    Attributes:
        tokens: The id of each key that is part of a word; `NONE` for other keys.
        behind: The id of the token after each key, or `NONE`.
        queries: True for the tokens that attend: the tokens of words.
        chance: One over the number of different tokens of each text.
        fold: The fold of each document.
    """

    tokens: Int[Tensor, "batch key"]
    behind: Int[Tensor, "batch key"]
    queries: Bool[Tensor, "batch query"]
    chance: Float64[Tensor, " batch"]
    fold: Int[Tensor, " batch"]
