"""Heads as classifiers of relations: Clark et al. 2019, sections 4.1 and 4.2."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from headscope.corpora.document import Document
from witnesses.means import clustered_error, mean
from witnesses.seen import Seen
from witnesses.words import best_other, word_weights

DIRECTIONS = ("dependent_to_head", "head_to_dependent")
OFFSETS = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Relation:
    """One row: for each of its links its document, and who found it: ``hits[link, layer, head, direction]``.

    A hit is NaN in a direction in which a link does not count, since it points ahead in a decoder.

    ``offset[k]`` is the accuracy of always answering that the head is the word k further on; ``length[k]`` are the
    links that are so long.
    """

    hits: np.ndarray
    clusters: tuple[str, ...]
    offset: dict[int, float]
    length: dict[int, list[int]]

    @property
    def count(self) -> int:
        return len(self.hits)

    @property
    def counts(self) -> list[int]:
        return [int((~np.isnan(self.hits[:, 0, 0, way])).sum()) for way in range(len(DIRECTIONS))]

    @property
    def accuracy(self) -> np.ndarray:
        return shares(self.hits)

    def error(self, layer: int, head: int, direction: int) -> float:
        return clustered_error(self.hits[:, layer, head, direction], self.clusters)


def relations(documents: Iterable[Seen]) -> dict[str, Relation]:
    """The rows of a corpus: every exact label, ``nsubj:*`` where nsubj has a subtype, and ``all`` but punctuation."""
    links = [
        (link, seen.document.id, hits)
        for seen in documents
        for link, hits in zip(dependencies_of(seen.document), hits_of(seen), strict=True)
    ]
    pooled = {_base(link.label) for link, _, _ in links if ":" in link.label}
    rows: dict[str, list] = {}
    for entry in links:
        label = entry[0].label
        for row in rows_of(label, pooled):
            rows.setdefault(row, []).append(entry)
    table = {}
    for row, entries in rows.items():
        offset = {k: mean([float(link.target == link.source + k) for link, _, _ in entries]) for k in OFFSETS}
        hits = np.stack([hit for _, _, hit in entries])
        length: dict[int, list[int]] = {}
        for place, (link, _, _) in enumerate(entries):
            length.setdefault(min(6, max(-6, link.target - link.source)), []).append(place)
        table[row] = Relation(hits, tuple(document for _, document, _ in entries), offset, length)
    return table


def rows_of(label: str, pooled: set[str]) -> list[str]:
    """The rows that a link with this label counts in; ``pooled`` are the labels that have a subtype in the corpus."""
    rows = [label]
    if _base(label) in pooled:
        rows.append(f"{_base(label)}:*")
    if _base(label) != "punct":
        rows.append("all")
    return rows


def shares(hits: np.ndarray) -> np.ndarray:
    """The mean over the links that count; NaN where none does."""
    counting = (~np.isnan(hits)).sum(0)
    return np.where(counting > 0, np.nansum(hits, axis=0) / np.maximum(counting, 1), np.nan)


def hits_of(seen: Seen) -> list[np.ndarray]:
    """For each dependency link of a document, whether each head finds it: ``(layer, head, direction)``."""
    layers, heads = seen.weights.shape[:2]
    links = dependencies_of(seen.document)
    hits = [np.zeros((layers, heads, len(DIRECTIONS))) for _ in links]
    for layer in range(layers):
        for head in range(heads):
            words = word_weights(seen.weights[layer, head], seen.queries, seen.keys, len(seen.document.words))
            for link, hit in zip(links, hits, strict=True):
                row = [words[link.source, other] for other in range(len(words))]
                column = [words[other, link.source] for other in range(len(words))]
                hit[layer, head] = [best_other(line, link.source) == link.target for line in (row, column)]
                if seen.is_causal:
                    hit[layer, head, 0 if link.source < link.target else 1] = np.nan
    return hits


def dependencies_of(document: Document) -> list:
    return [link for link in document.links if link.kind == "dependency"]


def _base(label: str) -> str:
    return label.split(":")[0]


PARTS_OF_SPEECH = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM",
    "VERB", "X",
)  # fmt: skip
WORD_CLASSES = {name: {name} for name in PARTS_OF_SPEECH} | {
    "NOUN/PROPN": {"NOUN", "PROPN"},
    "NOUN/PRON/PROPN": {"NOUN", "PRON", "PROPN"},
    "AUX/VERB": {"AUX", "VERB"},
    "ADJ/NOUN/VERB": {"ADJ", "NOUN", "VERB"},
    "ADJ/NOUN/PROPN/VERB": {"ADJ", "NOUN", "PROPN", "VERB"},
    "open class": {"ADJ", "ADV", "INTJ", "NOUN", "PROPN", "VERB"},
}
STEPS = {"left": (-1,), "right": (1,), "either, left first": (-1, 1), "either, right first": (1, -1)}
PLACES = (*STEPS, *(f"{look}, else the word {'before' if steps[0] < 0 else 'after'}" for look, steps in STEPS.items()))


def nearest(document: Document, word: int, side: str, word_class: str) -> int | None:
    """The nearest word of a class on one side of a word, or on either: every word is asked in turn, near ones first."""
    look, _, otherwise = side.partition(", else")
    steps = STEPS[look]
    for far in range(1, len(document.words)):
        for step in steps:
            for span in document.spans:
                if span.kind == "upos" and span.start == word + step * far and span.label in WORD_CLASSES[word_class]:
                    return span.start
    if not otherwise:
        return None
    return next(word + step for step in (steps[0], -steps[0]) if 0 <= word + step < len(document.words))


def links_by_rule(
    document: Document, *, is_causal: bool = False
) -> dict[tuple[str, str, str], list[tuple[str, float]]]:
    """For each direction, side and class, the label of each link, and what a rule is right about: 1, 0 or a guess."""
    answers: dict[tuple[str, str, str], list[tuple[str, float]]] = {}
    for link in dependencies_of(document):
        for direction, word, other in zip(
            DIRECTIONS, (link.source, link.target), (link.target, link.source), strict=True
        ):
            for side in PLACES:
                for word_class in WORD_CLASSES:
                    taken = nearest(document, word, side, word_class)
                    guess = 1 / max(word, 1) if is_causal else 1 / (len(document.words) - 1)
                    right = guess if taken is None else float(taken == other)
                    answers.setdefault((direction, side, word_class), []).append((link.label, right))
    return answers
