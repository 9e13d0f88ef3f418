"""Intervals of accuracies: against statsmodels, and how often they cover the truth."""

import math
from functools import cache

import numpy as np
import pytest
import scipy.stats
import xarray as xr
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from statsmodels.stats.power import NormalIndPower
from statsmodels.stats.proportion import proportion_confint, proportion_effectsize

import tiny
import witnesses
from analyse.tables import (
    DIRECTIONS,
    FOLDS,
    OFFSETS,
    RELATIONS,
    head_table,
    interval_of,
    stacked,
    texts,
    two_stacks,
    wilson,
)
from headscope.analyse import add_intervals
from headscope.analyse.uncertainty import Ratio
from headscope.capture.model import Model
from headscope.corpora import summarize
from headscope.errors import TableError
from headscope.reducers.relations import ACCURACY
from headscope.reducers.support.folds import FoldAssignment
from headscope.runner.local import measure

EXACT = {"rtol": 1e-9, "atol": 1e-12}

DOCUMENTS = st.lists(
    st.integers(1, 7).flatmap(lambda links: st.lists(st.booleans(), min_size=links, max_size=links)),
    min_size=2,
    max_size=23,
)
"""Whether each link of each document is found; documents of one to seven links."""


def counts(documents: list[list[bool]]) -> Ratio:
    """The sums of one relation and one head, each document in a fold of its own."""
    right, links = [sum(hits) for hits in documents], [len(hits) for hits in documents]
    return Ratio(xr.DataArray(right, dims="fold"), xr.DataArray(links, dims="fold"))


def interval(documents: list[list[bool]], level: float = 0.95) -> tuple[float, float]:
    lower, upper = counts(documents).interval(level)
    return lower.item(), upper.item()


def flat(documents: list[list[bool]]) -> tuple[list[bool], list[str]]:
    hits = [hit for document in documents for hit in document]
    return hits, [str(place) for place, document in enumerate(documents) for _ in document]


# ------------------------------------------------------------ one interval


@settings(deadline=None)
@given(documents=DOCUMENTS, level=st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_interval_is_wilsons_with_the_clustered_variance_of_statsmodels(documents, level: float) -> None:
    np.testing.assert_allclose(interval(documents, level), interval_of(*flat(documents), level), **EXACT)


@pytest.mark.parametrize("seed", range(3))
def test_the_bootstrap_is_that_of_scipy(seed: int) -> None:
    draw = np.random.default_rng(seed)
    documents = [list(draw.random(draw.integers(1, 8)) < draw.beta(2, 3)) for _ in range(31)]
    right, links = np.array([[sum(hits), len(hits)] for hits in documents]).T
    theirs = scipy.stats.bootstrap(
        (right, links), lambda a, b, axis: a.sum(axis) / b.sum(axis), paired=True, vectorized=True, method="percentile",
        n_resamples=20_000, rng=draw,
    ).confidence_interval  # fmt: skip
    ours = [end.item() for end in counts(documents).bootstrap(times=20_000)]
    width = theirs.high - theirs.low
    np.testing.assert_allclose(ours, [theirs.low, theirs.high], atol=0.04 * width)


def test_one_document_has_no_bootstrap() -> None:
    assert [math.isnan(end) for end in counts([[True, False, True]]).bootstrap()] == [True, True]


@pytest.mark.parametrize("seed", range(5))
def test_what_could_be_detected_statsmodels_finds_four_times_in_five(seed: int) -> None:
    draw = np.random.default_rng(seed)
    found = counts([list(draw.random(7) < draw.beta(1, 4)) for _ in range(53)])
    share, effective, rise = (value.item() for value in (found.value, found.effective, found.detectable()))
    assert 0 < rise < 0.5
    effect = proportion_effectsize(share + rise, share)
    power = NormalIndPower(ddof=0).power(effect, nobs1=effective, alpha=0.05, ratio=0)
    assert power == pytest.approx(0.8, abs=1e-5)


def test_where_there_is_no_room_nothing_could_be_detected() -> None:
    assert math.isnan(counts([[True] * 7, [True] * 5, [True, False]]).detectable())


@pytest.mark.parametrize("seed", range(5))
def test_strong_clusters_widen_the_interval(seed: int) -> None:
    draw = np.random.default_rng(seed)
    documents = [list(draw.random(7) < draw.beta(0.5, 0.5)) for _ in range(53)]
    hits, clusters = flat(documents)
    naive = proportion_confint(sum(hits), len(hits), method="wilson")
    ours = interval(documents)
    np.testing.assert_allclose(ours, interval_of(hits, clusters), **EXACT)
    assert ours[1] - ours[0] > 1.5 * (naive[1] - naive[0])


@pytest.mark.parametrize("always", [False, True])
def test_a_head_that_is_always_right_or_always_wrong_has_an_interval(always: bool) -> None:
    lower, upper = interval([[always] * 3] * 11)
    np.testing.assert_allclose((lower, upper), wilson(always, 33, 11), **EXACT)
    assert 0 <= lower < upper <= 1
    # Closed form: Wilson's interval of no success in n is [0, t² / (n + t²)], t the quantile for 10 degrees of freedom.
    assert upper - lower == pytest.approx(2.228139**2 / (33 + 2.228139**2), abs=1e-6)


def test_one_document_says_nothing_about_the_spread_between_documents() -> None:
    one = counts([[True, False, True]])
    assert one.value.item() == pytest.approx(2 / 3)
    assert all(math.isnan(end) for end in interval([[True, False, True]]))
    # A document without a link of the relation is not a second one.
    assert all(math.isnan(end) for end in interval([[True, False, True], []]))


def test_no_links_no_accuracy() -> None:
    assert math.isnan(counts([[], []]).value.item())
    assert all(math.isnan(end) for end in interval([[], []]))


def test_links_that_spread_more_evenly_than_chance_count_no_more_than_there_are() -> None:
    documents = [[True, False, True, False]] * 13
    assert witnesses.clustered_error(*flat(documents)) == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(interval(documents), wilson(0.5, 52, 13), **EXACT)


@settings(deadline=None)
@given(right=st.integers(0, 31), wrong=st.integers(0, 31))
def test_with_one_link_a_document_hardly_anything_but_wilson_remains(right: int, wrong: int) -> None:
    assume(right + wrong > 1)
    n = right + wrong
    # The factor m / (m - 1) is all that the clusters add: it leaves n - 1 of n links.
    effective = n - 1 if right and wrong else n
    share = right / n
    expected = wilson(share, effective, n)
    np.testing.assert_allclose(interval([[True]] * right + [[False]] * wrong), expected, **EXACT)


# --------------------------------------------------------------- coverage


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_the_interval_covers_the_truth_as_often_as_it_says_and_the_naive_one_does_not(p: float) -> None:
    replicates, documents, most, correlation = 2_000, 151, 11, 0.3
    draw = np.random.default_rng(round(100 * p))
    links = draw.integers(1, most + 1, (replicates, documents))
    spread = 1 / correlation - 1  # of a beta distribution whose permutations correlate links as much as that
    right = draw.binomial(links, draw.beta(p * spread, (1 - p) * spread, links.shape))
    lower, upper = Ratio(*(xr.DataArray(values, dims=("replicate", "fold")) for values in (right, links))).interval()
    covered = ((lower <= p) & (p <= upper)).mean().item()
    assert 0.93 <= covered <= 0.98
    low, high = proportion_confint(right.sum(1), links.sum(1), method="wilson")
    assert np.mean((low <= p) & (p <= high)) < 0.9


# ---------------------------------------------------------- whole tables


def test_every_accuracy_of_a_table_gets_its_interval() -> None:
    made = texts(np.random.default_rng(3))
    table = add_intervals(head_table(made, RELATIONS))
    for name in RELATIONS:
        clusters = [str(place) for place, text in enumerate(made) for _ in text.links[name].hits]
        hits = np.concatenate([text.links[name].hits for text in made])
        for layer, head, direction in np.ndindex(hits.shape[1:]):
            row = table.sel(relation=name, layer=layer + 1, head=head + 1, direction=DIRECTIONS[direction])
            ends = (row["relation_accuracy_lower"].item(), row["relation_accuracy_upper"].item())
            np.testing.assert_allclose(ends, interval_of(hits[:, layer, head, direction].tolist(), clusters), **EXACT)


def test_the_counts_of_the_offsets_and_of_some_folds() -> None:
    made = texts(np.random.default_rng(5))
    found = Ratio.of_offsets(head_table(made, RELATIONS), ACCURACY).half(slice(1, None, 2))
    lower, upper = found.interval()
    for name in RELATIONS:
        odd = [text.links[name].distance for text in made if text.fold % 2]
        for offset in OFFSETS:
            hits, clusters = flat([[bool(distance == offset) for distance in distances] for distances in odd])
            place = {"relation": name, "offset": offset}
            assert found.value.sel(place).item() == pytest.approx(sum(hits) / len(hits))
            ends = (lower.sel(place).item(), upper.sel(place).item())
            np.testing.assert_allclose(ends, interval_of(hits, clusters), **EXACT)


def test_heads_that_a_stack_does_not_have_have_no_interval() -> None:
    encoder, decoder = two_stacks(7)
    table = add_intervals(stacked({"encoder": encoder, "decoder": decoder}))
    for name, alone in (("encoder", encoder), ("decoder", decoder)):
        depth = alone.sizes["layer"]
        for end in ("relation_accuracy_lower", "relation_accuracy_upper"):
            assert table[end].dims == table["relation_accuracy"].dims
            of_attention_type = table[end].sel(attention_type=name)
            np.testing.assert_array_equal(of_attention_type[:depth], add_intervals(alone)[end])
            assert of_attention_type[depth:].isnull().all()


def test_the_ends_are_described() -> None:
    table = add_intervals(head_table(texts(np.random.default_rng(11)), RELATIONS))
    for end in ("lower", "upper"):
        values = table[f"relation_accuracy_{end}"]
        assert values.attrs == {
            "long_name": f"{end} end of the 95 % interval", "units": "share of links", "source": "headscope",
        }  # fmt: skip


def test_without_the_sums_there_is_no_uncertainty() -> None:
    table = head_table(texts(np.random.default_rng(13)), RELATIONS).drop_vars("fold_correct")
    with pytest.raises(TableError) as refused:
        add_intervals(table)
    assert str(refused.value) == (
        "the head table has no fold_correct, from which the uncertainty follows; measure again."
    )


# ------------------------------------------------------------- a real model


@cache
def tiny_bert() -> tuple[xr.Dataset, dict[str, witnesses.Relation], dict[str, int]]:
    """What headscope measures of a tiny BERT, what the witness does, and the fold of each document."""
    module, tokenizer = tiny.make("bert")
    documents = tiny.documents(17)
    seen = [witnesses.see(module, tokenizer, document)["encoder"] for document in documents]
    table = measure(Model.from_module(module, tokenizer, name="bert"), documents, ["relations"])
    folds = {document.id: FoldAssignment.for_corpus(summarize(documents)).fold(document) for document in documents}
    return table, witnesses.relations(seen), folds


def test_the_sums_of_a_measurement_give_the_intervals_that_its_hits_give() -> None:
    table, relations, folds = tiny_bert()
    table = add_intervals(table)
    assert len(set(folds.values())) < len(folds)  # some folds hold several documents
    assert set(table["relation"].values) == set(relations)
    wide = 0
    for name, relation in relations.items():
        for layer, head, direction in np.ndindex(relation.hits.shape[1:]):
            row = table.sel(relation=name, layer=layer + 1, head=head + 1, direction=DIRECTIONS[direction])
            ends = (row["relation_accuracy_lower"].item(), row["relation_accuracy_upper"].item())
            hits = relation.hits[:, layer, head, direction].tolist()
            clusters = [str(folds[document]) for document in relation.clusters]
            np.testing.assert_allclose(ends, interval_of(hits, clusters), **EXACT)
            p, error = np.mean(hits), relation.error(layer, head, direction)
            wide += error**2 > p * (1 - p) / len(hits) > 0
    assert wide > 17  # in many places the clusters mattered


def test_a_real_table_has_the_axes_of_the_tables_that_these_tests_make() -> None:
    real, _, _ = tiny_bert()
    made = head_table(texts(np.random.default_rng(17)), RELATIONS)
    for name, values in made.data_vars.items():
        assert real[name].dims == values.dims, name
        assert real[name].dtype == values.dtype, name
    assert real.sizes["fold"] == FOLDS
    assert tuple(real["direction"].values) == DIRECTIONS
