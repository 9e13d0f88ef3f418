"""Surface statistics: Clark et al. 2019, section 3."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from witnesses.means import mean
from witnesses.seen import Seen, Token

SHARES = ("self", "previous", "next", "cls", "sep", "punctuation", "first", "sep_from_sep", "sep_from_other")
SURFACE = (*(f"mass_{share}" for share in SHARES), "entropy", "entropy_from_cls", "entropy_uniform", "mean_distance")


def surface(documents: Iterable[Seen]) -> dict[str, np.ndarray]:
    """Each statistic per layer and head: the mean over the documents in which it is defined; NaN if it is in none."""
    each = [surface_of(seen) for seen in documents]
    means = {}
    for name in SURFACE:
        defined = [values[name] for values in each if not np.isnan(values[name]).any()]
        means[name] = sum(defined) / len(defined) if defined else np.full_like(each[0][name], math.nan)
    return means


def surface_of(seen: Seen) -> dict[str, np.ndarray]:
    """Each statistic of one document per layer and head; NaN where the document does not define it.

    Where no token is a CLS (a SEP), mass on it is undefined. Mass on punctuation is not: a text without any has 0.
    """
    layers, heads = seen.weights.shape[:2]
    values = {name: np.full((layers, heads), math.nan) for name in SURFACE}
    for layer in range(layers):
        for head in range(heads):
            rows = seen.weights[layer, head]
            values_of_head = {f"mass_{share}": value for share, value in _shares(rows, seen.queries, seen.keys).items()}
            entropies = [-sum(a * math.log(a) for a in row if a > 0) for row in rows]
            values_of_head["entropy"] = mean(entropies)
            from_cls = [entropies[q] for q, token in enumerate(seen.queries) if token.kind == "cls"]
            values_of_head["entropy_from_cls"] = mean(from_cls)
            # A view may leave a row nothing to see.
            values_of_head["entropy_uniform"] = mean(
                [math.log(max(1, sum(row))) for row in seen.visible[layer].tolist()]
            )
            values_of_head["mean_distance"] = mean(
                [
                    sum(a * abs(key.position - query.position) for a, key in zip(row, seen.keys, strict=True))
                    for query, row in zip(seen.queries, rows, strict=True)
                ]
            )
            for name in SURFACE:
                values[name][layer, head] = values_of_head[name]
    return values


def masses(documents: Sequence[Seen], count) -> np.ndarray:
    """Per layer and head the mean over documents of the mean over queries of the attention to keys that count.

    Args:
        documents: what was seen of each.
        count: given a document, a query and a key, says whether the key counts, or None where the query does not.
    """
    each = []
    for seen in documents:
        layers, heads = seen.weights.shape[:2]
        value = np.full((layers, heads), math.nan)
        said = [[count(seen.document, query, key) for key in seen.keys] for query in seen.queries]
        for layer in range(layers):
            for head in range(heads):
                rows = zip(said, seen.weights[layer, head], strict=True)
                sums = [
                    sum(a for a, counts in zip(row, ones, strict=True) if counts)
                    for ones, row in rows
                    if None not in ones
                ]
                value[layer, head] = mean(sums)
        if not np.isnan(value).any():
            each.append(value)
    return sum(each) / len(each)


def _shares(rows: np.ndarray, queries: Sequence[Token], keys: Sequence[Token]) -> dict[str, float]:
    """The share of attention on each class of key, the mean over the queries."""

    def beside(step: int) -> float:
        weights = []
        for query, row in zip(queries, rows, strict=True):
            weights += [row[k] for k, key in enumerate(keys) if key.position == query.position + step]
        return mean(weights)  # only the queries that have such a key

    def on(kind: str, asking: Sequence[int]) -> float:
        chosen = [k for k, key in enumerate(keys) if key.kind == kind]
        if not chosen and kind != "punctuation":
            return math.nan
        return mean([sum(rows[q][k] for k in chosen) for q in asking])

    everyone = range(len(queries))
    separators = [q for q in everyone if queries[q].kind == "sep"]
    others = [q for q in everyone if queries[q].kind != "sep"]
    return {
        "self": beside(0),
        "previous": beside(-1),
        "next": beside(1),
        "cls": on("cls", everyone),
        "sep": on("sep", everyone),
        "punctuation": on("punctuation", everyone),
        "first": mean([row[0] for row in rows]),
        "sep_from_sep": on("sep", separators),
        "sep_from_other": on("sep", others),
    }
