"""Heads as classifiers of coreference: Clark et al. 2019, section 4.3.

A head finds the antecedent of a mention if, of all other words, the mention's head word attends most to the head word
of an antecedent: an earlier mention of the same chain.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Int
from torch import Tensor

from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch
from headscope.capture.tokens.words import Words
from headscope.corpora.document import Document
from headscope.examples import Item
from headscope.heads import Described, describe
from headscope.reducers.reducer import Annotation, Reducer, Sums
from headscope.reducers.support.antecedents import RULES, choose_antecedent, mentions_of, with_earlier
from headscope.reducers.support.folds import FOLDS, Bins, FoldAssignment
from headscope.reducers.support.permutations import Permutations
from headscope.reducers.support.picks import NO_PICK, pick_at_offset
from headscope.reducers.support.ratios import mean, score_table
from headscope.reducers.support.shifts import ShiftedChains
from headscope.score import OFFSETS, Rival, Score, offset_rival

CLARK = "Clark et al. 2019, section 4.3"
MENTIONS = ("all", "pronoun", "proper", "nominal")
BASELINES = {
    "nearest": "mentions of which the nearest earlier mention is an antecedent",
    "head_match": "mentions of which the nearest earlier mention with the same head word is an antecedent",
    "rules": "mentions of which the first answer of four rules is an antecedent",
}

ACCURACY = Score(
    "antecedent_accuracy",
    "Antecedents of mentions",
    "the share of mentions whose head word attends, of all other words, most to that of an antecedent",
    numerator=("fold_antecedent_correct",), denominator=("fold_antecedent",),
    rivals=(
        offset_rival("fold_antecedent_offset", "fold_antecedent"),
        Rival("nearest", "nearest earlier mention", ("fold_antecedent_nearest",), ("fold_antecedent",)),
        Rival("head_match", "nearest with the same head word", ("fold_antecedent_head_match",), ("fold_antecedent",)),
        Rival("rules", "rules that know the mentions", ("fold_antecedent_rules",), ("fold_antecedent",)),
    ),
    items="mentions", rows="classes of mentions", label="coref: {}", attends="mention",
    permuted="the score after shifting the labels of the chains along the mentions of each text",
    baselines={
        "antecedent_nearest": "nearest earlier mention",
        "antecedent_head_match": "nearest with the same head word",
        "antecedent_rules": "rules that know the mentions",
    },
)  # fmt: skip


@dataclass(frozen=True)
class Coreference(Reducer):
    """How often each head points from a mention at one of its antecedents.

    The corpus annotates the mentions. A chain with a single mention is left out, as in OntoNotes. Only head words
    count: the first word of a mention whose syntactic head lies outside of it, or the last word if the document has no
    tree. A mention is scored if another mention of its chain has a head word before its own. It is left out if its head
    word has no token. An antecedent whose head word has no token, for example after the cut of a pair, is out of the
    reach of a head.

    A mention counts as a pronoun, name or nominal by the part of speech of its head word; without a part of speech it
    counts only in ``all``.

    The rivals of the heads are the word at a fixed offset from the mention's head word (no antecedent follows it, so
    positive offsets find nothing) and three rules that know the mentions (`headscope.reducers.support.antecedents`).

    In the permutations, the labels of a text's chains rotate along its mentions, all by the same number of mentions
    (`headscope.reducers.support.shifts`). A mention is scored if an earlier mention then has its label. So the number
    of scored mentions varies, and shares are compared. A head that attends to any mentions, or to near mentions, does
    not score better than in the permutations. A head that attends to words that are spelt alike does: compare
    ``antecedent_head_match``.

    Attributes:
        fold_assignment: The assignment of documents to folds; sums are kept by fold.
        permutations: The permutations of the labels of the chains.
    """

    fold_assignment: FoldAssignment = field(default_factory=FoldAssignment)
    permutations: Permutations = field(default_factory=Permutations)

    name = "coreference"
    scope = "layer"
    max_tokens = 4096
    scores = (ACCURACY,)
    annotation = Annotation(
        "mentions and their chains",
        "one that has, such as OntoNotes, OntoGUM, LitBank, or UD GUM in the format corefud",
        lambda summary: summary.spans.get("mention"),
    )

    def prepare(self, batch: Batch, attention_type: str) -> "_Mentions":
        """Return the scored mentions of a batch with their antecedents, and all mentions with their permuted chains."""
        have_tokens = batch.encoder.list_words()
        scored: list[tuple[int, int]] = []
        bins: list[tuple[int, int]] = []
        antecedents_of: list[tuple[int, int]] = []
        by_rule: list[list[bool]] = []
        texts = [(document, mentions_of(document)) for document in batch.documents]
        for index, (document, mentions) in enumerate(texts):
            fold = self.fold_assignment.fold(document)
            for mention, earlier in with_earlier(mentions):
                antecedents = {other.head for other in earlier if other.chain == mention.chain}
                if not antecedents or mention.head not in have_tokens[index]:
                    continue
                bins += [(len(scored), MENTIONS.index(name) * FOLDS + fold) for name in mention.classes]
                antecedents_of += [(len(scored), word) for word in antecedents]
                by_rule.append([choose_antecedent(RULES[name], mention, earlier) in antecedents for name in BASELINES])
                scored.append((index, mention.head))
        device = batch.encoder.ids.device
        document_of, word = _columns(scored, 2, device)
        is_antecedent = torch.zeros(len(scored), batch.words, dtype=torch.bool, device=device)
        is_antecedent[_columns(antecedents_of, 2, device)] = True
        rules = torch.tensor(by_rule, dtype=torch.bool, device=device).view(-1, len(BASELINES))
        item, place = _columns(bins, 2, device)
        folds = Bins(item, place, len(MENTIONS))
        shifted = ShiftedChains.permute(self.permutations, texts, have_tokens, MENTIONS, device)
        return _Mentions(document_of, word, is_antecedent, rules, folds, shifted)

    def count(self, facts: "_Mentions") -> Sums:
        """Count the scored mentions, and the mentions for which each rule and each fixed offset finds an antecedent."""
        by_rule = facts.folds.total(facts.by_rule)
        return {
            "fold_antecedent": facts.folds.total(torch.ones_like(facts.word, dtype=torch.bool)[:, None])[..., 0],
            "fold_antecedent_offset": facts.folds.total(facts.at_offsets(OFFSETS)),
            **({"antecedent_permuted_count": facts.shifted.count()} if self.permutations.count else {}),
        } | {f"fold_antecedent_{name}": by_rule[..., index] for index, name in enumerate(BASELINES)}

    def list_items(self, facts: "_Mentions") -> list[tuple[int, Item]]:
        """Return pairs of a document index and an item: a scored mention of the batch with its antecedents."""
        targets = [tuple(row.nonzero().flatten().tolist()) for row in facts.is_antecedent]
        columns = (facts.document.tolist(), facts.word.tolist(), targets, facts.folds.list_rows(len(targets)))
        return [
            (document, Item(word, antecedents, tuple(f"{ACCURACY.stem}:{MENTIONS[row]}" for row in rows)))
            for document, word, antecedents, rows in zip(*columns, strict=True)
        ]

    def find_counting(self, facts: "_Mentions") -> Bool[Tensor, "mention 1"]:
        """Return True for each scored mention, since all of them count."""
        return torch.ones_like(facts.word, dtype=torch.bool)[:, None]

    def judge(self, facts: "_Mentions", words: Words) -> Bool[Tensor, "mention head 1"]:
        """Return whether each head finds an antecedent of each mention."""
        points = words.attends.weight[facts.document, :, facts.word] > 0
        word = words.attends.word[facts.document, :, facts.word]
        return (facts.is_antecedent.gather(1, word) & points)[..., None]

    def pick(
        self, document: Document, item: Item, direction: int, rule: str, options: Mapping[str, str]
    ) -> tuple[int, int] | None:
        """Return the head word of a mention, and the head word of the antecedent that a rule chooses for the mention.

        The second word is `NO_PICK` if the rule chooses none. The result is None if the rule is unknown, or if the
        document does not have the mention.
        """
        if "offset" in options:
            return item.source, pick_at_offset(document, item.source, int(options["offset"]))
        for mention, earlier in with_earlier(mentions_of(document)) if rule in RULES else ():
            antecedents = {other.head for other in earlier if other.chain == mention.chain}
            if (mention.head, antecedents) == (item.source, {*item.targets}):
                word = choose_antecedent(RULES[rule], mention, earlier)
                return item.source, NO_PICK if word is None else word
        return None

    def observe(self, facts: "_Mentions", attention: Attention) -> Sums:
        """Count the mentions for which each head finds an antecedent, also in the permutations."""
        words = attention.words()
        right, pointing = self.judge(facts, words)[..., 0], words.attends
        sums = {"fold_antecedent_correct": facts.folds.total(right).movedim(-1, 0)}
        return sums | ({"antecedent_permuted": facts.shifted.score(pointing)} if self.permutations.count else {})

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return the accuracies of heads and rules by class of mentions (NaN without mentions), and sums by fold."""
        rows, unit = {"mention": MENTIONS}, self.fold_assignment.unit
        table = score_table(ACCURACY, {**sums, **counts}, rows, source=CLARK, fold_unit=unit)
        total = counts["fold_antecedent"].sum(-1)
        offsets = mean(counts["fold_antecedent_offset"].sum(1), total[:, None])
        there, share = "mentions that have an antecedent at a fixed offset", "share of mentions"
        values: dict[str, Described] = {
            "antecedent_offset": (offsets, ("mention", "offset"), there, share),
        }
        for name, what in BASELINES.items():
            right = mean(counts[f"fold_antecedent_{name}"].sum(-1), total)
            values[f"antecedent_{name}"] = (right, ("mention",), what, share)
        return table.assign(describe(values, CLARK)).assign_coords(offset=list(OFFSETS))


@dataclass(frozen=True, eq=False)
class _Mentions:
    """The scored mentions of a batch.

    Attributes:
        document: The index in the batch of the document of each mention.
        word: The head word of each mention.
        is_antecedent: For each mention, whether each word is the head word of an antecedent.
        by_rule: For each mention, whether each baseline finds an antecedent.
        folds: The classes and folds in which the mentions count.
        shifted: All mentions, scored or not, with the chains that they have in the permutations.
    """

    document: Int[Tensor, " mention"]
    word: Int[Tensor, " mention"]
    is_antecedent: Bool[Tensor, "mention word"]
    by_rule: Bool[Tensor, "mention rule"]
    folds: Bins
    shifted: ShiftedChains

    def at_offsets(self, offsets: tuple[int, ...]) -> Bool[Tensor, "mention offset"]:
        """Return whether the head word of an antecedent is at each offset from the head word of the mention."""
        words = self.is_antecedent.shape[1]
        there = self.word[:, None] + torch.tensor(offsets, device=self.word.device)
        inside = (there >= 0) & (there < words)
        return self.is_antecedent.gather(1, there.clamp(0, words - 1)) & inside


def _columns(rows: Sequence[tuple[int, ...]], count: int, device: torch.device) -> tuple[Int[Tensor, " row"], ...]:
    return torch.tensor(rows, dtype=torch.long, device=device).reshape(-1, count).T.unbind()
