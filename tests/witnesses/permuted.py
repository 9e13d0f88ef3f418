"""Permuted gold: the hits of each head where a permutation puts the links, antecedents and scopes of a document.

Which of its places an item takes in a permutation is given, ``places[item, permutation]``; what these places are, and
the hits there, is worked out by loops.
"""

from collections.abc import Callable

import numpy as np

from headscope.corpora.document import Document
from witnesses.coreference import Mention, answers_of, mentions_of
from witnesses.relations import DIRECTIONS, dependencies_of
from witnesses.scope import negations_of
from witnesses.seen import Seen
from witnesses.words import best_other, word_weights

Places = Callable[[Document, list[int]], np.ndarray]
"""For each item, which of so many places it takes in each permutation: ``[item, permutation]``."""


def permuted_relations(seen: Seen, places: Places) -> list[tuple[str, np.ndarray]]:
    """For each dependency link its label and the hits: ``[permutation, layer, head, direction]``."""
    with_token = sorted({token.word for token in seen.queries if token.word is not None})
    links = [link for link in dependencies_of(seen.document) if link.source in with_token and link.target in with_token]
    sources = [[word for word in with_token if word + link.target - link.source in with_token] for link in links]
    choices = places(seen.document, [len(of_link) for of_link in sources])
    layers, heads = seen.weights.shape[:2]
    hits_of_links = [np.zeros((choices.shape[1], layers, heads, len(DIRECTIONS)), dtype=bool) for _ in links]
    for layer in range(layers):
        for head in range(heads):
            words = word_weights(seen.weights[layer, head], seen.queries, seen.keys, len(seen.document.words))
            ways = [[best_other(table[word], word) for word in range(len(words))] for table in (words, words.T)]
            for item, link in enumerate(links):
                for permutation, choice in enumerate(choices[item]):
                    source = sources[item][choice]
                    for way, answers in enumerate(ways):
                        right = answers[source] == source + link.target - link.source
                        hits_of_links[item][permutation, layer, head, way] = right
    return [(link.label, hits) for link, hits in zip(links, hits_of_links, strict=True)]


def permuted_coreference(seen: Seen, places: Places) -> list[tuple[str | None, np.ndarray, np.ndarray]]:
    """For each mention the tag of its head word, whether it is scored ``[permutation]`` and the hits ``[permutation,
    layer, head]``.
    """

    def order(mention: Mention) -> tuple[int, int, int, int]:
        span = ("mention", mention.start, mention.start + len(mention.words), mention.chain)
        spans = [(span.kind, span.start, span.end, span.label) for span in seen.document.spans]
        return mention.head, -len(mention.words), mention.start, spans.index(span)

    mentions = sorted(mentions_of(seen.document), key=order)
    with_token = {token.word for token in seen.queries}
    answers = answers_of(seen)
    (turns,) = places(seen.document, [len(mentions)])
    scored = np.zeros((len(mentions), len(turns)), dtype=bool)
    hits = np.zeros((len(mentions), len(turns), *answers.shape[:2]), dtype=bool)
    for permutation, turn in enumerate(turns):
        # Who stands so many places further on, round and round, has lent its chain.
        labels = [mentions[(place + turn) % len(mentions)].chain for place in range(len(mentions))]
        for item, mention in enumerate(mentions):
            pairs = zip(mentions, labels, strict=True)
            same = [other.head for other, label in pairs if label == labels[item] and other.head < mention.head]
            if same and mention.head in with_token:
                scored[item, permutation] = True
                hits[item, permutation] = np.isin(answers[..., mention.head], same)
    return [(mention.tag, scored[item], hits[item]) for item, mention in enumerate(mentions)]


def permuted_scope(seen: Seen, places: Places) -> np.ndarray:
    """How many words are rightly said to be in a scope: ``[permutation, layer, head]``."""
    negations = negations_of(seen.document)
    count = len(seen.document.words)
    others = [[word for word in range(count) if word not in cue] for cue, _ in negations]
    choices = places(seen.document, [len(words) for words in others])
    answers, hits = answers_of(seen), np.zeros((choices.shape[1], *seen.weights.shape[:2]), dtype=int)
    for item, (cue, scope) in enumerate(negations):
        said = np.isin(answers, list(cue))
        for permutation, turn in enumerate(choices[item]):
            permuted = {
                word
                for place, word in enumerate(others[item])
                if others[item][(place + turn) % len(others[item])] in scope
            } | (scope & cue)
            hits[permutation] += said[..., sorted(permuted)].sum(-1)
    return hits
