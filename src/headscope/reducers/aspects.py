"""Heads that look for the aspect that a question names.

The essay *What does a fine-tuned BERT model look at?* (2019) makes five observations about such heads, and shows each
on single pairs of a question and a review. At its end it asks for a more formal study, with the accuracy of every head
as in Clark et al. 2019. This module has the measures for such a study.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch, Tokens
from headscope.capture.tokens.words import membership, pool_queries
from headscope.errors import HeadscopeError
from headscope.heads import SHARE, Described, describe
from headscope.reducers.reducer import Annotation, Reducer, Sums
from headscope.reducers.support.aspect_targets import EVALUATIVE, SEPARATORS, TARGETS, covered, targets_of
from headscope.reducers.support.folds import FOLDS, Bins, FoldAssignment
from headscope.reducers.support.ratios import mean, score_table
from headscope.score import OFFSETS, Rival, Score, offset_rival

ESSAY = "What does a fine-tuned BERT model look at? (2019), task-specific learnings 1 to 5"

ACCURACY = Score(
    "aspect_accuracy",
    "Aspects in question",
    "the share of pairs of question and review in which the words that name the aspect attend, of all other words, "
    "most to the target",
    numerator=("fold_aspect_correct",), denominator=("fold_aspect",),
    rivals=(
        offset_rival("fold_aspect_offset", "fold_aspect"),
        Rival("blind", "pointing blindly", ("fold_aspect_chance",), ("fold_aspect",)),
    ),
    items="pairs", rows="targets", attends="question",
    baselines={"aspect_chance": "pointing blindly"},
)  # fmt: skip


@dataclass(frozen=True)
class Aspects(Reducer):
    """How much each head looks from the aspect that a question names to what the review says of it.

    There are three measures for each of `headscope.reducers.support.aspect_targets.TARGETS`. They relate the target to
    the *naming words*: the words of the question that name the aspect. The first is the share of their attention that
    the naming words give to the target. The second is the share of its attention that the target gives back to the
    naming words; a causal model can show only this one, since its question cannot see the review after it. The third is
    how often the head points at the target, as in Clark et al. 2019: the naming words attend, of all other words, most
    to a word of the target. A head points at a separator if the naming words attend to it more than to any word and any
    other separator. Attention to a word is the sum over its tokens. Attention from a word is the mean over its tokens,
    and attention from several words is the mean over these words.

    The baselines are the values of attention without any preference (the share of the tokens, and the share of the
    words that can be pointed at), and the word at a fixed offset from the naming words. No such offset leads to a
    separator. Two pairs of targets are each other's control. A head that looks for *another* aspect attends more to
    ``other_aspect`` than to ``same_beside_other``. A head for which separators mean that nothing is to be found attends
    more to them where the aspect is absent than where it is present.

    The terms are annotated. Two targets are our approximations, since the essay does not define them. The *phrase* of a
    term is the stretch of words around it up to the next punctuation mark, conjunction
    (`headscope.reducers.support.aspect_targets.BORDERS`) or term of another aspect. It uses no syntax and misses words
    beyond a border (*fresh and delicious*). *Sentiment words* are the words of the phrase, outside of terms, that are
    in a list, whatever their context (*not good*). For another domain or language, give your own list.

    Attributes:
        sentiment: The sentiment words, in any mixture of upper and lower case.
        fold_assignment: The assignment of documents to folds; sums are kept by fold.

    Raises:
        HeadscopeError: `sentiment` is empty or a string.
    """

    sentiment: Sequence[str] = EVALUATIVE
    fold_assignment: FoldAssignment = field(default_factory=FoldAssignment)

    name = "aspects"
    scope = "layer"
    max_tokens = 4096
    scores = (ACCURACY,)
    annotation = Annotation(
        "questions that name an aspect (spans `asked`)",
        "one that has, such as the restaurants of SemEval-2014",
        lambda summary: summary.spans.get("asked"),
    )

    def __post_init__(self) -> None:
        """Raise an error if `sentiment` is empty or a string; store its words case-folded as a tuple."""
        if isinstance(self.sentiment, str) or not self.sentiment:
            raise HeadscopeError(f"the sentiment words are {self.sentiment!r}; give a list of at least one.")
        object.__setattr__(self, "sentiment", tuple(word.casefold() for word in self.sentiment))

    def prepare(self, batch: Batch, attention_type: str) -> "_Pairs":
        """Return the pairs of a batch whose question names an aspect, with the words of each target."""
        device = batch.encoder.ids.device
        # Reserve at least one separator, so that pairs whose separator is missing are counted.
        separators = range(batch.words, batch.words + max(1, int(batch.encoder.sep.sum(1).max())))
        tokens = membership(_words(batch.encoder, batch.words), separators.stop).sum(1)
        pairs = [index for index, document in enumerate(batch.documents) if covered(document, "asked")]
        document_of = torch.tensor(pairs, dtype=torch.long, device=device)
        naming = torch.zeros(len(pairs), separators.stop, dtype=torch.bool, device=device)
        targets = torch.zeros(len(pairs), len(TARGETS), separators.stop, dtype=torch.bool, device=device)
        for row, index in enumerate(pairs):
            document = batch.documents[index]
            naming[row, sorted(covered(document, "asked"))] = True
            words = targets_of(document, separators, frozenset(self.sentiment))
            for target, name in enumerate(TARGETS):
                targets[row, target, sorted(words[name])] = True
        there = (tokens > 0)[document_of]
        wanted, naming, targets = targets.any(-1), naming & there, targets & there[:, None]
        scored = naming.any(-1, keepdim=True) & targets.any(-1)
        others = (there & ~naming)[:, None].expand_as(targets).clone()
        others[:, :-SEPARATORS, batch.words :] = False
        tokens_of = tokens[document_of, :, None].double()
        length = batch.encoder.real.sum(1)[document_of, None].double()
        shares = (
            (targets.double() @ tokens_of)[..., 0] / length,
            ((naming[:, None].double() @ tokens_of)[..., 0] / length).expand(-1, len(TARGETS)),
            targets.sum(-1).double() / others.sum(-1).clamp_min(1),
        )
        item = scored.flatten().nonzero()[:, 0]
        folds = self.fold_assignment.folds(batch.documents, device)[document_of]
        bins = torch.arange(len(TARGETS), device=device) * FOLDS + folds[:, None]
        return _Pairs(
            batch.words, document_of, naming, targets, torch.stack(shares, -1),
            Bins(item, bins.flatten()[item], len(TARGETS)), (wanted & ~scored).sum(0),
        )  # fmt: skip

    def count(self, facts: "_Pairs") -> Sums:
        """Count for each target the scored pairs and the pairs left out for missing tokens, and sum the baselines."""
        ones = torch.ones(facts.size, 1, dtype=torch.bool, device=facts.document.device)
        return {
            "fold_aspect": facts.folds.total(ones)[..., 0],
            "lost": facts.lost,
            "fold_aspect_offset": facts.folds.total(facts.at_offsets(OFFSETS).flatten(0, 1)),
            "unguided": facts.folds.total(facts.unguided.flatten(0, 1)),
        }

    def observe(self, facts: "_Pairs", attention: Attention) -> Sums:
        """Sum the attention between naming words and each target, and count the pairs in which a head points at it."""
        keys, queries = (
            membership(_words(side, facts.words), facts.columns) for side in (attention.keys, attention.queries)
        )
        words = pool_queries(attention.average(keys), queries[:, attention.rows])[facts.document]
        naming, targets = facts.naming[:, None].float(), facts.targets.float()
        each = targets / targets.sum(-1, keepdim=True).clamp_min(1)
        from_asked = ((naming / naming.sum(-1, keepdim=True).clamp_min(1))[:, None] @ words)[:, :, 0]
        back = each[:, None] @ (words @ naming[:, None].mT)
        others = from_asked.masked_fill(facts.naming[:, None], 0)
        # A target of words competes with words, a target of separators with words and separators.
        words_alone, everything = others[..., : facts.words].max(-1), others.max(-1)
        best = [words_alone] * (len(TARGETS) - SEPARATORS) + [everything] * SEPARATORS
        where, weight = (torch.stack([getattr(largest, name) for largest in best], 1) for name in ("indices", "values"))
        points = facts.targets.gather(2, where) & (weight > 0)

        mass, returned = (from_asked @ targets.mT).mT.double(), back[..., 0].mT.double()
        seen = {"mass": mass, "back": returned, "fold_aspect_correct": points}
        return {name: facts.folds.total(values.flatten(0, 1)).movedim(-1, 0) for name, values in seen.items()}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return the shares of attention and the accuracies by target (NaN without pairs), and the sums by fold."""
        by_fold = {**sums, **counts, "fold_aspect_chance": counts["unguided"][..., 2]}
        unit = self.fold_assignment.unit
        table = score_table(ACCURACY, by_fold, {"target": list(TARGETS)}, source=ESSAY, fold_unit=unit)
        pairs = counts["fold_aspect"].sum(-1)
        mass, back = (mean(sums[name].sum(-1), pairs) for name in ("mass", "back"))
        tokens, naming, words = mean(counts["unguided"].sum(1), pairs[:, None]).T
        offsets = mean(counts["fold_aspect_offset"].sum(1), pairs[:, None])
        each, by_head = ("target",), ("layer", "head", "target")
        share, pair = SHARE, "share of pairs"
        there = "pairs in which a word of the target is at a fixed offset from the words that name the aspect"
        over_pairs = "attention to the target, over pairs"
        lost = "pairs left out, whose words of the target or of the aspect's name have no token"
        values: dict[str, Described] = {
            "aspect_mass": (mass, by_head, "attention from the words that name the aspect to the target", share),
            "aspect_mass_back": (back, by_head, "attention from the target to the words that name the aspect", share),
            "aspect_lost": (counts["lost"], each, lost, "pairs"),
            "aspect_uniform": (tokens, each, "tokens that are the target's: what even attention would give", share),
            "aspect_uniform_back": (naming, each, "tokens that name the aspect: what even attention would give", share),
            "aspect_chance": (words, each, "other words that are the target's: what pointing blindly would hit", pair),
            "aspect_offset": (offsets, ("target", "offset"), there, pair),
            "fold_aspect_mass": (sums["mass"], (*by_head, "fold"), over_pairs, "sum of weights"),
        }
        return table.assign(describe(values, ESSAY)).assign_coords(offset=list(OFFSETS))


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The pairs of question and review of a batch whose question names an aspect.

    Each separator counts as a word. The indices of separators follow the indices of the words of the longest text.

    Attributes:
        words: The number of words before the first separator.
        document: The index in the batch of the document of each pair.
        naming: For each pair, the words that name the aspect.
        targets: For each pair, the words of each target that have tokens.
        unguided: For each pair and target, three shares: of the tokens that are the target's, of the tokens that name
            the aspect, and of the other words that are the target's.
        folds: The rows and folds in which the pairs and targets count.
        lost: For each target, the number of pairs that have it, but are left out for missing tokens.
    """

    words: int
    document: Int[Tensor, " pair"]
    naming: Bool[Tensor, "pair word"]
    targets: Bool[Tensor, "pair target word"]
    unguided: Float64[Tensor, "pair target share"]
    folds: Bins
    lost: Int[Tensor, " target"]

    @property
    def columns(self) -> int:
        """The number of words, separators included."""
        return self.naming.shape[1]

    @property
    def size(self) -> int:
        """The number of pairs times the number of targets."""
        return len(self.document) * len(TARGETS)

    def at_offsets(self, offsets: tuple[int, ...]) -> Bool[Tensor, "pair target offset"]:
        """Return for each pair, target and offset whether the word at the offset belongs to the target.

        A negative offset is counted from the first word that names the aspect, a positive offset from the last one.
        """
        words = torch.arange(self.columns, device=self.document.device)
        first = torch.where(self.naming, words, self.words).amin(-1, keepdim=True)
        last = torch.where(self.naming, words, -1).amax(-1, keepdim=True)
        steps = torch.tensor(offsets, device=self.document.device)
        there = torch.where(steps < 0, first, last) + steps
        inside = (there >= 0) & (there < self.words)
        is_target = self.targets.gather(2, there.clamp(0, self.words - 1)[:, None].expand(-1, len(TARGETS), -1))
        return is_target & inside[:, None]


def _words(tokens: Tokens, words: int) -> Int[Tensor, "batch token"]:
    """Return the index of the word of each token, -1 without a word; separators get the indices after all words."""
    return torch.where(tokens.sep, words - 1 + tokens.sep.cumsum(1), tokens.word)
