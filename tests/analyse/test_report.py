"""The head to report for each relation, and what choosing it costs: naive loops, ties, rare relations, simulation."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.stats
import xarray as xr

import witnesses
from analyse.tables import (
    ATTRIBUTES,
    CLASSES,
    DIRECTIONS,
    FOLDS,
    OFFSETS,
    RELATIONS,
    SIDES,
    Links,
    Text,
    head_table,
    interval_of,
    lift_of,
    stacked,
    texts,
    two_stacks,
    with_other_hits,
)
from headscope.analyse import add_report
from headscope.analyse.uncertainty import Ratio
from headscope.errors import TableError
from headscope.heads import check
from headscope.reducers.map_patterns import SHARE
from headscope.reducers.relations import ACCURACY
from headscope.reducers.support.pattern_network import PATTERNS
from headscope.reducers.support.ratios import score_table
from headscope.score import write_scores

EXACT = {"rtol": 1e-9, "atol": 1e-12}
LAYERS, HEADS, REPLICATES, CHANCE = 11, 13, 97, 0.2


def chance(seed: int, planted: float = CHANCE) -> tuple[xr.Dataset, np.ndarray]:
    """97 relations of 100 links in each half of 20 documents, and which of 286 heads find them, all but one by chance.

    The head 7-5 finds them from head to dependent with the probability ``planted``.
    """
    draw = np.random.default_rng(seed)
    share = np.full((LAYERS, HEADS, len(DIRECTIONS)), CHANCE)
    share[6, 4, 1] = planted
    hits = draw.random((REPLICATES, 20, 10, *share.shape)) < share
    names = [f"relation {number}" for number in range(REPLICATES)]
    made = [
        Text(document % FOLDS, {name: Links(hits[row, document], [17] * 10) for row, name in enumerate(names)})
        for document in range(20)
    ]
    return head_table(made, names), hits


def assert_on_average(values: xr.DataArray, share: float) -> None:
    """Within four standard errors of a mean over relations of 100 links each."""
    assert values.shape == (REPLICATES,)
    assert values.mean().item() == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 100 / REPLICATES))


def test_where_all_heads_are_at_chance_the_reported_one_is_too_though_the_best_looks_better() -> None:
    table, hits = chance(19)
    best = hits[:, ::2].mean((1, 2)).reshape(REPLICATES, -1).max(-1)  # documents of even number are in even folds
    assert best.mean() > 0.28
    report = add_report(table, chance(23)[0])
    assert_on_average(report["heldout_accuracy"], CHANCE)
    assert_on_average(report["untrained_accuracy"], CHANCE)
    assert report["reported_again"].mean() < 0.05
    assert (report["heldout_count"] == 100).all()


def test_a_head_that_was_planted_is_found_and_scored_as_it_was_planted() -> None:
    report = add_report(chance(29, planted=0.6)[0], chance(31)[0])
    assert (report["reported_layer"] == 7).all()
    assert (report["reported_head"] == 5).all()
    assert (report["reported_direction"] == "head_to_dependent").all()
    assert (report["reported_again"] == 1).all()
    assert_on_average(report["heldout_accuracy"], 0.6)
    assert_on_average(report["untrained_accuracy"], CHANCE)


@dataclass(frozen=True)
class Half:
    """The links of a relation on one half of the documents.

    Attributes:
        hits, near, rules: the heads, the offsets and the rules by part of speech that find them.
        clusters: whose document each link is.
    """

    hits: np.ndarray
    near: np.ndarray
    rules: np.ndarray
    clusters: list[str]


def rate(texts: list[Text], name: str, half: int) -> Half:
    links = [(text.links[name], place) for place, text in enumerate(texts) if text.fold % 2 == half]
    hits, rules = (np.concatenate([getattr(one, what) for one, _ in links]) for what in ("hits", "rules"))
    near = np.array([[distance == offset for offset in OFFSETS] for one, _ in links for distance in one.distance])
    return Half(hits, near, rules, [str(place) for one, place in links for _ in one.hits])


def first_best(hits: np.ndarray) -> tuple[int, ...]:
    """Where most of the links are found; the first of equals."""
    best, most = (), -1
    for place in np.ndindex(hits.shape[1:]):
        found = sum(bool(hit) for hit in hits[(slice(None), *place)])
        if found > most:
            best, most = place, found
    return best


@pytest.mark.parametrize("seed", [37, 41, 43, 47, 53])
def test_the_report_is_what_naive_loops_choose_and_score(seed: int) -> None:
    draw = np.random.default_rng(seed)
    made = texts(draw)
    other = with_other_hits(made, draw)
    report = add_report(head_table(made, RELATIONS), head_table(other, RELATIONS), minimum=1)
    strongest, largest_p = set(), {}
    for name in RELATIONS:
        row = report.sel(relation=name)
        even, odd = (rate(made, name, half) for half in (0, 1))
        layer, head, direction = best = first_best(even.hits)
        place = (row["reported_layer"], row["reported_head"], row["reported_direction"])
        assert place == (layer + 1, head + 1, DIRECTIONS[direction])
        assert row["reported_again"] == (first_best(odd.hits) == best)
        assert row["heldout_count"] == len(odd.hits)
        assert row["heldout_clusters"] == len(set(odd.clusters))
        hits = odd.hits[(slice(None), *best)]
        assert_scored(row, "heldout", hits, odd.clusters)
        (offset,) = first_best(even.near)
        assert row["heldout_offset"] == OFFSETS[offset]
        # The rule starts at the same end of a link as the head that is reported.
        side, word_class = first_best(even.rules[:, direction])
        assert (row["heldout_upos_side"], row["heldout_upos_word_class"]) == (SIDES[side], CLASSES[word_class])
        untrained = first_best(rate(other, name, 0).hits)
        rivals = {
            "offset": (even.near[:, offset], odd.near[:, offset]),
            "upos": tuple(half.rules[:, direction, side, word_class] for half in (even, odd)),
            "untrained": tuple(rate(other, name, half).hits[(slice(None), *untrained)] for half in (0, 1)),
        }
        for rival, (_, later) in rivals.items():
            assert_scored(row, rival if rival == "untrained" else f"heldout_{rival}", later, odd.clusters)
            assert_lift(row, f"lift_over_{rival}", hits, later, odd.clusters)
        tests = [p_of(np.subtract(hits, later, dtype=float), odd.clusters) for _, later in rivals.values()]
        largest_p[name] = max(tests)
        rival = max(rivals, key=lambda rival: sum(rivals[rival][0]))  # the first of equals
        strongest.add(rival)
        assert row["lift_rival"] == rival
        assert_lift(row, "lift", hits, rivals[rival][1], odd.clusters)
        error = witnesses.clustered_error(np.subtract(hits, rivals[rival][1], dtype=float), odd.clusters)
        quantiles = sum(scipy.stats.t.ppf(q, witnesses.effective_clusters(odd.clusters) - 1) for q in (0.975, 0.8))
        assert row["lift_detectable"].item() == pytest.approx(quantiles * error)
    assert strongest > {"offset"}
    np.testing.assert_allclose(report["lift_p"], list(largest_p.values()), **EXACT)
    assert report["verdict_p"].isnull().all()  # too few texts to decide


def assert_scored(row: xr.Dataset, name: str, hits: np.ndarray, clusters: list[str]) -> None:
    assert row[f"{name}_accuracy"].item() == pytest.approx(np.mean(hits))
    ends = (row[f"{name}_lower"].item(), row[f"{name}_upper"].item())
    np.testing.assert_allclose(ends, interval_of(hits.tolist(), clusters), rtol=0, atol=3e-3)


def assert_lift(row: xr.Dataset, name: str, hits: np.ndarray, rival: np.ndarray, clusters: list[str]) -> None:
    expected = lift_of(np.subtract(hits, rival, dtype=float), clusters)
    values = [row[f"{name}{end}"].item() for end in ("", "_lower", "_upper")]
    np.testing.assert_allclose(values, expected, **EXACT)


def p_of(differences: np.ndarray, clusters: list[str]) -> float:
    """One-sided, of a mean difference of 0 or less."""
    error, freedom = witnesses.clustered_error(differences, clusters), witnesses.effective_clusters(clusters) - 1
    return float(scipy.stats.t.sf(differences.mean() / error, freedom))


def even_and_odd(even: np.ndarray, odd: np.ndarray) -> xr.Dataset:
    """One relation whose links in each half are found by the heads where these are 1, and by every rule."""
    halves = [
        Text(n, {"obj": Links(hits, [1] * len(hits), np.ones((len(hits), len(DIRECTIONS), len(SIDES), len(CLASSES))))})
        for n, hits in enumerate((even, odd))
    ]
    return head_table(halves, ["obj"])


def test_of_equals_the_first_head_is_reported() -> None:
    hits = np.zeros((3, 2, 5, 2), dtype=bool)
    hits[:, 1, 3:, 1] = hits[:, 1, 4, 0] = True
    row = add_report(even_and_odd(hits, hits), minimum=3).squeeze()
    assert (row["reported_layer"], row["reported_head"], row["reported_direction"]) == (2, 4, "head_to_dependent")


def test_whether_the_other_half_would_choose_the_same() -> None:
    even, odd = np.zeros((2, 3, 2, 5, 2), dtype=bool)
    even[:, 1, 3, 1] = odd[:, 1, 3, 1] = True
    assert add_report(even_and_odd(even, odd), minimum=3)["reported_again"].item() == 1
    odd[0, 1, 3, 1], odd[:, 1, 3, 0] = False, True
    assert add_report(even_and_odd(even, odd), minimum=3)["reported_again"].item() == 0


@pytest.mark.parametrize(("even", "odd"), [(4, 5), (5, 4), (0, 9)])
def test_a_relation_too_rare_in_either_half_is_not_reported(even: int, odd: int) -> None:
    found = [np.ones((count, 3, 5, 2), dtype=bool) for count in (even, odd)]
    table = even_and_odd(*found)
    row = add_report(table, table, minimum=5).squeeze()
    assert row["reported_direction"] == ""
    for name in ("reported_layer", "reported_head", "heldout_offset"):
        assert math.isnan(row[name].item())
    assert (row["reported_again"], row["heldout_count"]) == (0, 0)
    assert (row["heldout_clusters"], row["lift_rival"], row["reported_verdict"]) == (0, "", "")
    assert (row["heldout_upos_side"], row["heldout_upos_word_class"]) == ("", "")
    for name in ("heldout", "heldout_offset", "heldout_upos", "untrained"):
        for what in ("accuracy", "lower", "upper"):
            assert math.isnan(row[f"{name}_{what}"].item())
    for name in ("lift", "lift_over_offset", "lift_over_upos", "lift_over_untrained"):
        for end in ("", "_lower", "_upper"):
            assert math.isnan(row[f"{name}{end}"].item())
    assert math.isnan(row["lift_detectable"].item())


def test_twenty_links_in_each_half_are_enough_unless_told_otherwise() -> None:
    links = [np.ones((count, 3, 5, 2), dtype=bool) for count in (19, 20)]
    assert add_report(even_and_odd(links[1], links[1]))["reported_layer"].item() == 1
    assert add_report(even_and_odd(links[0], links[1]))["reported_layer"].isnull()


def test_without_a_untrained_nothing_is_said_of_one_and_the_table_is_kept() -> None:
    table = head_table(texts(np.random.default_rng(59)), RELATIONS)
    before = table.copy(deep=True)
    report = add_report(table, minimum=1)
    assert not [name for name in report.data_vars if "untrained" in str(name)]
    xr.testing.assert_identical(table, before)
    split = report.attrs["split"]
    assert split.startswith("The documents are assigned to 64 folds by a hash of the text that they come from.")
    assert split.endswith("lies in one fold, so the intervals allow for texts that differ.")
    numbers = report[list(table.data_vars)].reset_coords(drop=True)
    xr.testing.assert_identical(numbers, table.assign_attrs(split=split))
    assert check(report) is report


@pytest.mark.parametrize(("unit", "beginning", "end"), [
    (
        "document", "their names, since the corpus does not say which text they come from.",
        "documents are taken as independent, and where those of one text resemble each other the intervals are too "
        "narrow.",
    ),
    (
        "document of few texts", "their names, since they come from few texts.",
        "documents of one text resemble each other, so the intervals are too narrow, and no head is said to stand out.",
    ),
])  # fmt: skip
def test_the_table_says_how_the_documents_were_assigned(unit: str, beginning: str, end: str) -> None:
    table = head_table(texts(np.random.default_rng(61)), RELATIONS)
    table["fold_link"].attrs["fold_unit"] = unit
    assert add_report(table, minimum=1).attrs["split"] == (
        f"The documents are assigned to 64 folds by a hash of {beginning} The head (and its direction), the options of "
        "its rivals and the untrained model's head are chosen on the even folds and scored on the odd ones. The folds "
        f"are the clusters of the intervals: {end}"
    )


def test_a_untrained_whose_relations_stand_in_another_order() -> None:
    draw = np.random.default_rng(61)
    table, untrained = (head_table(texts(draw), RELATIONS) for _ in range(2))
    report = add_report(table, untrained, minimum=1)
    assert len(set(report["untrained_accuracy"].values)) > 2
    xr.testing.assert_identical(add_report(table, untrained.isel(relation=slice(None, None, -1)), minimum=1), report)


@pytest.mark.parametrize("seed", [67, 71, 73])
def test_of_several_stacks_only_heads_that_exist_are_reported(seed: int) -> None:
    encoder, decoder = two_stacks(seed)
    attention_types = {"encoder": encoder, "decoder": decoder}
    report = add_report(stacked(attention_types), stacked(attention_types), minimum=1)
    alone = {name: add_report(table, minimum=1) for name, table in attention_types.items()}
    for name in RELATIONS:
        row = report.sel(relation=name)
        best = {
            attention_type: Ratio.of_heads(table, ACCURACY)
            .half(slice(0, None, 2))
            .value.sel(relation=name)
            .max()
            .item()
            for attention_type, table in attention_types.items()
        }
        chosen = max(best, key=lambda attention_type: best[attention_type])  # the first of equals
        assert row["reported_attention_type"] == chosen
        for value in ("reported_layer", "reported_head", "reported_direction", "heldout_accuracy", "heldout_upper"):
            assert row[value].item() == alone[chosen][value].sel(relation=name).item()
        assert row["untrained_accuracy"].item() == row["heldout_accuracy"].item()


def test_a_rare_relation_has_no_stack() -> None:
    report = add_report(stacked(dict(zip(("encoder", "decoder"), two_stacks(79), strict=True))), minimum=1000)
    assert report["reported_attention_type"].values.tolist() == [""] * len(RELATIONS)


def test_without_relations_there_is_nothing_to_report() -> None:
    with pytest.raises(TableError) as refused:
        add_report(head_table(texts(np.random.default_rng(83)), RELATIONS).drop_vars("fold_link"))
    assert str(refused.value) == ("the head table has no fold_link, from which the uncertainty follows; measure again.")


def test_rows_of_the_same_items_say_each_on_how_many_their_head_is_scored() -> None:
    draw = np.random.default_rng(61)
    maps = draw.integers(17, 29, FOLDS)
    shown = draw.binomial(maps, 0.3, (LAYERS, HEADS, len(PATTERNS), FOLDS))
    by_fold = {"fold_pattern": shown, "fold_maps": maps}
    table = score_table(SHARE, by_fold, {"pattern": list(PATTERNS)}, source="planted")
    table = table.assign_coords(layer=np.arange(1, LAYERS + 1), head=np.arange(1, HEADS + 1))
    report = add_report(table.assign_attrs(ATTRIBUTES | {"scores": write_scores([SHARE])}))
    assert report["pattern_heldout_count"].dims == ("pattern",)
    assert (report["pattern_heldout_count"] == maps[1::2].sum()).all()
    assert (report["pattern_heldout_clusters"] == FOLDS // 2).all()
