"""Intervals of accuracies and of lifts: against statsmodels and scipy, and how often they cover the truth."""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
import statsmodels.api
import xarray as xr
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from statsmodels.stats.power import TTestPower
from statsmodels.stats.proportion import proportion_confint

import tiny
import witnesses
from analyse.tables import (
    DIRECTIONS,
    FOLDS,
    OFFSETS,
    RELATIONS,
    head_table,
    interval_of,
    posterior,
    stacked,
    texts,
    two_stacks,
    wilson,
)
from headscope.analyse import add_intervals
from headscope.analyse.proportion import credible_interval
from headscope.analyse.uncertainty import Lift, Ratio
from headscope.capture.model.model import Model
from headscope.corpora import summarize
from headscope.errors import TableError
from headscope.reducers.relations import ACCURACY
from headscope.reducers.support.folds import FoldAssignment
from headscope.runner.local import measure

EXACT = {"rtol": 1e-9, "atol": 1e-12}

ON_GRID = {"rtol": 0, "atol": 3e-3}
"""Of the ends of intervals whose proportions are weighed on a grid; the witness has one ten times as fine."""

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
def test_the_interval_is_the_hull_of_wilsons_by_statsmodels_and_of_the_posterior_by_scipy(
    documents, level: float
) -> None:
    np.testing.assert_allclose(interval(documents, level), interval_of(*flat(documents), level), **ON_GRID)


@pytest.mark.parametrize("seed", range(5))
def test_strong_clusters_widen_the_interval(seed: int) -> None:
    draw = np.random.default_rng(seed)
    documents = [list(draw.random(7) < draw.beta(0.5, 0.5)) for _ in range(53)]
    hits, clusters = flat(documents)
    naive = proportion_confint(sum(hits), len(hits), method="wilson")
    ours = interval(documents)
    np.testing.assert_allclose(ours, interval_of(hits, clusters), **ON_GRID)
    assert ours[1] - ours[0] > 1.5 * (naive[1] - naive[0])


@pytest.mark.parametrize("always", [False, True])
def test_a_head_that_is_always_right_or_always_wrong_has_an_interval(always: bool) -> None:
    lower, upper = interval([[always] * 3] * 11)
    # Closed form: Wilson's interval of no success in n is [0, t² / (n + t²)], t the quantile for 10 degrees of freedom.
    certain, doubtful = (1 - lower, 1 - upper) if always else (upper, lower)
    assert doubtful == 0
    assert certain >= 2.228139**2 / (33 + 2.228139**2) - 1e-6
    np.testing.assert_allclose((lower, upper), interval_of([always] * 33, [str(k // 3) for k in range(33)]), **ON_GRID)


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
    lower, upper = interval(documents)
    assert lower <= wilson(0.5, 52, 13)[0] + 1e-9
    np.testing.assert_allclose((lower, upper), interval_of(*flat(documents)), **ON_GRID)


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("most", [7, 300, 4001])
def test_the_posterior_is_that_of_scipy_whatever_the_size_of_the_folds(most: int, level: float) -> None:
    """Counts of more than 16 are interpolated; shares of items lie between the counts."""
    draw = np.random.default_rng(most)
    items = draw.integers(1, most + 1, (19, 31))
    right = draw.binomial(items, draw.beta(9 * (place := draw.random((19, 1))) + 0.1, 9 - 9 * place + 0.1, items.shape))
    ours = credible_interval(right.astype(float), items.astype(float), level)
    expected = [posterior(*each, level) for each in zip(right, items, strict=True)]
    np.testing.assert_allclose(np.transpose(ours), expected, rtol=0, atol=4e-3)
    some = credible_interval(right[3:4].astype(float), items[3:4].astype(float), level)
    np.testing.assert_allclose(np.ravel(some), np.transpose(ours)[3], rtol=0, atol=1e-9)  # whatever the other cells


def test_the_ends_go_up_with_every_share_of_an_item() -> None:
    items = np.full((41, 11), 5.0)
    right = np.arange(41)[:, None] / 40 * items
    lower, upper = credible_interval(right, items, 0.95)
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper) >= 0).all()
    assert (lower[0], upper[-1]) == (0, 1)


# ------------------------------------------------------- the lift over a rival


def lift(head: np.ndarray, rival: np.ndarray) -> Lift:
    """Of the sums of one head and one rival, each ``[numerator or denominator, fold]``."""
    return Lift(*(Ratio(*(xr.DataArray(part, dims="fold") for part in parts)) for parts in (head, rival)))


def hits_of_both(draw: np.random.Generator, sizes: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The links of each document that a head finds, and those that its rival finds, which depend on each other."""
    made = []
    for size in sizes:
        easy = draw.random(size) < draw.beta(2, 2)
        made.append((easy | (draw.random(size) < 0.2), easy & (draw.random(size) < 0.7)))
    return made


def lift_of_hits(documents: list[tuple[np.ndarray, np.ndarray]]) -> Lift:
    sums = [[[hits[which].sum(), len(hits[which])] for hits in documents] for which in (0, 1)]
    return lift(*(np.array(one).T for one in sums))


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("seed", range(5))
def test_the_lift_in_folds_of_one_size_is_that_of_scipys_paired_t_test(seed: int, level: float) -> None:
    documents = hits_of_both(np.random.default_rng(seed), [7] * 23)
    found, differences = lift_of_hits(documents), [head.mean() - rival.mean() for head, rival in documents]
    expected = scipy.stats.ttest_1samp(differences, 0).confidence_interval(level)
    np.testing.assert_allclose([end.item() for end in found.interval(level)], expected, **EXACT)
    assert found.value.item() == pytest.approx(np.mean(differences))
    assert found.clusters.item() == 23
    p = scipy.stats.ttest_1samp(differences, 0, alternative="greater").pvalue
    assert found.p_value().item() == pytest.approx(p, rel=1e-9)


@settings(deadline=None)
@given(sizes=st.lists(st.integers(0, 7), min_size=2, max_size=31), seed=st.integers(0, 2**32 - 1))
def test_the_lift_in_folds_of_any_size_is_that_of_statsmodels_clustered(sizes: list[int], seed: int) -> None:
    assume(sum(size > 0 for size in sizes) > 1)
    documents = hits_of_both(np.random.default_rng(seed), sizes)
    differences = np.concatenate([np.subtract(head, rival, dtype=float) for head, rival in documents])
    groups = np.repeat(np.arange(len(sizes)), sizes)
    fit = statsmodels.api.OLS(differences, np.ones(len(differences))).fit(
        cov_type="cluster", cov_kwds={"groups": groups}, use_t=True
    )
    found = lift_of_hits(documents)
    half = fit.bse[0] * scipy.stats.t.ppf(0.975, witnesses.effective_clusters(groups.tolist()) - 1)
    expected = np.clip([fit.params[0] - half, fit.params[0] + half], -1, 1)
    np.testing.assert_allclose([end.item() for end in found.interval()], expected, rtol=1e-9, atol=1e-9)
    assert found.error.item() == pytest.approx(fit.bse[0], abs=1e-9)
    assert found.clusters.item() == len(set(groups.tolist()))


def f1_sums(draw: np.random.Generator, folds: int) -> tuple[np.ndarray, np.ndarray]:
    """Twice the hits, and the words said and gold, of a head and of a rival: their denominators differ."""
    gold = draw.integers(1, 41, folds)
    sums = []
    for share in (0.6, 0.4):
        said = draw.integers(1, 37, folds)
        hits = draw.binomial(np.minimum(gold, said), draw.beta(5 * share, 5 * (1 - share), folds))
        sums.append(np.array([2 * hits, said + gold]))
    return sums[0], sums[1]


def difference_of_ratios(totals: np.ndarray) -> float:
    hits, words, rival_hits, rival_words = totals
    return hits / words - rival_hits / rival_words


@pytest.mark.parametrize("seed", range(5))
def test_the_lift_of_an_f1_has_the_error_of_the_delta_method_and_of_the_jackknife(seed: int) -> None:
    m = 61
    head, rival = f1_sums(np.random.default_rng(seed), m)
    found, sums = lift(head, rival), np.concatenate([head, rival]).astype(float)
    assert found.value.item() == pytest.approx(difference_of_ratios(sums.sum(1)))
    slope = scipy.optimize.approx_fprime(sums.sum(1), difference_of_ratios, 1e-4)
    assert found.error.item() == pytest.approx(np.sqrt(m * slope @ np.cov(sums) @ slope), rel=1e-5)
    without = [difference_of_ratios(np.delete(sums, fold, axis=1).sum(1)) for fold in range(m)]
    jackknife = np.sqrt((m - 1) / m * np.sum((without - np.mean(without)) ** 2))
    assert found.error.item() == pytest.approx(jackknife, rel=0.05)


def test_what_both_get_right_does_not_count_against_a_lift() -> None:
    documents = hits_of_both(np.random.default_rng(3), [7] * 53)
    paired = lift_of_hits(documents)
    shuffled = [(head, documents[(place * 5 + 1) % 53][1]) for place, (head, _) in enumerate(documents)]
    assert paired.error.item() < 0.8 * lift_of_hits(shuffled).error.item()


@pytest.mark.parametrize("seed", range(5))
def test_a_lift_that_could_be_detected_statsmodels_finds_four_times_in_five(seed: int) -> None:
    found = lift_of_hits(hits_of_both(np.random.default_rng(seed), [7] * 53))
    effect = found.detectable().item() / (found.error.item() * np.sqrt(53))
    # Ours adds two quantiles of Student's t; statsmodels' distribution is the noncentral one.
    assert TTestPower().power(effect, nobs=53, alpha=0.05) == pytest.approx(0.8, abs=0.005)


@pytest.mark.parametrize("sizes", [[7], [7, 0, 0], [0, 0]])
def test_one_document_or_none_says_nothing_about_a_lift(sizes: list[int]) -> None:
    found = lift_of_hits([(np.ones(size), np.zeros(size)) for size in sizes])
    assert math.isnan(found.value.item()) == (sum(sizes) == 0)
    for value in (found.error, *found.interval(), found.detectable(), found.p_value()):
        assert math.isnan(value.item())


def test_a_lift_over_a_rival_that_is_right_where_the_head_is_is_nothing_for_sure() -> None:
    same = np.array([[2, 3, 5], [7, 11, 13]])
    found = lift(same, same)
    assert [value.item() for value in (found.value, *found.interval(), found.detectable())] == [0, 0, 0, 0]
    assert found.p_value().item() == 1
    assert lift(np.array([[2, 3], [7, 7]]), np.array([[1, 2], [7, 7]])).p_value().item() == 0  # 1/7 more in each fold


@pytest.mark.parametrize("gain", [0.0, 0.2])
def test_the_interval_of_a_lift_covers_the_truth_as_often_as_it_says(gain: float) -> None:
    replicates, documents, correlation = 2_000, 29, 0.3
    draw = np.random.default_rng(round(100 * gain) + 7)
    links = draw.integers(1, 12, (replicates, documents))
    spread = 1 / correlation - 1
    # Of each document some links are easy for both, and of the others the head finds more.
    easy = draw.binomial(links, draw.beta(0.4 * spread, 0.6 * spread, links.shape))
    rival = easy + draw.binomial(links - easy, 0.25)
    head = easy + draw.binomial(links - easy, 0.25 + gain)
    parts = [
        Ratio(*(xr.DataArray(part, dims=("replicate", "fold")) for part in (hits, links))) for hits in (head, rival)
    ]
    lower, upper = Lift(*parts).interval()
    truth = 0.6 * gain
    assert 0.93 <= ((lower <= truth) & (truth <= upper)).mean().item() <= 0.97


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
            expected = interval_of(hits[:, layer, head, direction].tolist(), clusters)
            np.testing.assert_allclose(ends, expected, **ON_GRID)


def test_the_counts_of_the_offsets_and_of_some_folds() -> None:
    made = texts(np.random.default_rng(5))
    (rival,) = [rival for rival in ACCURACY.rivals if rival.name == "offset"]
    found = Ratio.of_rival(head_table(made, RELATIONS), rival).half(slice(1, None, 2))
    lower, upper = found.interval()
    for name in RELATIONS:
        odd = [text.links[name].distance for text in made if text.fold % 2]
        for offset in OFFSETS:
            hits, clusters = flat([[bool(distance == offset) for distance in distances] for distances in odd])
            place = {"relation": name, "offset": offset}
            assert found.value.sel(place).item() == pytest.approx(sum(hits) / len(hits))
            ends = (lower.sel(place).item(), upper.sel(place).item())
            np.testing.assert_allclose(ends, interval_of(hits, clusters), **ON_GRID)


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
            np.testing.assert_allclose(ends, interval_of(hits, clusters), **ON_GRID)
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
