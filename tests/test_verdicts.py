"""How often a head that knows nothing is said to stand out, and one that knows something is not.

Heads of many kinds that know no relation, chain or scope are measured as those of a model are, on real corpora, beside
an untrained model of the same kinds. All of what is drawn has a seed.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom
from scipy.stats import t as student

from headscope.analyse import add_report, add_significance
from headscope.analyse.report import CLUSTERS, DOES_NOT, STANDS_OUT, UNDECIDED
from headscope.analyse.uncertainty import Lift, Ratio
from headscope.corpora import read, summarize
from headscope.corpora.document import Document
from headscope.reducers import Reducer
from headscope.reducers.coreference import Coreference
from headscope.reducers.negation_scope import NegationScope
from headscope.reducers.relations import Relations
from headscope.reducers.support.folds import FOLDS, FoldAssignment
from headscope.reducers.support.permutations import with_permutations
from ignorant import CUNNING, KINDS, Heads, Prepared

CORPORA = {
    "relations": (Relations, "ud/UD_English-EWT/en_ewt-ud-dev.conllu", 25, "", 399),
    "scope": (NegationScope, "negation/sfu_review_xml", 30, "cue", 99),
    "coreference": (Coreference, "coref/ontogum", 90, "", 99),
}
"""The reducer, the corpus, the words of the longest documents (longer texts are cut), the spans that they need and the
permutations, of which each row needs 20."""


@cache
def texts(data: Path, name: str) -> dict[str, list[Document]]:
    """The documents of each text of a corpus."""
    _, path, most, needed, _ = CORPORA[name]
    grouped = defaultdict(list)
    for document in read(data / path):
        if len(document.words) > most and name != "coreference":
            continue
        if not needed or any(span.kind == needed for span in document.spans):
            grouped[document.group].append(document.truncate(most))
    return dict(grouped)


def draw_corpus(data: Path, name: str, seed: int, count: int = 100, each: int = 3) -> list[Document]:
    """Some documents of each of so many texts."""
    grouped, draw = texts(data, name), np.random.default_rng(seed)
    chosen = draw.choice(sorted(grouped), min(count, len(grouped)), replace=False)
    return [document for text in chosen for document in grouped[text][:each]]


def prepare(name: str, documents: Sequence[Document]) -> Prepared:
    reducer: Reducer = CORPORA[name][0].for_corpus(summarize(documents))
    return Prepared(with_permutations(reducer, CORPORA[name][-1]), documents)


def judge(corpus: Prepared, seed: int, kinds: Sequence[str], untrained: Sequence[str], layers: int = 2) -> xr.Dataset:
    """What is reported of heads of some kinds beside an untrained model of others."""
    control = corpus.table(Heads(2 * seed + 1, untrained, layers)) if untrained else None
    return add_report(add_significance(corpus.table(Heads(2 * seed, kinds, layers))), control)


def verdicts(table: xr.Dataset) -> list[str]:
    (name,) = (name for name in table.variables if str(name).endswith("reported_verdict"))
    return [str(verdict) for verdict in np.atleast_1d(table[name].values)]


def cases() -> Iterator[tuple[str, str, Sequence[str], Sequence[str]]]:
    """Ignorant heads beside an untrained model that has the same habits; cunning ones beside one that has fewer."""
    for name, cunning in zip(CORPORA, CUNNING, strict=True):
        yield from ((name, kind, (kind,), (kind,)) for kind in KINDS)
        yield name, "all kinds", KINDS, KINDS
        yield name, cunning, (cunning,), ("uniform", "one word")


def count_verdicts(data: Path, name: str, kinds: Sequence[str], untrained: Sequence[str], worlds: int) -> list[Counter]:
    """The verdicts on the rows of each world."""
    return [
        Counter(verdicts(judge(prepare(name, draw_corpus(data, name, seed)), seed, kinds, untrained)))
        for seed in range(worlds)
    ]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "what", "kinds", "untrained"), [pytest.param(*case, id=case[0] + "-" + case[1]) for case in cases()]
)
def test_heads_that_know_no_gold_do_not_stand_out(data, name, what, kinds, untrained) -> None:
    (rows,) = count_verdicts(data, name, kinds, untrained, 1)
    decided = rows[STANDS_OUT] + rows[DOES_NOT]
    assert decided > 0
    # Cunning heads know parts of speech: one rule is a weak rival for the row `all`, which pools many relations.
    assert rows[STANDS_OUT] <= (binom.ppf(0.99, decided, 0.05) if kinds == (what,) and what in CUNNING else 0)


SIZES = ("equal", "unequal", "giant")
"""Texts of 20 items each; of 1 to 200, log-normal; and one of them with half of all items."""

SHARES = np.array([0.3, 0.15, 0.15, 0.4])
"""Of items that both head and rival get right, that only the head does, only the rival, and neither, without a lift."""


def draw_lifts(count: int, sizes: str, worlds: int = 701, lift: float = 0.0) -> Lift:
    """A head and a rival on the half of so many texts on which heads are scored, in each of many worlds.

    What they get right is correlated within texts by 0.2. Texts are assigned to folds as those of a corpus are.
    """
    draw = np.random.default_rng([count, SIZES.index(sizes), int(1000 * lift)])
    items = np.full((worlds, count), 20)
    if sizes == "unequal":
        items = 1 + draw.lognormal(2.5, 1, (worlds, count)).clip(max=199).astype(int)
    if sizes == "giant":
        items[:, 0] = 20 * (count - 1)
    shares = SHARES + np.array([0, lift / 2, -lift / 2, 0])
    of_text = draw.gamma(np.broadcast_to(4 * shares, (worlds, count, 4))) + 1e-12
    right = draw.multinomial(items, of_text / of_text.sum(-1, keepdims=True))
    fold = []
    for world in range(worlds):
        documents = [Document(f"{world}-{t}", (f"a{t}",), group=f"{world}-{t}") for t in range(count)]
        assignment = replace(FoldAssignment.for_corpus(summarize(documents)), unit="text")
        fold.append([assignment.fold(document) for document in documents])
    sums = np.zeros((3, worlds, FOLDS))
    parts = (right[..., 0] + right[..., 1], right[..., 0] + right[..., 2], items)
    for total, part in zip(sums, parts, strict=True):
        np.add.at(total, (np.arange(worlds)[:, None], np.array(fold)), part)
    head, rival, both = (xr.DataArray(part[:, 1::2], dims=("world", "fold")) for part in sums)
    return Lift(Ratio(head, both), Ratio(rival, both))


def covered(lift: Lift) -> tuple[float, float]:
    """How often the interval holds the truth, no lift; and how often it would with m-1 degrees of freedom."""
    lower, upper = (end.values for end in lift.interval())
    there = ~np.isnan(lower)
    freedom = lift.clusters.values[there] - 1
    half = lift.error.values[there] * student.ppf(0.975, freedom)
    return float(((lower <= 0) & (upper >= 0))[there].mean()), float((np.abs(lift.value.values[there]) <= half).mean())


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("count", [8, 20, 40, 100])
def test_the_interval_of_a_lift_covers_the_truth(count: int, sizes: str) -> None:
    lift = draw_lifts(count, sizes)
    held, naive = covered(lift)
    assert held >= 0.92
    if sizes == "giant" and count >= 20:
        assert naive < 0.8
    if count < 40:
        assert (lift.clusters < CLUSTERS).all()


@pytest.mark.parametrize("sizes", [SIZES[0], pytest.param(SIZES[1], marks=pytest.mark.full)])
def test_a_lift_as_large_as_the_detectable_one_is_found_four_times_in_five(sizes: str) -> None:
    needed = float(draw_lifts(150, sizes).detectable().median())
    lower, _ = draw_lifts(150, sizes, lift=needed).interval()
    assert abs(float((lower > 0).mean()) - 0.8) < 0.1


# ------------------------------------------------------------ what cannot be decided


@pytest.mark.data
def test_of_two_texts_nothing_is_said(data) -> None:
    documents = [replace(d, group="ab"[i % 2]) for i, d in enumerate(draw_corpus(data, "relations", 0))]
    judged = judge(prepare("relations", documents), 0, ("part of speech",), ("uniform",))
    assert set(verdicts(judged)) == {UNDECIDED, ""}


@pytest.mark.data
def test_without_parts_of_speech_their_rival_is_left_out(data) -> None:
    documents = [replace(document, spans=()) for document in draw_corpus(data, "relations", 0)]
    judged = judge(prepare("relations", documents), 0, KINDS, KINDS)
    assert "lift_over_upos" not in judged
    assert "lift_over_offset" in judged
    assert STANDS_OUT not in verdicts(judged)


@pytest.mark.data
def test_a_rival_that_predicts_nothing_lets_no_head_stand_out(data) -> None:
    corpus = prepare("relations", draw_corpus(data, "relations", 0))
    table, control = (corpus.table(Heads(seed, KINDS, 2)) for seed in (0, 1))
    table = table.assign(fold_upos=xr.zeros_like(table["fold_upos"]))
    assert STANDS_OUT not in verdicts(add_report(add_significance(table), control))


@pytest.mark.data
def test_a_head_that_knows_most_of_the_gold_stands_out(data) -> None:
    corpus, place = prepare("relations", draw_corpus(data, "relations", 1)), (1, 5)
    table = corpus.table(Heads(0, KINDS, 2, known={place: 0.97}))
    judged = add_report(add_significance(table), corpus.table(Heads(1, KINDS, 2)))
    judged = judged.isel(relation=judged["reported_verdict"].isin([STANDS_OUT, DOES_NOT]).values)
    found = judged["reported_verdict"] == STANDS_OUT
    assert (judged["reported_layer"] == place[0] + 1)[found].all()
    assert (judged["reported_head"] == place[1] + 1)[found].all()
    # Where a rival is nearly always right, no head can be better.
    hard = judged["lift_detectable"] < 0.97 - judged[
        ["heldout_offset_accuracy", "heldout_upos_accuracy"]
    ].to_array().max("variable")
    assert found.sum() >= 3
    assert found[hard.values].mean() >= 0.8
