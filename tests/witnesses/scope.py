"""Heads as classifiers of negation scope: Zhao and Bethard 2020, section 4."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headscope.corpora.document import Document
from witnesses.relations import OFFSETS
from witnesses.seen import Seen
from witnesses.words import best_other, word_weights


def scope(documents: Sequence[Seen]) -> dict[str, np.ndarray | dict[int, tuple[float, ...]] | tuple[float, ...]]:
    """Zhao and Bethard 2020, section 4: precision, recall and F1, last axis, of each head, offset and of all words."""
    layers, heads = documents[0].weights.shape[:2]
    negations = [(seen, *negation) for seen in documents for negation in negations_of(seen.document)]
    by_head = np.zeros((layers, heads, 3))
    for layer in range(layers):
        for head in range(heads):
            answers = []
            for seen, cue, _ in negations:
                words = word_weights(seen.weights[layer, head], seen.queries, seen.keys, len(seen.document.words))
                answers.append({w for w in range(len(words)) if best_other(words[w], w) in cue})
            by_head[layer, head] = _pooled(answers, negations)
    by_offset = {
        k: _pooled(
            [{w for w in range(len(seen.document.words)) if w + k in cue} for seen, cue, _ in negations], negations
        )
        for k in OFFSETS
    }
    everything = _pooled([set(range(len(seen.document.words))) for seen, _, _ in negations], negations)
    return {"heads": by_head, "offsets": by_offset, "all": everything}


@dataclass(frozen=True)
class ToCue:
    """A word of a negation's sentence: whether it is in the scope, how far from the cue, ``attention[layer, head]``."""

    document: Document
    in_scope: bool
    distance: int
    attention: np.ndarray


def attention_to_cues(documents: Sequence[Seen]) -> list[ToCue]:
    """Section 4.2: what each word of each negation's sentence, if no word of the cue, gives to the cue."""
    to_cues = []
    for seen in documents:
        count, read = len(seen.document.words), {token.word for token in seen.keys}
        weights = np.array(
            [[word_weights(rows, seen.queries, seen.keys, count) for rows in layer] for layer in seen.weights]
        )
        for cue, scope in negations_of(seen.document):
            for word in sorted(read - cue - {None}) if cue & read else ():
                attention = sum(weights[:, :, word, other] for other in cue)
                distance = min(abs(word - other) for other in cue)
                to_cues.append(ToCue(seen.document, word in scope, distance, attention))
    return to_cues


def negations_of(document: Document) -> list[tuple[set[int], set[int]]]:
    """The words of cue and scope of each negation whose cue is not a part of a word."""

    def words(kind: str, label: str) -> set[int]:
        spans = [span for span in document.spans if (span.kind, span.label) == (kind, label)]
        return {word for span in spans for word in range(span.start, span.end)}

    labels = dict.fromkeys(span.label for span in document.spans if span.kind == "cue")
    return [(words("cue", label), words("scope", label)) for label in labels]


def windows(documents: Sequence[Document], before: float, behind: float) -> tuple[int, int]:
    """The words in a window around the cue of each negation, and those of them that are in its scope.

    A word of the cue is in none; any other is if some word of the cue stands so few words behind or before it.
    """
    hits = size = 0
    for document in documents:
        for cue, scope in negations_of(document):
            for word in set(range(len(document.words))) - cue:
                if any(0 < other - word <= before or 0 < word - other <= behind for other in cue):
                    size, hits = size + 1, hits + (word in scope)
    return size, hits


def _pooled(answers: Sequence[set[int]], negations: Sequence[tuple[Seen, set[int], set[int]]]) -> tuple[float, ...]:
    gold = [(number, word) for number, (_, _, words) in enumerate(negations) for word in words]
    said = [(number, word) for number, words in enumerate(answers) for word in words]
    hits = len(set(gold) & set(said))
    precision, recall = hits / len(said) if said else 0.0, hits / len(gold) if gold else 0.0
    return precision, recall, 2 * precision * recall / (precision + recall) if hits else 0.0
