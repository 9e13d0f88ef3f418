"""Attention to classes of tokens: Kovaleva et al. 2019, sections 4.4 and 4.5."""

import math
from collections.abc import Sequence

import numpy as np

from headscope.corpora.document import Document
from witnesses.means import mean
from witnesses.seen import Seen, Token

CLASSES = ("noun", "verb", "pronoun", "subject", "object", "negation", "cls", "sep")


def classes(documents: Sequence[Seen]) -> dict[str, dict[str, np.ndarray | float]]:
    """Per class the mean over the documents that have it: attention per layer and head, and the baselines."""
    table = {}
    for name in CLASSES:
        having = [(seen, keys) for seen in documents if (keys := _members(seen, name))]
        layers, heads = documents[0].weights.shape[:2]
        values = {
            variable: np.full((layers, heads), math.nan)
            for variable in ("attention", "mass", "attention_from_cls", "mass_from_cls")
        }
        for layer in range(layers):
            for head in range(heads):
                for queries, ending in (("all", ""), ("cls", "_from_cls")):
                    received = [
                        _received(seen, layer, head, keys, queries)
                        for seen, keys in having
                        if queries == "all" or any(token.kind == "cls" for token in seen.queries)
                    ]
                    values[f"attention{ending}"][layer, head] = mean([max(tokens) for tokens in received])
                    values[f"mass{ending}"][layer, head] = mean([sum(tokens) for tokens in received])
        values["share"] = mean([len(keys) / len(seen.keys) for seen, keys in having])
        values["uniform"] = mean([1 / len(seen.keys) for seen, _ in having])
        values["count"] = len(having)
        table[name] = values
    return table


def _members(seen: Seen, name: str) -> list[Token]:
    """The tokens of a class; of words, not the first token of a decoder's text."""
    members = [token for token in seen.keys if _is(seen.document, token, name)]
    return [token for token in members if token.position > 0 or name in ("cls", "sep") or not seen.is_causal]


def _received(seen: Seen, layer: int, head: int, keys: Sequence[Token], queries: str) -> list[float]:
    """What each of some keys gets, as a mean over all queries or over the [CLS] alone."""
    asking = [q for q, token in enumerate(seen.queries) if queries == "all" or token.kind == "cls"]
    columns = [k for k, token in enumerate(seen.keys) if token in keys]
    return [sum(seen.weights[layer, head, q, k] for q in asking) / len(asking) for k in columns]


def _is(document: Document, token: Token, name: str) -> bool:
    if name in ("cls", "sep"):
        return token.kind == name
    if name in ("subject", "object"):
        labels = {"subject": ("nsubj", "csubj"), "object": ("obj", "iobj")}[name]
        sources = [
            link.source
            for link in document.links
            if link.kind == "dependency"
            and (link.label in labels or link.label.startswith(tuple(f"{x}:" for x in labels)))
        ]
        return token.word in sources
    spans = [span for span in document.spans if token.word is not None and span.start <= token.word < span.end]
    if name == "negation":
        return any(span.kind in ("negation", "cue") for span in spans)
    tags = {"noun": ("NOUN", "PROPN"), "verb": ("VERB",), "pronoun": ("PRON",)}[name]
    return any(span.kind == "upos" and span.label in tags for span in spans)
