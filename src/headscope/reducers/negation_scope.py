"""Heads as classifiers of negation scope: Zhao and Bethard 2020, section 4.

A head predicts that a word is in the scope of a negation if, of all other words, the word attends most to a word of the
cue. Each head is scored over all negations together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Int, Int64
from torch import Tensor

from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch
from headscope.heads import describe
from headscope.reducers.reducer import Annotation, Reducer, Sums
from headscope.reducers.support.folds import FoldAssignment, total_by_fold
from headscope.reducers.support.negation_cue import REGRESSORS, Cues
from headscope.reducers.support.negation_cue import variables as cue_variables
from headscope.reducers.support.permutations import Permutations
from headscope.reducers.support.ratios import score_table
from headscope.score import OFFSETS, Rival, Score, offset_rival

ZHAO = "Zhao and Bethard 2020, section 4"
MEASURES = {
    "precision": "words said to be in a scope that are",
    "recall": "words of a scope that are said to be in it",
    "f1": "harmonic mean of precision and recall",
}

REACH = ("0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "all")
"""The numbers of words that a window can have on one side of the cue."""

HITS, SAID, GOLD = "fold_scope_said_hits", "fold_scope_said", "fold_scope"
F1 = Score(
    "scope_f1",
    "Scope of negation",
    "the F1 of the words that attend, of all other words, most to the cue, said to be its scope",
    numerator=(HITS, HITS), denominator=(SAID, GOLD),
    rivals=(
        offset_rival(("fold_scope_near_hits", "fold_scope_near_hits"), ("fold_scope_near", GOLD)),
        Rival("all", "all words of the sentence", (GOLD, GOLD), ("fold_scope_words", GOLD)),
        Rival(
            "window", "best window around the cue", ("fold_scope_window_hits", "fold_scope_window_hits"),
            ("fold_scope_window", GOLD), ("before", "behind"), "{before} words before the cue, {behind} after it",
        ),
    ),
    rows="scopes of negation", label="scope, F1", attends="word",
    permuted="the score after rotating each scope within its sentence",
    baselines={"scope_all_f1": "all words of the sentence"},
    regression=("attention of a word to the cue of a negation", "in the scope"),
)  # fmt: skip


@dataclass(frozen=True)
class NegationScope(Reducer):
    """How well each head tells which words a negation is about.

    Counts are pooled over negations. A precision, recall or F1 of nothing is 0, as in the paper. A word without a
    token, or a word that may attend to no other word, is predicted to be in no scope. A cue that is part of a word
    (*un-*) is left out and counted, as in the paper. A scope without any cue is left out and counted too. The negations
    of one sentence are scored one by one.

    There are three baselines: every word of the sentence is in every scope; the words from which a word of the cue is
    at a fixed offset (-1: the words right after a word of the cue); and a window around the cue, with a number of words
    before and after it. A head that knows the cue and attends to it from nearby words scores as the best window does.

    In the permutations, each scope rotates along the words of its sentence outside of the cue, by a random number of
    words (`headscope.reducers.support.permutations`). A head that attends to neighbours of the cue, and any head of a
    model that cannot look ahead, scores better than in the permutations, since most scopes begin after the cue: compare
    the baselines.

    The reducer also keeps sums of squares and products, from which the attention of a word to the cue can be regressed
    on whether the word is in the scope and on its distance from the cue (`headscope.analyse.add_regression`). The
    attention to a cue of several words is the sum over its words. `headscope.reducers.support.negation_cue.Cues`
    describes which words count.

    Attributes:
        fold_assignment: The assignment of documents to folds; sums are kept by fold.
        permutations: The permutations of the scopes.
    """

    fold_assignment: FoldAssignment = field(default_factory=FoldAssignment)
    permutations: Permutations = field(default_factory=Permutations)

    name = "scope"
    scope = "layer"
    max_tokens = 4096
    scores = (
        Score("scope_precision", "Scope of negation", numerator=(HITS,), denominator=(SAID,), reported=False),
        Score("scope_recall", "Scope of negation", numerator=(HITS,), denominator=(GOLD,), reported=False),
        F1,
    )
    annotation = Annotation(
        "negation cues and their scopes",
        "one that has, such as *SEM 2012 or SFU",
        lambda summary: summary.spans.get("cue"),
    )

    def prepare(self, batch: Batch, attention_type: str) -> "_Negations":
        """Return the negations of a batch, their cues and scopes, and the rotations of the scopes in permutations."""
        device = batch.encoder.ids.device
        rows: list[tuple[int, list[int], list[int]]] = []
        affixal = without_cue = 0
        for index, document in enumerate(batch.documents):
            spans: dict[str, dict[str, list[int]]] = {"cue": {}, "scope": {}, "affixal_cue": {}}
            for span in document.original.spans:
                if span.kind in spans:
                    spans[span.kind].setdefault(span.label, []).extend(range(span.start, span.end))
            affixal += len(spans["affixal_cue"].keys() - spans["cue"].keys())
            without_cue += len(spans["scope"].keys() - spans["cue"].keys() - spans["affixal_cue"].keys())
            units = document.unit_numbers
            for label, cue in spans["cue"].items():
                scope = spans["scope"].get(label, [])
                of_cue = {units[word] for word in cue}
                # A unit with a word of the cue and a word of the scope belongs to the cue.
                in_scope = {units[word] for word in scope if word in cue or units[word] not in of_cue}
                rows.append((index, [*of_cue], [*in_scope]))
        document_of = torch.tensor([index for index, _, _ in rows], dtype=torch.long, device=device)
        cues, scopes = (torch.zeros(len(rows), batch.words, dtype=torch.bool, device=device) for _ in range(2))
        for row, (_, cue, words) in enumerate(rows):
            cues[row, cue] = True
            scopes[row, words] = True
        lengths = torch.tensor([len(document.words) for document in batch.documents], device=device)
        real = torch.arange(batch.words, device=device) < lengths[document_of, None]
        folds = self.fold_assignment.folds(batch.documents, device)[document_of]
        left_out = torch.tensor([affixal, without_cue], device=device)
        # Words of the cue and padding come last.
        others = (~(real & ~cues)).long().argsort(dim=-1, stable=True)
        turns = [np.empty((0, self.permutations.count), dtype=np.int64)]
        for index, document in enumerate(batch.documents):
            free = [len(document.words) - len(set(cue)) for row, cue, _ in rows if row == index]
            turns.append(self.permutations.choose(document, free))
        permuted = torch.from_numpy(np.concatenate(turns)).to(device)
        given = Cues.from_negations(batch, document_of, cues, scopes)
        return _Negations(document_of, folds, cues, scopes, real, left_out[0], left_out[1], others, permuted, given)

    def count(self, facts: "_Negations") -> Sums:
        """Count by fold the negations, the words of scopes and sentences, and the hits of offsets and windows."""
        near = facts.at_offsets(OFFSETS)
        return {
            "negations": total_by_fold(torch.ones_like(facts.document), facts.fold),
            "affixal": facts.affixal,
            "without_cue": facts.without_cue,
            GOLD: total_by_fold(facts.in_scope.sum(-1), facts.fold),
            "fold_scope_words": total_by_fold(facts.real.sum(-1), facts.fold),
            "fold_scope_near": total_by_fold(near.sum(-1), facts.fold),
            "fold_scope_near_hits": total_by_fold((near & facts.in_scope[:, None]).sum(-1), facts.fold),
            "fold_scope_window": total_by_fold(facts.count_in_windows(facts.real), facts.fold),
            "fold_scope_window_hits": total_by_fold(facts.count_in_windows(facts.in_scope), facts.fold),
            "regressors": total_by_fold(facts.cues.products(), facts.fold),
        }

    def observe(self, facts: "_Negations", attention: Attention) -> Sums:
        """Count the words that each head puts into a scope, and its hits; sum products of its attention to the cue."""
        words = attention.words()
        word, points = words.attends.word[facts.document], words.attends.weight[facts.document] > 0
        predicted = facts.is_cue[:, None].expand_as(word).gather(-1, word) & points
        hits = predicted & facts.in_scope[:, None]
        products, squares = facts.cues.moments(facts.cues.attention(words.weights))
        sums = {
            SAID: total_by_fold(predicted.sum(-1), facts.fold).mT,
            HITS: total_by_fold(hits.sum(-1), facts.fold).mT,
            "products": total_by_fold(products, facts.fold).transpose(0, 1),
            "squares": total_by_fold(squares, facts.fold).mT,
        }
        return sums | ({"scope_permuted": facts.score_permutations(predicted)} if self.permutations.count else {})

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return precision, recall and F1 of heads and baselines, and the sums by fold."""
        names = (GOLD, "fold_scope_words", "fold_scope_near", "fold_scope_near_hits")
        scope, words, near, near_hits = (np.asarray(counts[name].sum(0)) for name in names)
        scored = {
            "scope": (sums[HITS].sum(-1), sums[SAID].sum(-1), ("layer", "head"), "a head"),
            "scope_offset": (near_hits, near, ("offset",), "a fixed offset from the cue"),
            "scope_all": (scope, words, (), "all words of the sentence"),
        }
        values = {}
        for prefix, (hits, predicted, dims, whose) in scored.items():
            for (score, what), data in zip(MEASURES.items(), _scores(hits, predicted, scope), strict=True):
                values[f"{prefix}_{score}"] = (data, dims, f"{what}, by {whose}", "share of words")
        values |= {
            "scope_count": (counts["negations"].sum(0), (), "negations", "negations"),
            "scope_affixal": (counts["affixal"], (), "negations left out, whose cue is part of a word", "negations"),
            "scope_without_cue": (counts["without_cue"], (), "scopes left out, which have no cue", "scopes"),
        }
        table = score_table(F1, {**sums, **counts}, source=ZHAO, fold_unit=self.fold_assignment.unit)
        regressors = list(REGRESSORS)
        return table.assign(describe(values, ZHAO) | cue_variables(sums, counts)).assign_coords(
            offset=list(OFFSETS),
            before=list(REACH),
            behind=list(REACH),
            regressor=regressors,
            regressor_other=regressors,
        )


@dataclass(frozen=True, eq=False)
class _Negations:
    """The negations of a batch.

    Attributes:
        document: The index in the batch of the document of each negation.
        fold: The fold of each negation.
        is_cue, in_scope: For each negation, the words of its cue and of its scope.
        real: For each negation, the words of its document.
        affixal: The number of negations left out because their cue is part of a word.
        without_cue: The number of scopes left out because they have no cue.
        others: For each negation, the words of its sentence outside of the cue, followed by all remaining indices.
        turns: For each negation and permutation, the number of words by which its scope rotates along `others`.
        cues: The cues, and the words that may attend to them.
    """

    document: Int[Tensor, " negation"]
    fold: Int[Tensor, " negation"]
    is_cue: Bool[Tensor, "negation word"]
    in_scope: Bool[Tensor, "negation word"]
    real: Bool[Tensor, "negation word"]
    affixal: Int64[Tensor, ""]
    without_cue: Int64[Tensor, ""]
    others: Int[Tensor, "negation word"]
    turns: Int[Tensor, "negation permutation"]
    cues: Cues

    def at_offsets(self, offsets: tuple[int, ...]) -> Bool[Tensor, "negation offset word"]:
        """Return for each offset the words that have a word of the cue at this offset from them."""
        words = self.is_cue.shape[1]
        device = self.is_cue.device
        there = torch.arange(words, device=device) + torch.tensor(offsets, device=device)[:, None]
        inside = (there >= 0) & (there < words)
        return self.is_cue[:, there.clamp(0, words - 1)] & inside & self.real[:, None]

    def count_in_windows(self, chosen: Bool[Tensor, "negation word"]) -> Int64[Tensor, "negation before behind"]:
        """Count the words of `chosen` in each window around the cue, without the words of the cue."""
        words = self.is_cue.shape[1]
        place = torch.arange(words, device=self.is_cue.device).expand(self.is_cue.shape)
        # A missing cue is farther away than any window reaches, even in short sentences.
        beyond = 2 * words + len(REACH)
        last = place.where(self.is_cue, -beyond).cummax(1).values
        following = place.where(self.is_cue, beyond + words).flip(1).cummin(1).values.flip(1)
        reach = torch.tensor([words - 1 if many == "all" else int(many) for many in REACH], device=place.device)
        before, behind = ((far[..., None] <= reach) for far in (following - place, place - last))
        others = chosen & self.real & ~self.is_cue
        # A product of zeros and ones counts the words that lie in neither part of a window.
        outside = (~before & others[..., None]).float().mT @ (~behind).float()
        return others.sum(1)[:, None, None] - outside.long()

    def score_permutations(self, predicted: Bool[Tensor, "negation head word"]) -> Int64[Tensor, "head permutation"]:
        """Count for each head the predicted words that are in the scope in each permutation."""
        count = (self.real & ~self.is_cue).sum(-1)
        place = torch.arange(self.others.shape[1], device=predicted.device)
        in_order = self.in_scope.gather(1, self.others)
        among = predicted.gather(2, self.others[:, None].expand_as(predicted)).float()
        hits = among.new_zeros((predicted.shape[1], self.turns.shape[1]))
        # One negation at a time, since each has a different number of other words.
        for item, size in enumerate(count.tolist()):
            where = (place[:size, None] + self.turns[item]) % max(size, 1)
            # A product of zeros and ones, which is exact.
            hits += among[item, :, :size] @ in_order[item, where].float()
        stay = (predicted & (self.in_scope & self.is_cue)[:, None]).sum((0, 2))
        return hits.long() + stay[:, None]


def _scores(hits: np.ndarray, predicted: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Return precision, recall and F1 along the first axis; 0 where the denominator is 0."""
    pairs = ((hits, predicted), (hits, gold), (2 * hits, predicted + gold))
    return np.stack([part / np.maximum(whole, 1) for part, whole in pairs])
