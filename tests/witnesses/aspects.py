"""Heads that look for the aspect that a question names: the essay's five observations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headscope.corpora.document import Document
from witnesses.means import mean
from witnesses.relations import OFFSETS
from witnesses.seen import Seen
from witnesses.words import word_weights

ENDS = (".", ",", "and", "but")  # of all borders of phrases, those that a test has
TERMS = ("aspect", "same_aspect", "other_aspect")


@dataclass(frozen=True)
class Looked:
    """One target: in how many pairs it is, how much is looked at it and back, and what that is held against."""

    count: int
    lost: int
    mass: np.ndarray
    back: np.ndarray
    accuracy: np.ndarray
    uniform: float
    uniform_back: float
    chance: float
    offset: dict[int, float]


def aspects(documents: Sequence[Seen], sentiment: Sequence[str]) -> dict[str, Looked]:
    """What is seen of each target; each separator is one more word, behind the last of the text."""
    scored: dict[str, list] = {}
    lost: dict[str, int] = {}
    for seen in documents:
        asked = _words(seen.document, "asked")
        with_token = {token.word for token in _with_separators(seen).keys}
        for name, words in _targets(seen.document, sentiment).items():
            scored.setdefault(name, [])
            lost.setdefault(name, 0)
            if asked & with_token and words & with_token:
                scored[name].append(_pair(seen, sorted(asked & with_token), sorted(words & with_token)))
            elif asked and words:
                lost[name] += 1
    table = {}
    for name, pairs in scored.items():
        values = {key: mean([pair[key] for pair in pairs]) for key in (pairs[0] if pairs else {}) if key != "offset"}
        offset = {k: mean([pair["offset"][k] for pair in pairs]) for k in OFFSETS}
        nothing = dict.fromkeys(("mass", "back", "accuracy", "uniform", "uniform_back", "chance"), np.nan)
        table[name] = Looked(count=len(pairs), lost=lost[name], offset=offset, **(nothing | values))
    return table


def _with_separators(seen: Seen) -> Seen:
    """The same, where each separator is the only token of a word behind the last."""
    sides = {}
    for side in ("queries", "keys"):
        tokens = list(getattr(seen, side))
        places = [place for place, token in enumerate(tokens) if token.kind == "sep"]
        for word, place in enumerate(places, start=len(seen.document.words)):
            tokens[place] = replace(tokens[place], word=word)
        sides[side] = tuple(tokens)
    return replace(seen, **sides)


def _pair(seen: Seen, asked: list[int], target: list[int]) -> dict:
    count = len(seen.document.words)
    seen = _with_separators(seen)
    layers, heads = seen.weights.shape[:2]
    values = {name: np.zeros((layers, heads)) for name in ("mass", "back", "accuracy")}
    words = sorted({token.word for token in seen.keys if token.word is not None})
    others = [word for word in words if word not in asked and (word < count or target[0] >= count)]
    for layer in range(layers):
        for head in range(heads):
            between = word_weights(seen.weights[layer, head], seen.queries, seen.keys, max(words) + 1)
            looked = [mean([between[word, other] for word in asked]) for other in range(max(words) + 1)]
            values["mass"][layer, head] = sum(looked[word] for word in target)
            values["back"][layer, head] = mean([sum(between[word, named] for named in asked) for word in target])
            best = max((looked[word] for word in others), default=0)
            values["accuracy"][layer, head] = best > 0 and next(w for w in others if looked[w] == best) in target
    tokens = [token.word for token in seen.keys if token.position >= 0]
    return values | {
        "uniform": sum(tokens.count(word) for word in target) / len(tokens),
        "uniform_back": sum(tokens.count(word) for word in asked) / len(tokens),
        "chance": len(target) / len(others),
        "offset": {
            k: float((min(asked) if k < 0 else max(asked)) + k in [word for word in target if word < count])
            for k in OFFSETS
        },
    }


def _targets(document: Document, sentiment: Sequence[str]) -> dict[str, set[int]]:
    texts = [word.lower() for word in document.words]
    asked = _words(document, "asked")
    same = _words(document, "same_aspect") - asked
    other = _words(document, "other_aspect") - asked - same
    phrase = set()
    for span in document.spans:
        if span.kind == "same_aspect":
            phrase |= set(range(span.start, span.end))
            for ahead in (range(span.start - 1, -1, -1), range(span.end, len(texts))):
                for word in ahead:
                    beyond = document.boundary and (word < document.boundary) != (span.start < document.boundary)
                    if beyond or texts[word] in ENDS or word in asked or word in other:
                        break
                    phrase.add(word)
    phrase -= asked
    separators = set(range(len(texts), len(texts) + 5))  # more than any text has
    return {
        "same_aspect": same,
        "related": {word for word in same if not any(texts[word].startswith(texts[named]) for named in asked)},
        "sentiment": {word for word in phrase if texts[word] in sentiment} - _words(document, *TERMS),
        "phrase": phrase,
        "other_aspect": other if same else set(),
        "same_beside_other": same if other else set(),
        "sep_when_present": separators if document.label not in (None, "none") else set(),
        "sep_when_absent": separators if document.label == "none" else set(),
    }


def _words(document: Document, *kinds: str) -> set[int]:
    return {word for span in document.spans if span.kind in kinds for word in range(span.start, span.end)}
