"""Head tables as the reducer ``relations`` makes them, added up by naive loops from hits that the tests chose.

Every axis has another length: 2 directions, 3 layers, 5 heads, 7 relations, 11 offsets, 13 classes of words, 17 sides;
folds are 64, as everywhere.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.stats
import xarray as xr

import witnesses
from headscope import heads
from headscope.analyse.proportion import CORRELATIONS, FEW
from headscope.reducers.relations import ACCURACY
from headscope.score import write_scores

DIRECTIONS = ("dependent_to_head", "head_to_dependent")
OFFSETS = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6)
SIDES = tuple(f"side {number:02}" for number in range(17))
CLASSES = tuple(f"class {number:02}" for number in range(13))
RELATIONS = ("nsubj", "obj", "det", "amod", "case", "obl", "punct")
FOLDS = 64

ATTRIBUTES = {
    "model": "made/up",
    "weights_sha256": "ab" * 32,
    "corpus": "made-up.conllu",
    "corpus_sha256": "cd" * 32,
    "documents": 211,
    "tokens": 2503,
    "skipped": json.dumps({"longer than 128 tokens": 17}),
    "call": "measure(model='made/up')",
}


@dataclass(frozen=True)
class Links:
    """The links of one relation in one document.

    Attributes:
        hits: whether each head finds each link, ``hits[link, layer, head, direction]``.
        distance: how far the head of each link stands from the dependent, in words.
        rules: whether each rule by part of speech finds each link, ``rules[link, direction, side, class]``; None where
            the words have no parts of speech.
    """

    hits: np.ndarray
    distance: Sequence[int]
    rules: np.ndarray | None = None


@dataclass(frozen=True)
class Text:
    """A document: the fold it was assigned to, and its links by relation."""

    fold: int
    links: Mapping[str, Links]


def head_table(texts: Sequence[Text], relations: Sequence[str]) -> xr.Dataset:
    """The head table of some documents."""
    by_head = next(links.hits.shape[1:] for text in texts for links in text.links.values())
    rows, folds, offsets = len(relations), FOLDS, len(OFFSETS)
    right, near = np.zeros((*by_head, rows, folds), dtype=int), np.zeros((rows, folds, offsets), dtype=int)
    link = np.zeros((rows, folds), dtype=int)
    by_rule = np.zeros((len(DIRECTIONS), rows, folds, len(SIDES), len(CLASSES)))
    tagged = any(links.rules is not None for text in texts for links in text.links.values())
    for text in texts:
        for name, links in text.links.items():
            row, fold, n = relations.index(name), text.fold, len(links.hits)
            if n == 0:
                continue
            link[row, fold] += n
            right[..., row, fold] += sum(hit.astype(int) for hit in links.hits)
            for k, offset in enumerate(OFFSETS):
                near[row, fold, k] += sum(int(distance == offset) for distance in links.distance)
            for found in links.rules if links.rules is not None else ():
                by_rule[:, row, fold] += found.astype(int)
    totals = link.sum(-1)
    with np.errstate(invalid="ignore"):
        accuracy, offset_accuracy = right.sum(-1) / totals, near.sum(1) / totals[:, None]
    values = {
        "relation_accuracy": (("layer", "head", "relation", "direction"), np.swapaxes(accuracy, 2, 3)),
        "relation_count": (("relation",), totals),
        "offset_accuracy": (("relation", "offset"), offset_accuracy),
        "fold_correct": (("layer", "head", "direction", "relation", "fold"), right),
        "fold_offset": (("relation", "fold", "offset"), near),
        "fold_link": (("relation", "fold"), link),
    }
    if tagged:
        values["fold_upos"] = (("direction", "relation", "fold", "side", "word_class"), by_rule)
    options = {"side": list(SIDES), "word_class": list(CLASSES)} if tagged else {}
    return xr.Dataset(
        {
            name: heads.variable(data, dims, name=name, units="1", source="loops")
            for name, (dims, data) in values.items()
        },
        coords={
            "layer": np.arange(1, by_head[0] + 1),
            "head": np.arange(1, by_head[1] + 1),
            "relation": list(relations),
            "direction": list(DIRECTIONS),
            "offset": list(OFFSETS),
            **options,
        },
        attrs=ATTRIBUTES | {"scores": write_scores([ACCURACY])},
    )


def stacked(tables: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Tables of several attention types as one, the first the deepest; NaN for the layers that a attention type does
    not have.
    """
    first = next(iter(tables.values()))
    joint = {}
    for name, values in first.data_vars.items():
        if "layer" not in values.dims:
            joint[name] = values
            continue
        data = np.full((len(tables), *values.shape), np.nan)
        for place, table in enumerate(tables.values()):
            data[place, : table.sizes["layer"]] = table[name].values
        joint[name] = xr.DataArray(data, dims=("attention_type", *values.dims), attrs=values.attrs)
    return xr.Dataset(joint, coords={**first.coords, "attention_type": list(tables)}, attrs=first.attrs)


def texts(draw: np.random.Generator, layers: int = 3, heads: int = 5) -> list[Text]:
    """23 documents with some links of each relation; how hard they are to find differs from document to document.

    Most determiners stand before their noun.
    """
    made = []
    for number in range(23):
        links = {}
        for name, most in zip(RELATIONS, (5, 4, 3, 2, 4, 3, 2), strict=True):
            n = draw.integers(0, most + 1)
            hits = draw.random((n, layers, heads, len(DIRECTIONS))) < draw.beta(1, 1)
            distance = np.where(draw.random(n) < 0.9 * (name == "det"), 1, draw.choice([*OFFSETS, 17], n))
            rules = draw.random((n, len(DIRECTIONS), len(SIDES), len(CLASSES))) < draw.beta(1, 5)
            links[name] = Links(hits, distance, rules)
        made.append(Text(number % FOLDS, links))
    return made


def with_other_hits(made: Sequence[Text], draw: np.random.Generator) -> list[Text]:
    """The same links, found by other heads."""
    return [
        Text(text.fold, {n: replace(one, hits=draw.random(one.hits.shape) < 0.3) for n, one in text.links.items()})
        for text in made
    ]


def two_stacks(seed: int) -> tuple[xr.Dataset, xr.Dataset]:
    """An encoder of three layers and a decoder of two that is wrong where the encoder is right."""
    made = texts(np.random.default_rng(seed))
    wrong = [
        Text(text.fold, {name: replace(links, hits=~links.hits[:, :2]) for name, links in text.links.items()})
        for text in made
    ]
    return head_table(made, RELATIONS), head_table(wrong, RELATIONS)


def interval_of(hits: list[bool], clusters: list[str], level: float = 0.95) -> tuple[float, float]:
    """The hull of Wilson's interval at the number of links that statsmodels' clustered variance leaves, and scipy's."""
    n, p = len(hits), sum(hits) / len(hits)
    error = witnesses.clustered_error(hits, clusters)
    if math.isnan(error):
        return math.nan, math.nan
    effective = n if p in (0, 1) else min(n, p * (1 - p) / error**2) if error > 0 else n
    ends = wilson(p, effective, witnesses.effective_clusters(clusters), level)
    items, right = Counter(clusters), Counter(cluster for cluster, hit in zip(clusters, hits, strict=True) if hit)
    low, high = posterior(np.array([right[each] for each in items]), np.array([*items.values()]), level)
    return min(ends[0], low), max(ends[1], high)


def posterior(right: np.ndarray, items: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """The beta-binomial posterior interval by scipy, on a grid ten times as fine."""
    angles = (np.arange(1280) + 0.5) / 1280 * np.pi / 2
    proportions = np.sin(angles) ** 2
    scale = 1 / CORRELATIONS[:, None, None] - 1
    beta = (proportions[:, None] * scale, (1 - proportions[:, None]) * scale)
    logs = scipy.stats.betabinom.logpmf(right, items, *beta).sum(-1)
    mass = np.exp(logs - logs.max()).sum(0)
    low, high = np.interp([(1 - level) / 2, (1 + level) / 2], mass.cumsum() / mass.sum(), proportions)
    few = int(items.sum() <= FEW)
    return (0.0 if right.sum() <= few else low), (1.0 if (items - right).sum() <= few else high)


def lift_of(differences: Sequence[float], clusters: Sequence[str]) -> tuple[float, float, float]:
    """The mean difference, and Student's interval of it with statsmodels' clustered variance, from -1 to 1 at most."""
    share = sum(differences) / len(differences)
    half = scipy.stats.t.ppf(0.975, witnesses.effective_clusters(clusters) - 1)
    half *= witnesses.clustered_error(differences, clusters)
    return share, max(-1.0, share - half), min(1.0, share + half)


def wilson(share: float, effective: float, clusters: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval with Student's quantile t for some clusters: where (share - x)^2 = t^2 x (1 - x) / n."""
    factor = scipy.stats.t.ppf((1 + level) / 2, max(clusters - 1, 1)) ** 2 / effective
    low, high = sorted(np.roots([1 + factor, -2 * share - factor, share**2]).real)
    return max(low, 0.0), min(high, 1.0)
