"""Streaming heads: heads whose output stays the same if they see only the first and the most recent tokens.

Xiao et al. 2024, *Efficient streaming language models with attention sinks*, keep only the keys and values of these
tokens. Xiao et al. 2024, *DuoAttention: Efficient long-context LLM inference with retrieval and streaming heads*, do
this only in heads whose outputs hardly depend on the other tokens; a trained gate in each head decides it. Here the
output of each head is compared with its output on these tokens alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch
from headscope.errors import HeadscopeError, ModelError
from headscope.heads import SHARE, describe
from headscope.reducers.reducer import Reducer, Sums
from headscope.reducers.support.folds import FoldAssignment, total_by_fold
from headscope.reducers.support.ratios import mean, score_table
from headscope.score import Rival, Score

XIAO = "Xiao et al. 2024 (StreamingLLM, DuoAttention)"

ROUNDING = 1e-4
"""If the weights of a row sum to less than 1 by more than this, the rest is the share of a sink that is not a token.

Weights are in float32. If such a sink takes nearly all of a row, the remaining weights are less exact than elsewhere.
"""

KEPT = Score(
    "streaming_kept",
    "Streaming heads",
    "the share of the head's output that stays the same where each token sees only the first tokens of the text and "
    "the most recent ones",
    numerator=("fold_streaming_kept",), denominator=("fold_streaming",),
    rivals=(
        Rival("others", "the same head and as many other tokens", ("fold_streaming_others",), ("fold_streaming",)),
        Rival("uniform", "uniform attention to the same values", ("fold_streaming_uniform",), ("fold_streaming",)),
    ),
    items="tokens", attends="token", roles={"": "streaming"}, role_from=0.9, role_rank=2,
)  # fmt: skip


@dataclass(frozen=True)
class Streaming(Reducer):
    """How much of each head's output stays the same if it sees only the first tokens of a text and the most recent.

    Each token keeps the first 4 tokens of the text and the 32 most recent ones, itself among them. The weights on these
    tokens are scaled up to what the softmax would make of them alone. ``streaming_kept`` compares the output, before
    the output projection, with the output of the whole head: it is 1 less the length of the difference as a share of
    the length of the output, and 0 if the difference is longer than the output. In each text it is the mean over
    tokens, weighted by the lengths of their outputs, since a head that rests on an attention sink adds next to nothing
    there. Texts are weighted by their tokens. ``streaming_change`` is the length of the difference itself, and
    ``streaming_mass`` is the attention to the tokens that are kept. A head may have nearly all of its attention there
    and still lose its output, if the sink that it rests on has a small value.

    A token counts if the head sees at least twice as many tokens there as are kept: only texts of 72 tokens or more
    have such tokens. In layers with a window the head sees only the tokens in the window; a layer with a smaller window
    has no value.

    The output of any head changes little if its values resemble each other. A streaming head keeps more of its output
    than it would with the same number of other tokens, evenly spaced between the first and the most recent ones, and
    more than uniform attention to the same values would keep.

    The model must be a decoder without an encoder. Views cannot be measured, since only attention weights have an
    output.

    Attributes:
        fold_assignment: The assignment of documents to folds; sums are kept by fold.
        first: The number of first tokens of a text that are kept, special tokens among them.
        recent: The number of most recent tokens that are kept, each token itself among them.

    Raises:
        HeadscopeError: `first` is less than 0 or `recent` less than 1.
    """

    fold_assignment: FoldAssignment = field(default_factory=FoldAssignment)
    first: int = 4
    recent: int = 32

    name = "streaming"
    # The weight of a token depends on the outputs of all tokens of its text.
    scope = "layer"
    scores = (KEPT,)
    reads_values = True
    by_name = True

    def __post_init__(self) -> None:
        """Raise an error if `first` is below 0 or `recent` is below 1."""
        if self.first < 0 or self.recent < 1:
            raise HeadscopeError(
                f"the first {self.first} and the most recent {self.recent} tokens cannot be kept; keep 0 or more of "
                "the first, and 1 or more of the most recent."
            )

    def prepare(self, batch: Batch, attention_type: str) -> "_Facts":
        """Return True for each token of a text (False for padding), and the fold of each document.

        Raises:
            ModelError: The model is not a decoder without an encoder.
        """
        if not batch.is_causal(attention_type):
            raise ModelError(
                "the reducer `streaming` cuts each token off from those before it, and a model that is not a decoder "
                "alone sees what comes after it as well; measure a decoder, or leave the reducer out."
            )
        tokens = batch.queries(attention_type)
        return _Facts(tokens.real, self.fold_assignment.folds(batch.documents, tokens.ids.device))

    def count(self, facts: "_Facts") -> Sums:
        """Count the tokens that are scored in layers without a window."""
        before = torch.arange(1, facts.real.shape[1] + 1, device=facts.real.device)
        return {"tokens": (facts.real & (before >= 2 * (self.first + self.recent))).sum()}

    def observe(self, facts: "_Facts", attention: Attention) -> Sums:
        """Sum by head and fold the number of scored tokens, and the shares of their outputs that head and rivals keep.

        Also sum by head the attention to the tokens that are kept, and the change of the output.
        """
        kept, others, counts = self._choose_keys(facts, attention)
        values, visible = attention.values().where(facts.real[:, None, :, None], 0), attention.visible()
        output = attention.output()
        missing = 1 - attention.average(torch.ones_like(values[:, 0, :, :1]))[..., 0]
        missing = missing.where(missing > ROUNDING, 0)
        on_kept, on_others = (attention.at(keys.place) * keys.there[:, None] for keys in (kept, others))
        alike, evenly = kept.there[:, None].expand(-1, values.shape[1], -1, -1), _average_evenly(values, visible)
        blocks = []
        step = max(1, attention.batch.blocks.held // (output[:, :, 0].numel() + on_kept[:, :, 0].numel()))
        for start in range(0, counts.shape[1], step):
            rows = slice(start, start + step)
            near, far = (_Keys(keys.place[:, rows], keys.there[:, rows]) for keys in (kept, others))
            cut = _average_of(on_kept[:, :, rows], values, near, missing[:, :, rows])
            cut_to_others = _average_of(on_others[:, :, rows], values, far, missing[:, :, rows])
            cut_evenly = _average_of(alike[:, :, rows].to(values.dtype), values, near)
            pairs = ((output, cut), (output, cut_to_others), (evenly, cut_evenly))
            blocks.append([_compare(whole[:, :, rows], part, counts[:, rows]) for whole, part in pairs])
        (kept_share, change), (others_share, _), (uniform_share, _) = (
            _divide(torch.stack(lengths).sum(0)) for lengths in zip(*blocks, strict=True)
        )
        tokens = counts.sum(1)[:, None].expand(-1, attention.heads)
        uniform_share = uniform_share.repeat_interleave(attention.heads // values.shape[1], dim=1)
        by_text = {
            "fold_streaming": tokens,
            "fold_streaming_kept": tokens * kept_share,
            "fold_streaming_others": tokens * others_share,
            "fold_streaming_uniform": tokens * uniform_share,
        }
        mass, uniform_mass = on_kept.sum(-1), kept.there.sum(-1) / visible.clamp_min(1)
        return {name: total_by_fold(sums, facts.fold).T for name, sums in by_text.items()} | {
            "change": (tokens * change).sum(0),
            "mass": mass.double().where(counts[:, None], 0).sum((0, 2)),
            "uniform_mass": uniform_mass.double().where(counts, 0).sum().expand(attention.heads),
        }

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return the share of its output that each head keeps (NaN without scored tokens), and the sums by fold."""
        table = score_table(KEPT, sums, source=XIAO, units="share of output")
        # Layers with windows count different tokens, so the sums belong to heads and get no fold unit by default.
        table["fold_streaming"].attrs["fold_unit"] = self.fold_assignment.unit
        tokens, dims = sums["fold_streaming"].sum(-1), ("layer", "head")
        kept = f"the first {self.first} tokens and the {self.recent} most recent ones"
        length = "multiple of the output's length"
        values = {
            "streaming_count": (counts["tokens"], (), "tokens scored where no window hides any", "tokens"),
            "streaming_change": (
                mean(sums["change"], tokens), dims, f"length of the change of the output cut to {kept}", length,
            ),
            "streaming_mass": (mean(sums["mass"], tokens), dims, f"mean attention to {kept}", SHARE),
            "streaming_uniform": (mean(sums["uniform_mass"], tokens), dims, "the same of uniform attention", SHARE),
        }  # fmt: skip
        return table.assign(describe(values, XIAO))

    def _choose_keys(self, facts: "_Facts", attention: Attention) -> "tuple[_Keys, _Keys, Bool[Tensor, 'batch query']]":
        """Return the keys that each query keeps, the same number of other keys, and whether each query counts."""
        place = torch.arange(facts.real.shape[1], device=facts.real.device)[:, None]
        # The tokens that a decoder sees, with or without a window, end with the token itself.
        visible = attention.visible().long()[..., None]
        lowest = place + 1 - visible
        near = place - torch.arange(self.recent, device=place.device)
        first = torch.arange(self.first, device=place.device).expand(len(place), -1)
        kept = torch.cat([first, near], dim=1).expand(len(visible), -1, -1)
        number = self.recent + (self.first - lowest).clamp(0, self.first)
        counts = facts.real & (visible >= 2 * number)[..., 0]
        rank = torch.arange(kept.shape[-1], device=place.device)
        # Evenly spaced: divide the tokens that are not kept into equal parts, and take the middle of each part.
        others = lowest.clamp_min(self.first) + (2 * rank + 1) * (visible - number) // (2 * number)
        is_there = counts[..., None]
        return (
            _Keys(kept.clamp_min(0), is_there & (kept >= lowest)),
            _Keys(others.clamp(0, len(place) - 1), is_there & (rank < number)),
            counts,
        )


@dataclass(frozen=True, eq=False)
class _Facts:
    """The facts of a batch that need no attention.

    Attributes:
        real: True for the tokens of texts.
        fold: The fold of each document.
    """

    real: Bool[Tensor, "batch query"]
    fold: Int[Tensor, " batch"]


@dataclass(frozen=True, eq=False)
class _Keys:
    """A selection of the keys of each query.

    Attributes:
        place: The keys, counted from 0; any key if there is none.
        there: Whether there is a key.
    """

    place: Int[Tensor, "batch query n"]
    there: Bool[Tensor, "batch query n"]


def _average_of(
    weights: Float[Tensor, "batch head query n"],
    values: Float[Tensor, "batch key_head key width"],
    keys: _Keys,
    missing: Float[Tensor, "batch head query"] | float = 0.0,
) -> Float[Tensor, "batch head query width"]:
    """Return the weighted mean of the values of some keys, with weights that sum to 1 together with `missing`."""
    (batch, heads, queries, n), (_, key_heads, length, width) = weights.shape, values.shape
    sums = weights.sum(-1) + missing
    scaled = weights / sums.clamp_min(torch.finfo(sums.dtype).tiny)[..., None]
    # Put the values of all texts and key heads below each other, and find where those of each head begin.
    below = values.reshape(-1, width)
    begins = torch.arange(batch * key_heads, device=values.device).repeat_interleave(heads // key_heads) * length
    places = keys.place[:, None] + begins.view(batch, heads, 1, 1)
    averages = torch.nn.functional.embedding_bag(
        places.view(-1, n), below, per_sample_weights=scaled.reshape(-1, n).to(below.dtype), mode="sum"
    )
    return averages.view(batch, heads, queries, width)


def _average_evenly(
    values: Float[Tensor, "batch key_head key width"], visible: Float[Tensor, "batch query"]
) -> Float[Tensor, "batch key_head query width"]:
    """Return, for each query, the plain mean of the values of the tokens that it sees, itself included."""
    # In float64, since it is the difference of two sums over all earlier tokens.
    up_to = torch.nn.functional.pad(values.double().cumsum(2), (0, 0, 1, 0))
    behind = torch.arange(1, values.shape[2] + 1, device=values.device)
    first = (behind - visible.long()).clamp_min(0)[:, None, :, None].expand_as(values)
    return ((up_to[:, :, 1:] - up_to.gather(2, first)) / visible.clamp_min(1)[:, None, :, None]).to(values.dtype)


def _compare(
    output: Float[Tensor, "batch head query width"],
    cut: Float[Tensor, "batch head query width"],
    counts: Bool[Tensor, "batch query"],
) -> Float64[Tensor, "3 batch head"]:
    """Sum three lengths over the queries that count: of the output, of its kept part, and of its change.

    The kept part is the length of the output minus the length of its change, and 0 or more.
    """
    length, change = (torch.linalg.vector_norm(side, dim=-1).double() for side in (output, cut - output))
    return torch.stack([length, (length - change).clamp_min(0), change]).where(counts[:, None], 0).sum(-1)


def _divide(lengths: Float64[Tensor, "3 batch head"]) -> Float64[Tensor, "2 batch head"]:
    """Return the sums of kept parts and of changes from `_compare` as shares of the outputs; 0 if all outputs are 0."""
    shares: Tensor = lengths[1:] / lengths[0].where(lengths[0] > 0, 1)
    return shares
