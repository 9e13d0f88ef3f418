"""Attention between a predicate and what fills its semantic roles: Kovaleva et al. 2019, section 4.2.

The weight between two words is the largest weight between any token of one and any token of the other. The baseline is
the mean of such weights over all pairs of words of a short sentence that are not neighbours.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Int, Int64
from torch import Tensor

from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch
from headscope.corpora.document import Document, Link
from headscope.corpora.summary import CorpusSummary
from headscope.errors import HeadscopeError
from headscope.heads import SHARE, Described, describe
from headscope.reducers.reducer import Annotation, Reducer, Sums
from headscope.reducers.support.folds import FoldAssignment, total_by_fold
from headscope.reducers.support.ratios import mean, score_table
from headscope.score import OFFSETS, Score, offset_rival

KOVALEVA = "Kovaleva et al. 2019, section 4.2"
ROLE = "role"
LEFT_OUT = {
    "role": "links left out, whose role is not asked for or not core to its frame",
    "sentence": "links left out, whose sentence is too long",
    "element": "links left out, whose role is filled by too many words",
    "distance": "links left out, whose two ends are too near to each other",
}
"""The reasons why a link does not count. A link with several reasons is counted under the first."""

# A weight varies less than a yes or no with the same mean, so its interval is too wide rather than too narrow.
WEIGHT = Score(
    "role_weight",
    "Semantic roles",
    "the largest weight between a predicate and what fills a role of it, as a mean over links",
    numerator=("fold_role_weight",), denominator=("fold_role",),
    rivals=(offset_rival("fold_role_offset", "fold_role"),),
    items="links", rows="weights of roles", label="roles, weight", attends="either",
    baselines={"role_weight_anywhere": "this head, any two words"},
)  # fmt: skip

_OTHERS = ("ARGM", "R-", "C-")
"""The prefixes of PropBank labels that are not core roles: modifiers, references, continuations."""

_MARGINAL = ("peripheral_element", "extra_thematic_element")
"""The kinds of spans with which FrameNet marks an element that is not core to its frame."""


@dataclass(frozen=True)
class Roles(Reducer):
    """The largest weight between a predicate and what fills a role of it, in either direction, as a mean over links.

    The limits are those of the paper, which keep sentences that evoke one frame and pairs that are not neighbours. They
    count the words of the corpus (the paper counts tokens), so that every model has the same links. In texts that are
    read as written, the words of a role and distances are counted in units. The words of a role are the span
    ``element`` around the source of a link, and its predicate is the span ``target`` around the link's target. Without
    such spans (Universal Propositions has only head words) the two words themselves are taken, and the limit on the
    words of a role leaves nothing out. Like the paper, the reducer takes only core roles: those of `labels` that
    FrameNet does not call peripheral or extra-thematic.

    There are two baselines. The first, for each head, is the weight between any two words of the sentence that are far
    enough apart, as a mean over all such pairs (of single words, so that a role of several words has the better
    chance). The second is the value of a head that has all its weight on the word at a fixed offset; an offset before
    and the same offset after give the same value.

    Attributes:
        labels: The roles that count.
        max_words: The largest number of words of a sentence.
        max_element: The largest number of words that fill a role.
        min_distance: The least distance in words between the nearest two words; 2 leaves out neighbours.
        fold_assignment: The assignment of documents to folds; sums are kept by fold.
    """

    labels: tuple[str, ...]
    max_words: int = 12
    max_element: int = 3
    min_distance: int = 2
    fold_assignment: FoldAssignment = field(default_factory=FoldAssignment)

    name = "roles"
    scope = "layer"
    max_tokens = 4096
    scores = (WEIGHT,)
    annotation = Annotation(
        "links of core semantic roles", "one that has, such as Universal Propositions", lambda summary: _core(summary)
    )

    def __post_init__(self) -> None:
        """Raise an error if one of the limits is below 1."""
        for what in ("max_words", "max_element", "min_distance"):
            if getattr(self, what) < 1:
                raise HeadscopeError(f"the reducer `roles` has a {what} of {getattr(self, what)}; give 1 or more.")

    @classmethod
    def for_corpus(cls, summary: CorpusSummary) -> "Roles":
        """Return the reducer for the core roles of a corpus, with the limits of the paper."""
        cls.check_annotation(summary)
        return cls(_core(summary), fold_assignment=FoldAssignment.for_corpus(summary))

    def prepare(self, batch: Batch, attention_type: str) -> "_RoleLinks":
        """Return the links of a batch that count, and the pairs of words whose weights are read."""
        device = batch.encoder.ids.device
        left_out: Counter[str] = Counter()
        links_of: Counter[int] = Counter()
        folds: list[int] = []
        offsets: list[list[bool]] = []
        cells: list[tuple[int, int, int, int]] = []
        for index, (document, tokens) in enumerate(zip(batch.documents, batch.encoder.list_words(), strict=True)):
            for argument, predicate in _ends(self, document, tokens, left_out):
                links_of[index] += 1
                steps = {there - here for here in argument for there in predicate}
                offsets.append([offset in steps or -offset in steps for offset in OFFSETS])
                cells += [(len(folds), len(links_of) - 1, here, there) for here in argument for there in predicate]
                folds.append(self.fold_assignment.fold(document))
        documents = torch.tensor(list(links_of), dtype=torch.long, device=device)
        links = torch.tensor(list(links_of.values()), dtype=torch.double, device=device)
        words = max((len(batch.documents[index].words) for index in links_of), default=0)
        word = torch.arange(words, device=device)
        have_tokens = (batch.encoder.word[documents, None] == word[:, None]).any(-1)
        far = have_tokens[:, :, None] & have_tokens[:, None] & (word - word[:, None] >= self.min_distance)
        anywhere = far * (links / far.sum((1, 2)))[:, None, None]
        reasons = [left_out[reason] for reason in LEFT_OUT]
        fold, cell, count = (torch.tensor(n, dtype=torch.long, device=device) for n in (folds, cells, reasons))
        at_offset = torch.tensor(offsets, dtype=torch.bool, device=device).view(-1, len(OFFSETS))
        return _RoleLinks(documents, words, fold, at_offset, cell.reshape(-1, 4).T, anywhere, count)

    def count(self, facts: "_RoleLinks") -> Sums:
        """Count by fold the scored links and the hits of fixed offsets; count by reason the links that are left out."""
        return {
            "fold_role": total_by_fold(torch.ones_like(facts.fold), facts.fold),
            "fold_role_offset": total_by_fold(facts.at_offset.long(), facts.fold),
            "left_out": facts.left_out,
        }

    def observe(self, facts: "_RoleLinks", attention: Attention) -> Sums:
        """Sum over links each head's largest weight in each direction, and its mean weight between any two words."""
        between = _between_words(attention, facts.documents, facts.words)
        either = torch.maximum(between, between.mT)
        from_argument, from_predicate = facts.strongest_weights(between), facts.strongest_weights(between.mT)
        weight = torch.maximum(from_argument, from_predicate)
        anywhere = (either.double() * facts.anywhere[:, None]).sum((0, 2, 3))
        return {
            "fold_role_weight": total_by_fold(weight.double(), facts.fold).mT,
            "each": torch.stack([from_argument.double().sum(0), from_predicate.double().sum(0), anywhere], dim=-1),
        }

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return the mean weights of heads and baselines, and the sums by fold."""
        share, unit = SHARE, self.fold_assignment.unit
        table = score_table(WEIGHT, {**sums, **counts}, source=KOVALEVA, units=share, fold_unit=unit)
        table["fold_role_weight"].attrs["units"] = "sum of weights"
        links = np.asarray(counts["fold_role"].sum())
        each, offset = (mean(total, links) for total in (sums["each"], counts["fold_role_offset"].sum(0)))
        by_head = ("layer", "head")
        largest = "largest weight between a predicate and what fills a role of it"
        far = f"largest weight between two words of the sentence that are {self.min_distance} or more apart"
        fixed = "what a head would get with all its weight at a fixed offset"
        values: dict[str, Described] = {
            "role_weight_from_argument": (each[..., 0], by_head, f"{largest}, from the latter", share),
            "role_weight_from_predicate": (each[..., 1], by_head, f"{largest}, from the predicate", share),
            "role_weight_anywhere": (each[..., 2], by_head, f"{far}, as a mean over all of them", share),
            "role_weight_offset": (offset, ("offset",), fixed, share),
        }
        values |= {
            f"role_left_out_{reason}": (counts["left_out"][place], (), name, "links")
            for place, (reason, name) in enumerate(LEFT_OUT.items())
        }
        return table.assign(describe(values, KOVALEVA)).assign_coords(offset=list(OFFSETS))


@dataclass(frozen=True, eq=False)
class _RoleLinks:
    """The links of a batch that count.

    Attributes:
        documents: The indices in the batch of the documents that have such links.
        words: The number of words of the longest of these documents.
        fold: The fold of each link.
        at_offset: For each link, whether a word of one end is at each offset from a word of the other end.
        cells: For each pair of a word of the argument and a word of the predicate, the link, its document (as an index
            in `documents`) and the two words.
        anywhere: For each document, the number of its links, divided evenly among all pairs of words that are far
            enough apart.
        left_out: The number of links that do not count, for each of `LEFT_OUT`.
    """

    documents: Int[Tensor, " document"]
    words: int
    fold: Int[Tensor, " link"]
    at_offset: Bool[Tensor, "link offset"]
    cells: Int[Tensor, "part cell"]
    anywhere: Float[Tensor, "document word word"]
    left_out: Int64[Tensor, " reason"]

    def strongest_weights(self, between: Float[Tensor, "document head word word"]) -> Float[Tensor, "link head"]:
        """Return for each link the largest weight from a word of its argument to a word of its predicate."""
        link, document, source, target = self.cells
        weights = between[document, :, source, target]
        largest = weights.new_zeros(len(self.fold), weights.shape[1])
        return largest.scatter_reduce_(0, link[:, None].expand_as(weights), weights, "amax")


def _ends(
    roles: Roles, document: Document, have_tokens: frozenset[int], left_out: Counter[str]
) -> Iterator[tuple[set[int], set[int]]]:
    """Yield the argument words and the predicate words of each link that counts; count others in `left_out`.

    Only words with tokens are yielded. A link that would count, but has an end without a token, is neither
    yielded nor counted.
    """
    for link in document.links:
        if link.kind != ROLE:
            continue
        argument, predicate, core = _ends_of(document, link)
        reasons = {
            "role": not core or link.label not in roles.labels,
            "sentence": len(document.original.words) > roles.max_words,
            "element": len(argument) > roles.max_element,
            "distance": min(abs(here - there) for here in argument for there in predicate) < roles.min_distance,
        }
        because = next((reason for reason, holds in reasons.items() if holds), None)
        if because is not None:
            left_out[because] += 1
        elif {link.source, link.target} <= have_tokens:  # links of words without tokens are counted as skipped
            yield argument & have_tokens, predicate & have_tokens


def _ends_of(document: Document, link: Link) -> tuple[set[int], set[int], bool]:
    """Return the words of the two spans that a link joins (or the words themselves), and whether the role is core."""
    targets = [span for span in document.spans if span.kind == "target"]
    for number in sorted({span.label for span in targets if span.start <= link.target < span.end}):
        label = f"{number} {link.label}"
        around = [span for span in document.spans if span.label == label and span.start <= link.source < span.end]
        # An element in several pieces has a link for each piece.
        if element := next((span for span in around if span.kind == "element"), None):
            predicate = {word for span in targets if span.label == number for word in range(span.start, span.end)}
            return set(range(element.start, element.end)), predicate, not any(span.kind in _MARGINAL for span in around)
    return {link.source}, {link.target}, True


def _between_words(
    attention: Attention, documents: Int[Tensor, " document"], words: int
) -> Float[Tensor, "document head word word"]:
    """Return the largest weight from a token of one word to a token of another; 0 where a word has no token."""
    weights = attention.weights()[documents]
    # Tokens without a word go to an extra index after the last word.
    query, key = (tokens.word[documents] for tokens in (attention.queries, attention.keys))
    query, key = (word.where(word >= 0, words) for word in (query, key))
    count, heads, queries, _ = weights.shape
    to_words = weights.new_zeros(count, heads, queries, words + 1)
    to_words.scatter_reduce_(3, key[:, None, None].expand_as(weights), weights, "amax")
    between = weights.new_zeros(count, heads, words + 1, words + 1)
    between.scatter_reduce_(2, query[:, None, :, None].expand_as(to_words), to_words, "amax")
    return between[:, :, :words, :words]


def _core(summary: CorpusSummary) -> tuple[str, ...]:
    """Return the labels of the core roles of a corpus, sorted."""
    return tuple(sorted(label for label in summary.links.get(ROLE, {}) if not label.startswith(_OTHERS)))
