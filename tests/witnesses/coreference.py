"""Heads as classifiers of coreference: Clark et al. 2019, section 4.3."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headscope.corpora.document import Document
from witnesses.means import mean
from witnesses.relations import OFFSETS
from witnesses.seen import Seen
from witnesses.words import best_other, word_weights

TAGS = {"pronoun": ("PRON",), "proper": ("PROPN",), "nominal": ("NOUN", "VERB")}  # of all that tiny documents have


@dataclass(frozen=True)
class Found:
    """One class of mentions: how many there are, and of how many an antecedent is found by each way to choose one."""

    count: int
    heads: np.ndarray
    offset: dict[int, float]
    baseline: dict[str, float]


@dataclass(frozen=True)
class Mention:
    chain: str
    start: int
    words: list[str]
    head: int
    head_word: str
    tag: str | None


def coreference(documents: Sequence[Seen]) -> dict[str, Found]:
    """What is found of each class of mentions; ``all`` are also those that have no part of speech."""
    scored = [(seen, *scored_one) for seen in documents for scored_one in scored_of(seen)]
    answers = {id(seen): answers_of(seen) for seen in documents}
    table = {}
    for kind in ("all", *TAGS):
        chosen = [entry for entry in scored if kind == "all" or entry[1].tag in TAGS[kind]]
        right = [np.isin(answers[id(seen)][..., mention.head], list(gold)) for seen, mention, _, gold in chosen]
        table[kind] = Found(
            count=len(chosen),
            heads=mean([hits.astype(float) for hits in right]),
            offset={k: mean([float(mention.head + k in gold) for _, mention, _, gold in chosen]) for k in OFFSETS},
            baseline={
                name: mean([float(choose(mention, earlier) in gold) for _, mention, earlier, gold in chosen])
                for name, choose in (("nearest", _nearest), ("head_match", _head_match), ("rules", _rules))
            },
        )
    return table


def answers_of(seen: Seen) -> np.ndarray:
    """The other word that each word attends to most, -1 where it attends to none: ``[layer, head, word]``."""
    layers, heads = seen.weights.shape[:2]
    count = len(seen.document.words)
    answers = np.full((layers, heads, count), -1)
    for layer in range(layers):
        for head in range(heads):
            words = word_weights(seen.weights[layer, head], seen.queries, seen.keys, count)
            for word in range(count):
                best = best_other(words[word], word)
                answers[layer, head, word] = -1 if best is None else best
    return answers


def scored_of(seen: Seen) -> list[tuple[Mention, list[Mention], set[int]]]:
    """Each mention that has an antecedent and a token, all mentions before it, the head words of its antecedents."""
    scored = []
    mentions = mentions_of(seen.document)
    with_token = {token.word for token in seen.queries}
    for mention in mentions:
        earlier = [other for other in mentions if other.head < mention.head]
        gold = {other.head for other in earlier if other.chain == mention.chain}
        if gold and mention.head in with_token:
            scored.append((mention, earlier, gold))
    return scored


def mentions_of(document: Document) -> list[Mention]:
    """One mention for each chain and head word, the longest; of a chain that has more than one head word."""
    spans = [span for span in document.spans if span.kind == "mention"]
    chains: dict[str, dict[int, list]] = {}
    for span in spans:
        chains.setdefault(span.label, {}).setdefault(_head(document, span.start, span.end), []).append(span)
    mentions = []
    for chain, by_head in chains.items():
        for head, same in by_head.items():
            longest = max(span.end - span.start for span in same)
            start = min(span.start for span in same if span.end - span.start == longest)
            tags = [span.label for span in document.spans if (span.kind, span.start) == ("upos", head)]
            if len(by_head) > 1:
                words = list(document.words[start : start + longest])
                tag = tags[0] if tags else None
                mentions.append(Mention(chain, start, words, head, document.words[head], tag))
    return mentions


def _head(document: Document, start: int, end: int) -> int:
    trees = [link for link in document.links if link.kind == "dependency"]
    for word in range(start, end):
        if trees and not [link for link in trees if link.source == word and start <= link.target < end]:
            return word
    return end - 1


def _last(candidates: list[Mention]) -> int | None:
    return max((mention.head for mention in candidates), default=None)


def _nearest(_: Mention, earlier: list[Mention]) -> int | None:
    return _last(earlier)


def _head_match(mention: Mention, earlier: list[Mention]) -> int | None:
    return _last([other for other in earlier if other.head_word.lower() == mention.head_word.lower()])


def _rules(mention: Mention, earlier: list[Mention]) -> int | None:
    same = [other for other in earlier if " ".join(other.words).lower() == " ".join(mention.words).lower()]
    number = _number(mention)
    agreeing = [other for other in earlier if None in (number, _number(other)) or number == _number(other)]
    for answer in (_last(same), _head_match(mention, earlier), _last(agreeing)):
        if answer is not None:
            return answer
    return _last(earlier)


def _number(mention: Mention) -> str | None:
    """Of the words that tiny documents are made of: these hold no pronoun and no determiner but *a* and *the*."""
    if mention.tag == "PRON":
        return None
    if mention.words[0] == "a" and mention.head > mention.start:
        return "singular"
    return "plural" if mention.head_word.endswith("s") and mention.tag in ("NOUN", None) else None
