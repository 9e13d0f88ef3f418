"""Word alignment: the source word that each head attends to when a decoder predicts or reads a word of a translation.

Garg et al. 2019, *Jointly learning to align and translate with transformer models*; Chen et al. 2020, *Accurate word
alignment induction from neural machine translation*.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int
from torch import Tensor

from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch
from headscope.capture.tokens.words import membership, pool_queries
from headscope.corpora.summary import CorpusSummary
from headscope.errors import HeadscopeError
from headscope.heads import Described, describe
from headscope.reducers.reducer import Annotation, Reducer, Sums
from headscope.reducers.support.aligned_words import SHIFTS, AlignedWords
from headscope.reducers.support.folds import FOLDS, FoldAssignment, total_by_fold
from headscope.reducers.support.permutations import Permutations
from headscope.reducers.support.ratios import score_table
from headscope.score import Rival, Score

GARG = "Garg et al. 2019; Chen et al. 2020"
OCH = "Och and Ney 2003"

CROSS = "cross"
"""The attention type from a translation to its source."""

STEPS = ("predicting", "reading")
"""The steps of a decoder at which the attention from a word of the translation is measured.

At the step ``predicting`` the tokens of the word are the output; at ``reading``, one token later, they are the input.
"""

ACCURACY = Score(
    "alignment_accuracy",
    "Word alignment",
    "the share of the words of translations at which the head attends, of all source words, most to one that they are "
    "aligned to",
    numerator=("fold_aligned",), denominator=("fold_alignment",),
    rivals=(
        Rival(
            "index", "word with the same number", ("fold_alignment_index",), ("fold_alignment",), ("shift",),
            "same number, shifted by {shift}",
        ),
        Rival(
            "diagonal", "word at the same share of its sentence", ("fold_alignment_diagonal",),
            ("fold_alignment",), ("shift",), "diagonal, shifted by {shift}",
        ),
    ),
    items="words of translations", rows="steps of the decoder", label="align: {}", attends="transl.",
    permuted="the score after moving what each word is aligned to along the pair, at the same distance",
)  # fmt: skip


@dataclass(frozen=True)
class WordAlignment(Reducer):
    """How often each head of the cross-attention looks from a word of a translation at a word it is aligned to.

    The decoder reads the translation. A word of the translation counts if it has a sure link. It is right if the source
    word that gets most of its attention is linked to it, by a sure or a possible link. Attention to a source word is
    the sum over its tokens; attention from a word of the translation is the mean over its tokens. ``predicting``
    measures the steps whose outputs are the tokens of the word (Garg et al. 2019). ``reading`` measures the steps whose
    inputs they are, one token later (Chen et al. 2020, who found the better alignments there).

    ``alignment_error_rate`` is the error rate of Och and Ney (2003) if each word of a translation is linked to the
    source word that gets most of its attention, and to no other. Words without any link count there too.

    The rivals of the heads are two rules that know only the positions of words: the source word with the same number,
    and the source word at the same share of its sentence (the diagonal), each with the best fixed shift from -5 to 5.

    In the permutations, the source words of a word move along the pair: another word of the translation gets source
    words at the same distances. A head that attends at a fixed distance does not score better than in the permutations.

    Attributes:
        fold_assignment: The assignment of documents to folds; sums are kept by fold.
        permutations: The permutations of the links between words.
    """

    fold_assignment: FoldAssignment = field(default_factory=FoldAssignment)
    permutations: Permutations = field(default_factory=Permutations)

    name = "alignment"
    scope = "layer"
    max_tokens = 4096
    scores = (ACCURACY,)
    annotation = Annotation(
        "sure links between words and those of a translation",
        "one in the format `alignments`",
        lambda summary: summary.aligned,
    )

    @classmethod
    def for_corpus(cls, summary: CorpusSummary) -> "WordAlignment":
        """Return the reducer for a corpus of word-aligned translations.

        Raises:
            CorpusError: The corpus has no sure link.
        """
        cls.check_annotation(summary)
        return cls(FoldAssignment.for_corpus(summary), Permutations.for_rows(len(STEPS)))

    def prepare(self, batch: Batch, attention_type: str) -> AlignedWords:
        """Return the words of the translations that are scored, and the source words aligned to each of them.

        Raises:
            HeadscopeError: The model has no decoder that attends to an encoder.
        """
        if batch.decoder is None:
            raise HeadscopeError(
                f"the reducer `{self.name}` needs cross-attention, and the model has none; give an encoder-decoder."
            )
        return AlignedWords.find(batch, batch.decoder, self.fold_assignment, self.permutations)

    def count(self, facts: AlignedWords) -> Sums:
        """Count the scored words, the hits of each rule, all words with tokens, and the sure links, once per step."""
        device = facts.fold.device
        counts = {
            "fold_alignment": total_by_fold(torch.ones_like(facts.fold), facts.fold),
            "linked": torch.tensor(facts.words, device=device),
            "sure": torch.tensor(facts.sure_links, device=device),
        }
        counts |= {f"fold_alignment_{name}": facts.total(right) for name, right in facts.find_by_rule().items()}
        # The counts are the same at both steps.
        return {name: torch.stack([values] * len(STEPS)) for name, values in counts.items()}

    def observe(self, facts: AlignedWords, attention: Attention) -> Sums:
        """Count, for each head and step, the words that the head aligns correctly, and its links that are in the gold.

        The words are counted in the permutations too. Heads of an attention type other than `CROSS` do not attend from
        a translation to its source; their sums are NaN.
        """
        if attention.attention_type != CROSS:
            shapes = {"fold_aligned": (FOLDS,), "sure": (), "gold": ()}
            shapes |= {"alignment_permuted": (self.permutations.count,)} if self.permutations.count else {}
            none = torch.full((attention.heads, len(STEPS)), torch.nan, dtype=torch.float64, device=facts.fold.device)
            return {name: none.view(*none.shape, *[1] * len(shape)).expand(*none.shape, *shape)
                    for name, shape in shapes.items()}  # fmt: skip
        columns = membership(attention.keys.word, facts.source_words)
        average = attention.average(columns)
        parts = []
        for word in (facts.target_word.roll(-1, 1), facts.target_word):
            chosen = _choose_words(average, membership(word, facts.target_words))
            part = {"fold_aligned": facts.total(facts.is_right(chosen)).T, **facts.count_links(chosen)}
            if self.permutations.count:
                part["alignment_permuted"] = facts.score_permutations(chosen)
            parts.append(part)
        return {name: torch.stack([part[name].double() for part in parts], dim=1) for name in parts[0]}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return the accuracy and the error rate of each head (NaN without scored words), and the sums by fold."""
        rows, unit = {"decoder_step": list(STEPS)}, self.fold_assignment.unit
        table = score_table(ACCURACY, {**sums, **counts}, rows, source=GARG, fold_unit=unit)
        links = counts["linked"] + counts["sure"]
        error = 1 - (sums["sure"] + sums["gold"]) / np.where(links > 0, links, np.nan)
        what = "alignment error rate, each word of a translation linked to the source word that it attends to most"
        values: dict[str, Described] = {
            "alignment_error_rate": (error, ("layer", "head", "decoder_step"), what, "share of links"),
        }
        return table.assign(describe(values, OCH)).assign_coords(shift=list(SHIFTS))


def _choose_words(
    average: Float[Tensor, "batch head query word"], unit: Float[Tensor, "batch query target"]
) -> Int[Tensor, "batch target head"]:
    """Return the source word to which each word of a translation attends most in each head; -1 without attention."""
    weight, word = pool_queries(average, unit).max(-1)
    return word.where(weight > 0, -1).transpose(1, 2)
