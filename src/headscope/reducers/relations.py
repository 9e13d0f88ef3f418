"""Heads as classifiers that nobody trained: Clark et al. 2019, sections 4.1 and 4.2.

A head's prediction for a word is the *other* word that it attends to most
(``dependent_to_head``), or the other word that attends to it most (``head_to_dependent``). It is
right if that word is the gold head of the dependency. Links of other kinds (semantic roles, a user's
own) are scored in the same way, from their source to their target.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Int, Int64
from torch import Tensor

from headscope.capture.attention import Attention
from headscope.capture.batch import Batch
from headscope.capture.words import Pointing
from headscope.corpora.corpus import CorpusSummary
from headscope.corpora.document import Document, Link
from headscope.errors import CorpusError
from headscope.reducers.reducer import Sums, missing_annotation
from headscope.reducers.support.folds import FOLDS, Bins, FoldAssignment
from headscope.reducers.support.nearest import CLASSES, SIDES, find_by_class
from headscope.reducers.support.permutations import AT_ONCE, Permutations
from headscope.reducers.support.ratios import Described, describe, mean, score_table
from headscope.score import Rival, Score, offset_rival

CLARK = "Clark et al. 2019, sections 4.1 and 4.2"
DIRECTIONS = ("dependent_to_head", "head_to_dependent")
OFFSETS = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
LENGTHS = (-6, *OFFSETS, 6)
"""Lengths of links, from the source to the target in words, that are counted apart; the first and last are open."""

DEPENDENCY, ALL = "dependency", "all"

ACCURACY = Score(
    "relation_accuracy",
    "Relations between words",
    "the share of links for which, of all other words, the one at one end attends most to the one at the other end",
    numerator=("fold_correct",), denominator=("fold_link",),
    rivals=(
        offset_rival("fold_offset", "fold_link"),
        Rival(
            "upos", "nearest word of a part of speech", ("fold_upos",), ("fold_link",), ("side", "word_class"),
            "nearest {word_class} ({side})", needs="parts of speech",
        ),
    ),
    items="links", rows="relations",
    permuted="the score after moving each gold link to another place in its text, keeping its length",
    breakdown="length", prefix="",
)  # fmt: skip


@dataclass(frozen=True)
class Relations:
    """How often each head points from the source of a link at its target, or from the target at its source.

    Attention *to* a split word is summed over its tokens, attention *from* it averaged; special
    tokens belong to no word and are left out. Of equal weights the first word counts. A word that
    may attend to no other word (the first one under a causal mask) predicts nothing, and is wrong.

    The sums are kept in folds of the corpus, so that `headscope.analyse` can say how far they vary,
    choose a head on one half of the corpus and score it on the other, without a second pass.

    The heads have two rivals that need no model: the word at a fixed offset, and the nearest word of a part of speech
    on one side or on either, from either end of the link (`headscope.reducers.support.nearest`).

    Whether a head does better than one that looks as far is seen on permutations that put each link elsewhere
    in its document, at the same length (`headscope.reducers.support.permutations`), and on the links of each length.

    Attributes:
        links: kind and label of the links of the corpus.
        fold_assignment: of the documents to the folds.
        permutations: of the links.
        upos: the corpus has universal parts of speech.
    """

    links: tuple[tuple[str, str], ...]
    fold_assignment: FoldAssignment = field(default_factory=FoldAssignment)
    permutations: Permutations = field(default_factory=Permutations)
    upos: bool = False

    name: ClassVar[str] = "relations"
    scores: ClassVar[tuple[Score, ...]] = (ACCURACY,)
    scope: ClassVar[Literal["rows", "layer", "pass"]] = "layer"
    models: ClassVar[Literal[1, 2]] = 1
    max_tokens: ClassVar[int | None] = 4096

    @classmethod
    def supports(cls, summary: CorpusSummary) -> bool:
        """True if a corpus has links between words."""
        return bool(summary.links)

    @classmethod
    def for_corpus(cls, summary: CorpusSummary) -> "Relations":
        """The reducer for the links that the corpus has.

        Raises:
            CorpusError: it has none, or two of its rows would have one name.
        """
        links = [(kind, label) for kind, counts in summary.links.items() for label in counts]
        if not cls.supports(summary):
            raise missing_annotation(cls.name, "links between words", "a treebank (CoNLL-U)")
        reducer = cls(tuple(sorted(links)), FoldAssignment.for_corpus(summary), upos=bool(summary.spans.get("upos")))
        reducer = replace(reducer, permutations=Permutations.for_rows(len(reducer.rows)))
        twice = [name for name, count in Counter(reducer.rows).items() if count > 1]
        if twice:
            raise CorpusError(
                f"the corpus has links labelled {twice[0]!r}, which is the name of a row that pools others; "
                "call the label something else."
            )
        return reducer

    @property
    def rows(self) -> tuple[str, ...]:
        """The values of the dimension ``relation``.

        Each dependency label as it stands; ``label:*`` for a label together with its subtypes, where
        it has any; and ``all``, which is every dependency but punctuation (the root has no link);
        Clark's ``all`` counts both. For links of another kind ``kind label`` and ``kind all``.
        """
        dependencies = [label for kind, label in self.links if kind == DEPENDENCY]
        bases = dict.fromkeys(label.split(":")[0] for label in dependencies if ":" in label)
        others = [f"{kind} {label}" for kind, label in self.links if kind != DEPENDENCY]
        kinds = dict.fromkeys(kind for kind, _ in self.links)
        pooled = [ALL if kind == DEPENDENCY else f"{kind} {ALL}" for kind in kinds]
        return (*pooled, *dependencies, *(f"{base}:*" for base in bases), *others)

    def rows_of(self, kind: str, label: str) -> Iterable[str]:
        """The rows in which a link of this kind and label counts."""
        base = label.split(":")[0]
        if kind != DEPENDENCY:
            return f"{kind} {label}", f"{kind} {ALL}"
        return (name for name in (label, f"{base}:*", ALL if base != "punct" else "") if name in self.rows)

    def prepare(self, batch: Batch, attention_type: str) -> "_Links":
        """The links of a batch, where they count, and where they go in each permutation."""
        row_of = {name: index for index, name in enumerate(self.rows)}
        rows_of = {link: [row_of[name] for name in self.rows_of(*link)] for link in self.links}
        label_of = {link: index for index, link in enumerate(self.links)}
        have_tokens = [set(row) - {-1} for row in batch.encoder.word.tolist()]
        links: list[tuple[int, int, int]] = []
        by_rule = [np.empty((0, len(DIRECTIONS), len(SIDES), len(CLASSES)), dtype=bool)]
        bins: list[tuple[int, int, int]] = []
        by_label: defaultdict[int, list[int]] = defaultdict(list)
        permuted = [np.empty((0, self.permutations.count), dtype=np.int64)]
        for index, document in enumerate(batch.documents):
            fold, inside = self.fold_assignment.fold(document), have_tokens[index]
            scored = [link for link in document.links if {link.source, link.target} <= inside]
            if self.upos:
                by_rule.append(find_by_class(document, scored))
            for link in scored:
                length = LENGTHS.index(max(LENGTHS[0], min(link.target - link.source, LENGTHS[-1])))
                bins += [
                    (len(links), row * FOLDS + fold, row * len(LENGTHS) + length)
                    for row in rows_of[link.kind, link.label]
                ]
                by_label[label_of[link.kind, link.label]].append(len(links))
                links.append((index, link.source, link.target))
            permuted.append(index * batch.words + _permute_sources(self.permutations, document, scored, inside))
        device = batch.encoder.ids.device
        document_of, dependent, head = torch.tensor(links, dtype=torch.long, device=device).reshape(-1, 3).T
        link_of, fold_bin, length_bin = torch.tensor(bins, dtype=torch.long, device=device).reshape(-1, 3).T
        folds, lengths = Bins(link_of, fold_bin, len(row_of)), Bins(link_of, length_bin, len(row_of), len(LENGTHS))
        items_of = {label: torch.tensor(items, device=device) for label, items in by_label.items()}
        sources = torch.from_numpy(np.concatenate(permuted)).to(device)
        rules = torch.from_numpy(np.concatenate(by_rule)).flatten(1) if self.upos else torch.empty(len(links), 0).bool()
        return _Links(document_of, dependent, head, folds, lengths, items_of, sources, rules.to(device))

    def count(self, facts: "_Links") -> Sums:
        """The number of links, and of those that each fixed offset and each part of speech finds."""
        distance = (facts.head - facts.dependent)[:, None] == torch.tensor(OFFSETS, device=facts.head.device)
        links = torch.ones_like(facts.head, dtype=torch.bool)[:, None]
        counts = {
            "link": facts.folds.total(links)[..., 0],
            "offset": facts.folds.total(distance),
            "length": facts.lengths.total(links)[..., 0],
        }
        return counts | ({"upos": facts.folds.total(facts.by_rule)} if self.upos else {})

    def observe(self, facts: "_Links", attention: Attention) -> Sums:
        """The number of links that each head gets right, in each direction."""
        words = attention.words()
        by_direction = []
        for pointing in (words.attends, words.attended):
            points = pointing.weight[facts.document, :, facts.dependent] > 0
            by_direction.append(points & (pointing.word[facts.document, :, facts.dependent] == facts.head[:, None]))
        right = torch.stack(by_direction, dim=-1).flatten(1)
        hits = {"correct": facts.folds.total(right), "at_length": facts.lengths.total(right)}
        if self.permutations.count:
            hits["permuted"] = facts.score_permutations((words.attends, words.attended), len(self.links))
        by_head = (attention.heads, len(DIRECTIONS))
        return {name: count.view(*count.shape[:-1], *by_head).movedim((2, 3), (0, 1)) for name, count in hits.items()}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Accuracies, and the sums by fold from which their uncertainty follows."""
        parts = {"fold_correct": sums["correct"], "fold_link": counts["link"], "fold_offset": counts["offset"]}
        if "upos" in counts:
            by_rule = counts["upos"].reshape(*counts["upos"].shape[:-1], len(DIRECTIONS), len(SIDES), len(CLASSES))
            parts["fold_upos"] = np.moveaxis(by_rule, 2, 0)
        if "permuted" in sums:
            parts["relation_permuted"] = sums["permuted"]
        rows, unit = {"direction": DIRECTIONS, "relation": self.rows}, self.fold_assignment.unit
        pooled = [[i for i, link in enumerate(self.links) if row in self.rows_of(*link)] for row in self.rows]
        table = score_table(ACCURACY, parts, rows, source=CLARK, fold_unit=unit, pooled=pooled)
        total = counts["link"].sum(-1)
        offsets = mean(counts["offset"].sum(1), total[:, None])
        at_length = mean(sums["at_length"].transpose(0, 1, 3, 2, 4), counts["length"][:, None])
        by_length = ("layer", "head", "relation", "direction", "length")
        share, links = "share of links", "links"
        values: dict[str, Described] = {
            "offset_accuracy": (offsets, ("relation", "offset"), "links whose head stands at a fixed offset", share),
            "length_accuracy": (at_length, by_length, "links of a length that the head gets right", share),
            "length_count": (counts["length"], ("relation", "length"), "links of a length", links),
        }
        table = table.assign(describe(values, CLARK)).assign_coords(offset=list(OFFSETS), length=list(LENGTHS))
        if "fold_upos" in table:
            table = table.assign_coords(side=list(SIDES), word_class=list(CLASSES))
        table["relation_accuracy"] = table["relation_accuracy"].transpose("layer", "head", "relation", "direction")
        by_count = sorted(range(len(total)), key=lambda row: (self.rows[row] != ALL, -total[row]))
        return table.isel(relation=by_count)


@dataclass(frozen=True, eq=False)
class _Links:
    """The gold links of a batch.

    Attributes:
        document, dependent, head: of each link.
        folds, lengths: where each link counts, by relation and fold, and by relation and length.
        by_label: the links of each label that is there, which no two share.
        permuted: where the dependent stands in each permutation, in the flattened axes document and word.
        by_rule: for each link, the rules by part of speech that find it, by direction, side and class; none where the
            corpus has no parts of speech.
    """

    document: Int[Tensor, " link"]
    dependent: Int[Tensor, " link"]
    head: Int[Tensor, " link"]
    folds: Bins
    lengths: Bins
    by_label: Mapping[int, Int[Tensor, " item"]]
    permuted: Int[Tensor, "link permutation"]
    by_rule: Bool[Tensor, "link rule"]

    def score_permutations(self, directions: Sequence[Pointing], labels: int) -> Int64[Tensor, "label permutation any"]:
        """The links of each label that the heads get right in each permutation; the last axis is head and direction."""
        distances = []
        for pointing in directions:
            word = torch.arange(pointing.word.shape[-1], device=pointing.word.device)
            # No link has the length 0.
            distances.append((pointing.word - word).where(pointing.weight > 0, 0).to(torch.int16))
        by_word = torch.stack(distances, dim=-1).transpose(1, 2).flatten(0, 1).flatten(1)
        length = (self.head - self.dependent).to(torch.int16)
        total = by_word.new_zeros((labels, self.permuted.shape[1], by_word.shape[1]), dtype=torch.long)
        for label, items in self.by_label.items():
            for some in torch.split(items, AT_ONCE):
                total[label] += (by_word[self.permuted[some]] == length[some, None, None]).sum(0)
        return total


def _permute_sources(
    permutations: Permutations, document: Document, links: Sequence[Link], words: Set[int]
) -> Int[np.ndarray, "link permutation"]:
    """The source of each link in each permutation: any word of these from which another stands at the length of the
    link.
    """
    length = np.array([link.target - link.source for link in links], dtype=np.int64)
    sources = {far: np.array([word for word in sorted(words) if word + far in words]) for far in set(length.tolist())}
    permuted = permutations.choose(document, [len(sources[far]) for far in length.tolist()])
    for row, far in enumerate(length.tolist()):
        permuted[row] = sources[far][permuted[row]]
    return permuted
