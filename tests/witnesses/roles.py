"""Weights between predicates and what fills their roles: Kovaleva et al. 2019, section 4.2."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product

import numpy as np

from headscope.corpora.document import Document
from witnesses.means import mean
from witnesses.relations import OFFSETS
from witnesses.seen import Seen


def roles(
    documents: Sequence[Seen], labels: Sequence[str], max_words: int = 12, max_element: int = 3, min_distance: int = 2
) -> dict[str, np.ndarray | int | dict[int, float] | Counter]:
    """The means over links per layer and head, what fixed offsets would get, and why links do not count."""
    left_out: Counter[str] = Counter()
    scored = []
    for seen in documents:
        for link in seen.document.links:
            if link.kind != "role":
                continue
            argument, predicate, core = _spans(seen.document, link)
            near = min(abs(a - b) for a, b in product(argument, predicate)) < min_distance
            if link.label not in labels or not core:
                left_out["role"] += 1
            elif len(seen.document.words) > max_words:
                left_out["sentence"] += 1
            elif len(argument) > max_element:
                left_out["element"] += 1
            elif near:
                left_out["distance"] += 1
            else:
                scored.append((seen, argument, predicate))
    layers, heads = documents[0].weights.shape[:2]
    values = {name: np.zeros((layers, heads)) for name in ("weight", "from_argument", "from_predicate", "anywhere")}
    for layer, head in product(range(layers), range(heads)):
        forth = [_largest(seen, layer, head, argument, predicate) for seen, argument, predicate in scored]
        back = [_largest(seen, layer, head, predicate, argument) for seen, argument, predicate in scored]
        values["from_argument"][layer, head] = mean(forth)
        values["from_predicate"][layer, head] = mean(back)
        values["weight"][layer, head] = mean([max(pair) for pair in zip(forth, back, strict=True)])
        values["anywhere"][layer, head] = mean([_anywhere(seen, layer, head, min_distance) for seen, _, _ in scored])
    offset = {
        k: mean(
            [any(abs(a - b) == abs(k) for a, b in product(argument, predicate)) for _, argument, predicate in scored]
        )
        for k in OFFSETS
    }
    return {**values, "offset": offset, "count": len(scored), "left_out": left_out}


def _anywhere(seen: Seen, layer: int, head: int, min_distance: int) -> float:
    """The mean over pairs of words that are far enough apart."""
    words = {token.word for token in seen.keys if token.word is not None}
    return mean(
        [
            max(_largest(seen, layer, head, {a}, {b}), _largest(seen, layer, head, {b}, {a}))
            for a, b in combinations(sorted(words), 2)
            if b - a >= min_distance
        ]
    )


def _largest(seen: Seen, layer: int, head: int, sources: set[int], targets: set[int]) -> float:
    """The largest weight from a token of some words to a token of others."""
    queries = [q for q, token in enumerate(seen.queries) if token.word in sources]
    keys = [k for k, token in enumerate(seen.keys) if token.word in targets]
    return max(seen.weights[layer, head, q, k] for q, k in product(queries, keys))


def _spans(document: Document, link) -> tuple[set[int], set[int], bool]:
    """What the two spans around the ends of a link cover, or the ends themselves, and whether the role is core."""
    covered = [(span.kind, span.label, set(range(span.start, span.end))) for span in document.spans]
    numbers = sorted(label for kind, label, words in covered if kind == "target" and link.target in words)
    for number in numbers:
        pieces = [words for kind, label, words in covered if (kind, label) == ("target", number)]
        around = [(kind, words) for kind, label, words in covered if label == f"{number} {link.label}"]
        for kind, element in around:
            if kind == "element" and link.source in element:
                kinds = {other for other, words in around if link.source in words}
                return element, set().union(*pieces), not kinds & {"peripheral_element", "extra_thematic_element"}
    return {link.source}, {link.target}, True
