"""Heads as classifiers without training: Clark et al. 2019, sections 4.1 and 4.2.

A head's prediction for a word is the *other* word that it attends to most (``dependent_to_head``), or the other word
that attends to it most (``head_to_dependent``). The prediction is right if that word is the gold head of the
dependency. Links of other kinds (semantic roles, your own links) are scored in the same way, from their source to their
target.

Links with their own wrong answers (`Link.rivals`) are scored a second time, as choices among candidates.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Shaped
from torch import Tensor

from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch
from headscope.capture.tokens.words import Words
from headscope.corpora.document import Document, Link
from headscope.corpora.summary import CorpusSummary
from headscope.errors import CorpusError, HeadscopeError
from headscope.examples import Item
from headscope.heads import Described, describe
from headscope.reducers.reducer import Annotation, Reducer, Sums
from headscope.reducers.support.candidates import (
    COUNTED,
    TARGET,
    Choices,
    lay_out_candidates,
    permute_targets,
)
from headscope.reducers.support.directions import (
    DIRECTIONS,
    count_by_direction,
    find_scored,
    put_direction_first,
)
from headscope.reducers.support.folds import FOLDS, Bins, FoldAssignment
from headscope.reducers.support.links import Links, Text, number_labels, permute_links
from headscope.reducers.support.nearest import CLASSES, SIDES, find_by_class
from headscope.reducers.support.permutations import Permutations, PermutedItems
from headscope.reducers.support.picks import pick_for_link
from headscope.reducers.support.ratios import mean, score_table
from headscope.reducers.support.rules import ENDS, Rule, find_by_rules, refuse_silent_rules
from headscope.score import OFFSETS, Rival, Score, offset_rival

CLARK = "Clark et al. 2019, sections 4.1 and 4.2"
LENGTHS = (-6, *OFFSETS, 6)
"""Lengths of links (target minus source, in words) that are counted separately; -6 and 6 include all longer links."""

DEPENDENCY, ALL = "dependency", "all"

OWN_RULE, RULE_LABEL = "best of your own rules", "{rule}, from the {end}"

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
        Rival("rule", OWN_RULE, ("fold_rule",), ("fold_link",), ("rule", "end"), RULE_LABEL),
    ),
    items="links", rows="relations",
    permuted="the score after moving each gold link to another place in its text, keeping its length",
    breakdown="length", prefix="",
)  # fmt: skip

CANDIDATES = Score(
    "candidate_accuracy",
    "Choices among candidates",
    "the share of links with rivals for which, of the target and its rivals, the target is the word that the source "
    "attends to most, or that attends to the source most",
    numerator=("fold_candidate_correct",), denominator=("fold_candidate",),
    rivals=(
        Rival("chance", "guessing among the candidates", ("fold_candidate_chance",), ("fold_candidate",)),
        Rival("nearest", "nearest candidate", ("fold_candidate_nearest",), ("fold_candidate",)),
        Rival("rule", OWN_RULE, ("fold_candidate_rule",), ("fold_candidate",), ("rule", "end"), RULE_LABEL),
    ),
    items="choices", rows="relations with candidates", label="candidates: {}",
    permuted="the score where the right one of the candidates of each link is any of them, at random",
)  # fmt: skip


@dataclass(frozen=True)
class Relations(Reducer):
    """How often each head points from the source of a link at its target, or from the target at its source.

    Attention *to* a split word is the sum over its tokens; attention *from* it is the mean over them. Special tokens
    belong to no word and are left out. Of equal weights the first word counts. A word that may attend to no other word
    predicts nothing, and is wrong.

    In a decoder a word sees only the words before it. So each direction is scored only on the links that point back in
    that direction: dependents after their head, or heads after their dependent. The rivals are scored on the same
    links. Each link counts in one direction; ``relation_left_out`` is the number of links that do not count in each.

    The sums are kept by fold. From them `headscope.analyse` can estimate how far they vary, and choose a head on one
    half of the corpus and score it on the other, without a second pass.

    The heads have two rivals that need no model: the word at a fixed offset, and the nearest word of a part of speech
    on one side or on either, from either end of the link (`headscope.reducers.support.nearest`).

    Two measures show whether a head does better than a head that merely attends at the same distances: permutations
    that move each link to another place at the same length (`headscope.reducers.support.permutations`), and the scores
    on the links of each length.

    A link with rivals is also a choice among its candidates, the target and the rivals. The choice is right if the
    source attends most to the target, or if the target attends most to the source. If several candidates have the
    largest weight, the choice is wrong. A choice counts if all of its candidates have tokens. The rivals of heads are a
    guess among the candidates and the candidate nearest to the source; in the permutations a random candidate is the
    right one. In a decoder all candidates must be on the side that can be seen.

    Your own rules are further rivals, for links and for choices. A rule is right if it leads from the source to the
    target or, from the other end, from the target to the source. The better end is chosen in the same way as the
    offset.

    Attributes:
        links: The pairs of kind and label of the links in the corpus.
        fold_assignment: The assignment of documents to folds; sums are kept by fold.
        permutations: The permutations of the links.
        upos: Whether the corpus has universal parts of speech.
        candidates: Whether the corpus has links with rivals.
        rules: Your own rules (`headscope.reducers.Rule`).

    Raises:
        HeadscopeError: Two rules have the same name.
    """

    links: tuple[tuple[str, str], ...]
    fold_assignment: FoldAssignment = field(default_factory=FoldAssignment)
    permutations: Permutations = field(default_factory=Permutations)
    upos: bool = False
    candidates: bool = False
    rules: Sequence[Rule] = ()

    name = "relations"
    scope = "layer"
    max_tokens = 4096
    scores = (ACCURACY, CANDIDATES)
    annotation = Annotation("links between words", "a treebank (CoNLL-U)", lambda summary: summary.links)

    def __post_init__(self) -> None:
        """Raise an error if two rules have the same name; store the rules as a tuple."""
        object.__setattr__(self, "rules", tuple(self.rules))
        names = [rule.name for rule in self.rules]
        if twice := [name for name in names if names.count(name) > 1]:
            raise HeadscopeError(f"the rule {twice[0]!r} is named twice; name each once.")

    @classmethod
    def for_corpus(cls, summary: CorpusSummary, rules: Sequence[Rule] = ()) -> "Relations":
        """Return the reducer for the links of a corpus, with your own rules as further rivals.

        Raises:
            CorpusError: The corpus has no links, or two rows would have the same name.
            HeadscopeError: Two rules have the same name.
        """
        cls.check_annotation(summary)
        links = [(kind, label) for kind, counts in summary.links.items() for label in counts]
        upos, candidates = bool(summary.spans.get("upos")), bool(summary.rivals)
        reducer = cls(tuple(sorted(links)), upos=upos, candidates=candidates, rules=rules)
        permutations = Permutations.for_rows(len(reducer.rows))
        reducer = replace(reducer, fold_assignment=FoldAssignment.for_corpus(summary), permutations=permutations)
        twice = [name for name, count in Counter(reducer.rows).items() if count > 1]
        if twice:
            raise CorpusError(
                f"the corpus has links labelled {twice[0]!r}, which is the name of a row that pools others; "
                "call the label something else."
            )
        return reducer

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """The values of the dimension ``relation``.

        Each dependency label has a row. If a label has subtypes, ``label:*`` pools the label with its subtypes. ``all``
        pools every dependency but punctuation (the root has no link); the ``all`` of Clark et al. includes both. Links
        of another kind have the rows ``kind label`` and ``kind all``.
        """
        dependencies = [label for kind, label in self.links if kind == DEPENDENCY]
        bases = dict.fromkeys(label.split(":")[0] for label in dependencies if ":" in label)
        others = [f"{kind} {label}" for kind, label in self.links if kind != DEPENDENCY]
        kinds = dict.fromkeys(kind for kind, _ in self.links)
        pooled = [ALL if kind == DEPENDENCY else f"{kind} {ALL}" for kind in kinds]
        return (*pooled, *dependencies, *(f"{base}:*" for base in bases), *others)

    def rows_of(self, kind: str, label: str) -> Iterable[str]:
        """Return the rows in which a link of this kind and label counts."""
        base = label.split(":")[0]
        if kind != DEPENDENCY:
            return f"{kind} {label}", f"{kind} {ALL}"
        return (name for name in (label, f"{base}:*", ALL if base != "punct" else "") if name in self.rows)

    def prepare(self, batch: Batch, attention_type: str) -> Links:
        """Return the links of a batch with the rows in which each counts, the hits of rules, and the permuted links."""
        device = batch.encoder.ids.device
        documents = enumerate(zip(batch.documents, batch.encoder.list_words(), strict=True))
        fold = self.fold_assignment.fold
        texts = [Text(i, text, fold(text), words) for i, (text, words) in documents]
        links = [(text, link) for text in texts for link in text.links]
        ends = [(text.index, link.source, link.target) for text, link in links]
        document_of, dependent, head = torch.tensor(ends, dtype=torch.long, device=device).reshape(-1, 3).T
        is_causal = batch.is_causal(attention_type)
        by_class, by_rule, predicted = self._apply_rules(texts, is_causal=is_causal)
        permuted, places = permute_links(self.permutations, texts, batch.words)
        items = PermutedItems.group(permuted, number_labels(links, self.links), len(self.links), device)
        return Links(
            document_of, dependent, head, find_scored(dependent, head[:, None], is_causal=is_causal),
            *self._assign_bins(links, device), items, torch.from_numpy(places).to(device), by_class.to(device),
            by_rule.to(device), predicted.to(device),
            self._prepare_choices(texts, device, is_causal) if self.candidates else None,
        )  # fmt: skip

    def _apply_rules(self, texts: Sequence[Text], *, is_causal: bool) -> tuple[Shaped[Tensor, "link _"], ...]:
        """Return for each link the hits of part-of-speech rules and own rules, and whether own rules predict a word."""
        by_class = [np.empty((0, len(DIRECTIONS), len(SIDES), len(CLASSES)))]
        by_rule, predicted = ([np.empty((0, len(self.rules), len(ENDS)), dtype=bool)] for _ in range(2))
        for text in texts:
            if self.upos:
                by_class.append(find_by_class(text.document, text.links, is_causal=is_causal))
            if text.links:
                right, any_word = find_by_rules(self.rules, text.document, text.links)
                by_rule.append(right)
                predicted.append(any_word)
        return tuple(torch.from_numpy(np.concatenate(parts)).flatten(1) for parts in (by_class, by_rule, predicted))

    def _assign_bins(self, links: Sequence[tuple[Text, Link]], device: torch.device) -> tuple[Bins, Bins]:
        """Return the bins in which each link counts: by relation and fold, and by relation and length."""
        row_of = {name: index for index, name in enumerate(self.rows)}
        rows_of = {link: [row_of[name] for name in self.rows_of(*link)] for link in self.links}
        bins = []
        for item, (text, link) in enumerate(links):
            length = LENGTHS.index(max(LENGTHS[0], min(link.target - link.source, LENGTHS[-1])))
            rows = rows_of[link.kind, link.label]
            bins += [(item, row * FOLDS + text.fold, row * len(LENGTHS) + length) for row in rows]
        link_of, fold_bin, length_bin = torch.tensor(bins, dtype=torch.long, device=device).reshape(-1, 3).T
        return Bins(link_of, fold_bin, len(row_of)), Bins(link_of, length_bin, len(row_of), len(LENGTHS))

    def _prepare_choices(self, texts: Sequence[Text], device: torch.device, is_causal: bool) -> Choices:
        """Return the choices of a batch: the links with rivals of which every rival has a token."""
        links = [(text, link) for text in texts for link in text.links]
        places = [place for place, (text, link) in enumerate(links) if text.is_choice(link)]
        chosen = [links[place] for place in places]
        permuted = np.concatenate([permute_targets(self.permutations, text.document, text.choices) for text in texts])
        ends = [(text.index, link.source) for text, link in chosen]
        document_of, source = torch.tensor(ends, dtype=torch.long, device=device).reshape(-1, 2).T
        folds, _ = self._assign_bins(chosen, device)
        candidates = torch.from_numpy(lay_out_candidates([link for _, link in chosen])).to(device)
        permuted += np.arange(len(chosen))[:, None] * candidates.shape[1]
        items = PermutedItems.group(permuted, number_labels(chosen, self.links), len(self.links), device)
        return Choices(
            torch.tensor(places, dtype=torch.long, device=device), document_of, source, candidates,
            find_scored(source, candidates, is_causal=is_causal), items, folds,
        )  # fmt: skip

    def count(self, facts: Links) -> Sums:
        """Count by direction the links, the choices, and the hits of each fixed offset and rule."""
        distance = (facts.head - facts.dependent)[:, None] == torch.tensor(OFFSETS, device=facts.head.device)
        counts = {
            "link": facts.folds.total(facts.scored),
            "left_out": facts.folds.total(~facts.scored).sum(1),
            "offset": facts.folds.total(count_by_direction(distance, facts.scored)),
            "length": facts.lengths.total(facts.scored),
        }
        if self.upos:
            scored = facts.scored.repeat_interleave(len(SIDES) * len(CLASSES), dim=1)
            counts["upos"] = facts.folds.total(facts.by_class * scored)
        if self.rules:
            by_rule = count_by_direction(facts.by_rule, facts.scored)
            counts |= {"rule": facts.folds.total(by_rule), "rule_predicts": facts.predicted.sum(0)}
        if facts.choices is not None:
            counts |= facts.choices.count()
            if self.rules:
                by_rule = count_by_direction(facts.by_rule[facts.choices.link], facts.choices.scored)
                counts["candidate_rule"] = facts.choices.folds.total(by_rule)
        return counts

    def list_items(self, facts: Links) -> list[tuple[int, Item]]:
        """Return the links of a batch as pairs of a document index and an item."""
        return facts.list_items([f"{ACCURACY.stem}:{row}" for row in self.rows])

    def find_counting(self, facts: Links) -> Bool[Tensor, "link direction"]:
        """Return whether each link counts in each direction."""
        return facts.scored

    def judge(self, facts: Links, words: Words) -> Bool[Tensor, "link head direction"]:
        """Return whether each head gets each link right in each direction."""
        by_direction = []
        for pointing in (words.attends, words.attended):
            points = pointing.weight[facts.document, :, facts.dependent] > 0
            by_direction.append(points & (pointing.word[facts.document, :, facts.dependent] == facts.head[:, None]))
        return torch.stack(by_direction, dim=-1)

    def pick(
        self, document: Document, item: Item, direction: int, rule: str, options: Mapping[str, str]
    ) -> tuple[int, int] | None:
        """Return the end of a link at which a rule starts, and the word that it picks or -1; None for unknown rules."""
        return pick_for_link(document, item, direction, options, self.rules)

    def observe(self, facts: Links, attention: Attention) -> Sums:
        """Count the links and the choices that each head gets right in each direction, also in the permutations."""
        words = attention.words()
        right = self.judge(facts, words).flatten(1)
        hits = {"correct": facts.folds.total(right), "at_length": facts.lengths.total(right)}
        if self.permutations.count:
            hits["permuted"] = facts.score_permutations((words.attends, words.attended))
        if facts.choices is not None:
            chosen = facts.choices.choose(words).flatten(1)
            hits["candidate_correct"] = facts.choices.folds.total(chosen == TARGET)
            if self.permutations.count:
                hits["candidate_permuted"] = facts.choices.score_permutations(chosen)
        by_head = (attention.heads, len(DIRECTIONS))
        return {name: count.view(*count.shape[:-1], *by_head).movedim((2, 3), (0, 1)) for name, count in hits.items()}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return the accuracies of heads and fixed offsets, and the sums by fold, from which intervals are computed.

        Raises:
            HeadscopeError: One of your own rules predicts no word for any link.
        """
        if self.rules and counts["link"].any():
            refuse_silent_rules(self.rules, counts["rule_predicts"])
        parts = {"fold_correct": sums["correct"], "fold_link": _split(counts, "link")}
        parts["fold_offset"] = _split(counts, "offset", len(OFFSETS))
        if "upos" in counts:
            parts["fold_upos"] = put_direction_first(counts["upos"], len(SIDES), len(CLASSES))
        if self.rules:
            parts["fold_rule"] = _split(counts, "rule", len(self.rules), len(ENDS))
        if "permuted" in sums:
            parts["relation_permuted"] = sums["permuted"]
        table = self._tabulate(ACCURACY, parts, CLARK)
        if self.candidates:
            parts = {f"fold_{name}": _split(counts, name) for name in COUNTED}
            parts["fold_candidate_correct"] = sums["candidate_correct"]
            parts |= {name: sums[name] for name in ("candidate_permuted",) if name in sums}
            if self.rules:
                parts["fold_candidate_rule"] = _split(counts, "candidate_rule", len(self.rules), len(ENDS))
            table = table.assign(self._tabulate(CANDIDATES, parts, "headscope").data_vars)
        table = table.assign(self._describe_links(sums, counts)).assign_coords(
            offset=list(OFFSETS), length=list(LENGTHS)
        )
        if "fold_upos" in table:
            table = table.assign_coords(side=list(SIDES), word_class=list(CLASSES))
        if self.rules:
            table = table.assign_coords(rule=[rule.name for rule in self.rules], end=list(ENDS))
        total = _count_links(counts)
        by_count = sorted(range(len(total)), key=lambda row: (self.rows[row] != ALL, -total[row]))
        return table.isel(relation=by_count)

    def _tabulate(self, score: Score, parts: Mapping[str, np.ndarray], source: str) -> xr.Dataset:
        """Return the variables of a score by relation and direction."""
        rows, unit = {"direction": DIRECTIONS, "relation": self.rows}, self.fold_assignment.unit
        pooled = [[i for i, link in enumerate(self.links) if row in self.rows_of(*link)] for row in self.rows]
        table = score_table(score, parts, rows, source=source, fold_unit=unit, pooled=pooled)
        table[score.variable] = table[score.variable].transpose("layer", "head", "relation", "direction")
        return table

    def _describe_links(
        self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]
    ) -> dict[str, xr.Variable]:
        """Return the accuracy of fixed offsets, the accuracy of heads by length of link, and the numbers of links."""
        is_causal = counts["left_out"].any()
        at_offset, of_length = _split(counts, "offset", len(OFFSETS)), _split(counts, "length")
        if is_causal:  # each link counts in one direction
            at_offset, of_length = at_offset.sum(0), of_length.sum(0)
        offsets = mean(at_offset.sum(1), _count_links(counts)[:, None])
        scored = np.moveaxis(counts["length"], -1, 1)
        at_length = mean(sums["at_length"].transpose(0, 1, 3, 2, 4), scored)
        by_length = ("layer", "head", "relation", "direction", "length")
        share, links = "share of links", "links"
        values: dict[str, Described] = {
            "offset_accuracy": (offsets, ("relation", "offset"), "links whose head is at a fixed offset", share),
            "length_accuracy": (at_length, by_length, "links of a length that the head gets right", share),
            "length_count": (of_length, ("relation", "length"), "links of a length", links),
        }
        if is_causal:
            what = "links that do not count, since they point ahead, where a decoder sees nothing"
            values["relation_left_out"] = (counts["left_out"], ("relation", "direction"), what, links)
        return describe(values, CLARK)


def _split(counts: Mapping[str, np.ndarray], name: str, *options: int) -> np.ndarray:
    """Return sums by direction if the directions count different links; else the sums of the first direction."""
    by_direction = put_direction_first(counts[name], *options)
    return by_direction if counts["left_out"].any() else by_direction[0]


def _count_links(counts: Mapping[str, np.ndarray]) -> np.ndarray:
    """Count all links of each relation, also those that count in only one direction."""
    total: np.ndarray = counts["link"][..., 0].sum(-1) + counts["left_out"][..., 0]
    return total
