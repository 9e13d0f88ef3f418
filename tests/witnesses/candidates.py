"""Links with rivals as choices: what each head chooses among the target and its rivals, by loops."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from headscope.corpora.document import Document
from witnesses.relations import DIRECTIONS, dependencies_of, rows_of, shares
from witnesses.seen import Seen
from witnesses.words import word_weights


@dataclass(frozen=True)
class Choices:
    """One row: for each of its choices who is right, ``hits[choice, layer, head, direction]``, and two rivals."""

    hits: np.ndarray
    chance: list[float]
    nearest: list[float]

    @property
    def counts(self) -> np.ndarray:
        """The choices that count in each direction; the hits of the others are NaN."""
        return (~np.isnan(self.hits[:, 0, 0])).sum(0)

    @property
    def accuracy(self) -> np.ndarray:
        return shares(self.hits)

    def total_of(self, rival: list[float]) -> np.ndarray:
        """The sum of a rival over the choices that count in each direction."""
        return np.nansum(np.where(np.isnan(self.hits[:, 0, 0]), np.nan, np.array(rival)[:, None]), axis=0)


def candidates(documents: Iterable[Seen]) -> dict[str, Choices]:
    """The rows of a corpus, those of its dependency links that have rivals."""
    documents = list(documents)
    labels = {link.label for seen in documents for link in dependencies_of(seen.document)}
    pooled = {label.split(":")[0] for label in labels if ":" in label}
    rows: dict[str, list] = {}
    for seen in documents:
        for link, chosen in zip(choices_of(seen), chosen_of(seen), strict=True):
            distances = [abs(word - link.source) for word in (link.target, *link.rivals)]
            nearest = [distance == min(distances) for distance in distances]
            entry = (np.where(counting(seen, link), chosen == 0, np.nan), 1 / len(distances), nearest[0] / sum(nearest))
            for row in rows_of(link.label, pooled):
                rows.setdefault(row, []).append(entry)
    return {
        row: Choices(np.array([hit for hit, _, _ in entries]), [c for _, c, _ in entries], [n for _, _, n in entries])
        for row, entries in rows.items()
    }


def counting(seen: Seen, link) -> list[bool]:
    """Whether a choice counts in each direction: in a decoder all candidates must stand on the side that sees."""
    words = (link.target, *link.rivals)
    sides = [all(word < link.source for word in words), all(word > link.source for word in words)]
    return sides if seen.is_causal else [True, True]


def permuted_candidates(
    seen: Seen, places: Callable[[Document, list[int]], np.ndarray]
) -> list[tuple[str, np.ndarray]]:
    """For each choice its label and the hits where another candidate is right: ``[permutation, layer, head, way]``."""
    links = choices_of(seen)
    right = places(seen.document, [1 + len(link.rivals) for link in links])
    return [
        (link.label, np.array([chosen == candidate for candidate in right[item]]))
        for item, (link, chosen) in enumerate(zip(links, chosen_of(seen), strict=True))
    ]


def choices_of(seen: Seen) -> list:
    """The dependency links with rivals, all words of which have tokens."""
    with_token = {token.word for token in seen.queries}
    links = [link for link in dependencies_of(seen.document) if link.rivals]
    return [link for link in links if with_token >= {link.source, link.target, *link.rivals}]


def chosen_of(seen: Seen) -> list[np.ndarray]:
    """For each of them, which candidate each head takes, the target being 0: ``(layer, head, direction)``; -1: none."""
    layers, heads = seen.weights.shape[:2]
    links = choices_of(seen)
    chosen = [np.full((layers, heads, len(DIRECTIONS)), -1) for _ in links]
    for layer, head in np.ndindex(layers, heads):
        words = word_weights(seen.weights[layer, head], seen.queries, seen.keys, len(seen.document.words))
        for link, answer in zip(links, chosen, strict=True):
            for way, table in enumerate((words, words.T)):
                weights = [table[link.source, word] for word in (link.target, *link.rivals)]
                best = [place for place, weight in enumerate(weights) if weight == max(weights) > 0]
                if len(best) == 1 and counting(seen, link)[way]:
                    answer[layer, head, way] = best[0]
    return chosen
