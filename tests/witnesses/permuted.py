"""Gold that stands elsewhere: what each head finds where a draw puts the links, antecedents and scopes of a document.

Which of its places an item takes in a permutation is given, ``places[item, draw]``; what these places are, and what is
found there, is worked out by loops.
"""

from collections.abc import Callable

import numpy as np

from headscope.corpora.document import Document
from witnesses.coreference import answers_of, scored_of
from witnesses.relations import DIRECTIONS, dependencies_of
from witnesses.scope import negations_of
from witnesses.seen import Seen
from witnesses.words import best_other, word_weights

Bins = Callable[[Document, list[int]], np.ndarray]
"""For each item, which of so many places it takes in each permutation: ``[item, draw]``."""


def permuted_relations(seen: Seen, places: Bins) -> list[tuple[str, np.ndarray]]:
    """For each dependency link its label and what is found of it: ``[draw, layer, head, direction]``."""
    with_token = sorted({token.word for token in seen.queries if token.word is not None})
    links = [link for link in dependencies_of(seen.document) if link.source in with_token and link.target in with_token]
    sources = [[word for word in with_token if word + link.target - link.source in with_token] for link in links]
    drawn = places(seen.document, [len(of_link) for of_link in sources])
    layers, heads = seen.weights.shape[:2]
    found = [np.zeros((drawn.shape[1], layers, heads, len(DIRECTIONS)), dtype=bool) for _ in links]
    for layer in range(layers):
        for head in range(heads):
            words = word_weights(seen.weights[layer, head], seen.queries, seen.keys, len(seen.document.words))
            ways = [[best_other(table[word], word) for word in range(len(words))] for table in (words, words.T)]
            for item, link in enumerate(links):
                for draw, choice in enumerate(drawn[item]):
                    source = sources[item][choice]
                    for way, answers in enumerate(ways):
                        found[item][draw, layer, head, way] = answers[source] == source + link.target - link.source
    return [(link.label, hits) for link, hits in zip(links, found, strict=True)]


def permuted_coreference(seen: Seen, places: Bins) -> list[tuple[str | None, np.ndarray]]:
    """For each scored mention the tag of its head word and what is found of it: ``[draw, layer, head]``."""
    scored = sorted(scored_of(seen), key=lambda one: (one[0].head, one[0].chain))
    answers = answers_of(seen)
    before = [sorted({other.head for other in earlier}) for _, earlier, _ in scored]
    if not scored:
        return []
    (together,) = places(seen.document, [max(len(words) for words in before)])
    found = []
    for item, (mention, _, gold) in enumerate(scored):
        hits = []
        for turn in together:
            # Who stands so many places further on, round and round, has lent its place.
            moved = [
                word
                for place, word in enumerate(before[item])
                if before[item][(place + turn) % len(before[item])] in gold
            ]
            hits.append(np.isin(answers[..., mention.head], moved))
        found.append((mention.tag, np.array(hits)))
    return found


def permuted_scope(seen: Seen, places: Bins) -> np.ndarray:
    """How many words are rightly said to be in a scope: ``[draw, layer, head]``."""
    negations = negations_of(seen.document)
    count = len(seen.document.words)
    others = [[word for word in range(count) if word not in cue] for cue, _ in negations]
    drawn = places(seen.document, [len(words) for words in others])
    answers, hits = answers_of(seen), np.zeros((drawn.shape[1], *seen.weights.shape[:2]), dtype=int)
    for item, (cue, scope) in enumerate(negations):
        said = np.isin(answers, list(cue))
        for draw, turn in enumerate(drawn[item]):
            moved = {
                word
                for place, word in enumerate(others[item])
                if others[item][(place + turn) % len(others[item])] in scope
            } | (scope & cue)
            hits[draw] += said[..., sorted(moved)].sum(-1)
    return hits
