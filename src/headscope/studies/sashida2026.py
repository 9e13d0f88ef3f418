"""Sashida, Kojima, Iwasawa and Matsuo 2026: heads of dependency paths, and what a model loses without them.

The figures are those of the abstract.
"""

import math

import xarray as xr
from matplotlib.figure import Figure

from headscope.analyse.folding import is_pooled
from headscope.analyse.lesions import BY_LAYER, BY_SIZE
from headscope.analyse.rank import rank_heads
from headscope.corpora.paths import FEWEST, KIND
from headscope.studies.lesion_extractors import drop, drop_beyond_random, drop_beyond_set
from headscope.studies.study import Claim, Lesions, Measurement, NotMeasuredError, Pattern, Study, Value
from headscope.studies.study_names import NAMES
from headscope.text_forms import WRITTEN
from headscope.view.figures.draw_head_sets import draw_drops, draw_two_scores

GPT = "GPT-2 XL"
SHARE = 0.1
"""The share of all heads in the set of single-hop heads, and in the set of multi-hop heads."""

SINGLE, MULTI, MIXED = "single-hop", "multi-hop", "mixed"
"""The names of the sets of heads; the paper calls the sets DP, MDP and Mix."""

DROPS = {
    # lesions: (the paper's name of the examples, drop without each set in points)
    "blimp": ("BLiMP", {SINGLE: 1.35, MULTI: 4.81, MIXED: 7.11}),
    "last_words": ("LAMBADA", {SINGLE: 4.70, MULTI: 25.17, MIXED: 32.99}),
}


def choose_top_heads(treebank: xr.Dataset) -> dict[str, list[str]]:
    """Return three sets of heads by name: the best tenth in a relation, the best tenth in a path, and both together."""
    sets: dict[str, list[str]] = {}
    for name, multi in ((SINGLE, False), (MULTI, True)):
        ranked = rank_heads(find_best_scores(treebank, multi=multi))
        sets[name] = [head for head, _ in ranked[: max(1, round(SHARE * len(ranked)))]]
    sets[MIXED] = [*dict.fromkeys([*sets[SINGLE], *sets[MULTI]])]
    return sets


def find_best_scores(treebank: xr.Dataset, *, multi: bool) -> xr.DataArray:
    """Return the highest score of each head in any frequent relation or, if `multi` is true, in any frequent path.

    Frequent means that it occurs at least `FEWEST` times in the direction that is scored.

    Raises:
        NotMeasuredError: no relation or path is frequent.
    """
    names = [
        str(name)
        for name in treebank["relation"].values
        if str(name).startswith(f"{KIND} ") == multi and not is_pooled(str(name))
    ]
    kind = "path of several dependencies" if multi else "relation"
    if not bool((treebank["relation_count"].sel(relation=names) >= FEWEST).any()):
        raise NotMeasuredError(f"the treebank has no {kind} {FEWEST} times")
    of_kind = treebank.sel(relation=names)
    scores = of_kind["relation_accuracy"].where(of_kind["relation_count"] >= FEWEST)
    return scores.max([dim for dim in ("relation", "direction") if dim in scores.dims])


def _make_claims() -> list[Claim]:
    claims = []
    for name, (task, drops) in DROPS.items():
        by_size, by_layer = (f"{name}_{BY_SIZE}",), (f"{name}_{BY_LAYER}",)
        for heads, points in drops.items():
            beyond = Pattern("more than without as many random heads", above=0.0, effect=drop_beyond_random(heads))
            claims.append(
                Claim("abstract", f"{task}, drop without {heads} heads", by_size, Value(points), drop(heads), "points",
                      2, beyond, GPT)
            )  # fmt: skip
        for heads, others in ((MULTI, (SINGLE,)), (MIXED, (SINGLE, MULTI))):
            paper = drops[heads] - max(drops[other] for other in others)
            than = " or ".join(others)
            claims.append(
                Claim("abstract", f"{task}, drop without {heads} heads less that without {than} ones", by_size,
                      Value(paper), drop_beyond_set(heads, *others), "points", 2,
                      Pattern(f"more than without {than} heads", above=0.0), GPT,
                      "the mixed set is the larger one" if heads == MIXED else "")
            )  # fmt: skip
        claims += [
            Claim("not in the abstract", f"{task}, drop without {heads} heads less that without random heads of the "
                  "same layers", by_layer, Value(math.nan), drop_beyond_random(heads), "points", 2,
                  Pattern("more than without random heads of the same layers", above=0.0), GPT)
            for heads in drops
        ]  # fmt: skip
    return claims


def _draw_scores(treebank: xr.Dataset) -> Figure:
    """Draw the best score of each head in a relation and in a path."""
    single, multi = (dict(rank_heads(find_best_scores(treebank, multi=multi))) for multi in (False, True))
    sets = choose_top_heads(treebank)
    return draw_two_scores(
        treebank, single, multi, {name: sets[name] for name in (SINGLE, MULTI)},
        title="Best score of each head in a relation and in a path of several dependencies",
        labels=("best single-hop score", "best multi-hop score"),
    )  # fmt: skip


TABLES = tuple(f"{name}_{match}" for name in DROPS for match in (BY_SIZE, BY_LAYER))


def _draw_drops(*tables: xr.Dataset) -> Figure:
    """Draw the drops on both tasks, next to the drops without random sets of both kinds."""
    return draw_drops(
        dict(zip(("minimal pairs", "last words"), zip(tables[::2], tables[1::2], strict=True), strict=True))
    )


SASHIDA2026 = Study(
    title=NAMES["sashida2026"],
    text=WRITTEN,
    models={GPT: ("gpt2-xl", "openai-community/gpt2-xl")},
    measurements={
        "treebank": Measurement(
            "ud/UD_English-EWT/en_ewt-ud-dev.conllu",
            "UD English EWT, development set: https://github.com/UniversalDependencies/UD_English-EWT",
            ("relations",), "English text parsed in Universal Dependencies", hops=3,
        ),
    },
    lesions={
        "blimp": Lesions(
            "blimp", "BLiMP, a folder of JSON Lines: https://github.com/alexwarstadt/blimp", "BLiMP", "treebank",
            choose_top_heads,
        ),
        "last_words": Lesions(
            "text/litbank_original", "novels of LitBank: https://github.com/dbamman/litbank, or a file of LAMBADA",
            "LAMBADA", "treebank", choose_top_heads, task="last-word:",
        ),
    },
    claims=_make_claims(),
    figures={"scores": (("treebank",), _draw_scores), "drops": (TABLES, _draw_drops)},
    notes=(
        "The figures are those of the abstract. It has none of Llama 3 8B, Qwen3-8B and BERT-large.",
        "The abstract does not say how a head that scores in several relations is ranked. Here a head has the score "
        f"of its best relation, or path, among those that occur {FEWEST} times in that direction; a causal model is "
        "scored on the links that point back.",
        "Single-hop and multi-hop heads are a tenth of all heads each, by raw score: a head that finds the nearest "
        "word scores high in many relations. Mixed heads are both together, so that the set is larger than either.",
        "The abstract compares with as many random heads. If the heads of a set are in layers that bear much, that "
        "alone makes their drop the larger one; so random heads of the same layers are run too.",
        "Each set is compared with ten random sets, or more until it is decided. The interval of a drop beyond random "
        "is by how much these differ; the p-value that decides is exact, and corrected for all sets and metrics.",
        "LAMBADA has passages whose last word people can guess. Paragraphs of novels replace it, whose last words "
        "nobody has tried to guess, so that the whole model is right about fewer; `--corpus last_words=PATH` takes a "
        "file of LAMBADA.",
    ),
)  # fmt: skip
