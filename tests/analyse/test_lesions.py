"""The lesion map: numbers against scipy, worlds in which sets of heads are like random ones, and ones with a lesion."""

from collections.abc import Sequence

import numpy as np
import pytest
import scipy.stats
import xarray as xr

from analyse.tables import RELATIONS, head_table, texts
from headscope.analyse import add_report
from headscope.analyse.lesions import (
    MeasuredSets,
    choose_sets,
    compare_with_random,
    find_dissociations,
    tabulate_lesions,
)
from headscope.analyse.metrics import ratio_metric
from headscope.errors import TableError
from headscope.view.figures.draw_lesions import draw_lesions
from headscope.view.lesions_report import list_lesions, list_members

SETS = {"nsubj": [("", 1, 2), ("", 3, 5)], "obj": [("", 2, 1)], "det": [("", 2, 4), ("", 3, 3), ("", 3, 4)]}
PHENOMENA, PAIRS, RANDOM = 7, 11, 13
METRICS = (
    ratio_metric("accuracy", "accuracy", "share of minimal pairs", 1, "right", "pairs"),
    ratio_metric("margin", "margin", "nats", 1, "margin", "pairs"),
)


def measure(margins: np.ndarray) -> MeasuredSets:
    """Sets of heads of 3 layers with 5 heads; margins of the whole model, and behind it ``[set, random set, pair]``."""
    whole, disabled = margins[0], margins[1:]
    number = np.arange(PHENOMENA * PAIRS)
    subsets = {"all": np.ones(len(number), dtype=bool)}
    subsets |= {f"phenomenon p{place}": number % PHENOMENA == place for place in range(PHENOMENA)}

    def quantities(margin: np.ndarray) -> dict[str, np.ndarray]:
        return {"margin": margin, "right": (margin > 0).astype(float), "pairs": np.ones_like(margin)}

    return MeasuredSets(
        metrics=METRICS, whole=quantities(whole), disabled=quantities(disabled), sets=SETS, random=RANDOM,
        norms=np.arange(1.0, len(SETS) * (1 + RANDOM) + 1).reshape(len(SETS), -1),
        clusters=[str(each) for each in number], subsets=subsets, sizes={"layer": 3, "head": 5}, attention_types=[""],
    )  # fmt: skip


def draw_margins(seed: int, lesions: Sequence[tuple[int, int, float]] = ()) -> np.ndarray:
    """Margins in which each set and each random set changes each phenomenon by something, and some sets by more."""
    random = np.random.default_rng(seed)
    pairs = np.arange(PHENOMENA * PAIRS)
    whole = random.normal(2, 2, len(pairs))
    # What a layer bears differs from set to set.
    bears = random.uniform(0.1, 2, len(SETS))[:, None, None]
    change = bears * random.normal(-0.3, 0.5, (len(SETS), 1 + RANDOM, PHENOMENA))
    for row, phenomenon, size in lesions:
        change[row, 0, phenomenon] -= size
    disabled = whole + change[..., pairs % PHENOMENA] + random.normal(0, 0.3, (*change.shape[:2], len(pairs)))
    return np.concatenate([whole[None], disabled.reshape(-1, len(pairs))])


def test_a_change_is_compared_with_random_sets_as_by_scipy() -> None:
    changes = np.random.default_rng(3).normal(-1, 2, (5, 1 + RANDOM))
    compared = compare_with_random(changes, 1, 101)
    for row, (own, *random) in enumerate(changes):
        test = scipy.stats.ttest_ind([own], random, alternative="less")
        assert compared["_p"][row] == pytest.approx(test.pvalue)
        assert compared["_excess"][row] == pytest.approx(own - np.mean(random))
        ends = scipy.stats.ttest_ind([own], random).confidence_interval(0.95)
        assert compared["_excess_lower"][row] == pytest.approx(ends.low)
        assert compared["_excess_upper"][row] == pytest.approx(ends.high)


def test_of_a_loss_a_rise_is_worse() -> None:
    changes = np.array([[5.0, *np.linspace(-1, 1, RANDOM)]])
    assert compare_with_random(changes, -1, 101)["_p"] < 0.001
    assert compare_with_random(changes, 1, 101)["_p"] > 0.999


def test_random_sets_that_all_change_nothing_differ_by_half_an_example() -> None:
    """One pair of eleven is no lesion, though no random set changes any."""
    changes = np.zeros((1, 1 + RANDOM))
    changes[0, 0] = -1 / PAIRS
    p = compare_with_random(changes, 1, PAIRS)["_p"].item()
    assert p == pytest.approx(scipy.stats.t.cdf(-2 / np.sqrt(1 + 1 / RANDOM), RANDOM - 1))
    assert p > 0.03


def test_changes_and_random_sets_are_those_of_loops() -> None:
    margins = draw_margins(5)
    table = tabulate_lesions(measure(margins))
    by_set = margins[1:].reshape(len(SETS), 1 + RANDOM, -1)
    for row, name in enumerate(SETS):
        for place in range(PHENOMENA):
            at = table.sel(set=name, subset=f"phenomenon p{place}")
            here = [pair for pair in range(PHENOMENA * PAIRS) if pair % PHENOMENA == place]
            changes = [np.mean([margins_of[pair] - margins[0][pair] for pair in here]) for margins_of in by_set[row]]
            assert float(at["lesion_margin"]) == pytest.approx(changes[0])
            assert float(at["lesion_margin_random"]) == pytest.approx(np.mean(changes[1:]))
            right = [np.mean([of[pair] > 0 for pair in here]) for of in (margins[0], by_set[row, 0])]
            assert float(at["lesion_accuracy"]) == pytest.approx(right[1] - right[0])
            assert float(at["whole_accuracy"]) == pytest.approx(right[0])
            assert int(at["examples"]) == PAIRS
    assert list_members(table) == {"nsubj": "1-2, 3-5", "obj": "2-1", "det": "2-4, 3-3, 3-4"}
    assert table["set_removed_norm"].values.tolist() == [1, 2 + RANDOM, 3 + 2 * RANDOM]
    p = table["lesion_margin_p"].sel(subset=[f"phenomenon p{place}" for place in range(PHENOMENA)]).values
    q = table["lesion_margin_q"].sel(subset=[f"phenomenon p{place}" for place in range(PHENOMENA)]).values
    np.testing.assert_allclose(q, scipy.stats.false_discovery_control(p.ravel()).reshape(p.shape))


def test_two_sets_are_compared_on_the_same_examples_as_by_scipy() -> None:
    """Each pair is a text of its own here, so that the jackknife of a mean is Student's paired t."""
    margins = draw_margins(7)
    table = tabulate_lesions(measure(margins))
    by_set = margins[1:].reshape(len(SETS), 1 + RANDOM, -1)[:, 0]
    for row, name in enumerate(SETS):
        for column, other in enumerate(SETS):
            at = table.sel(set=name, set_other=other, subset="all")
            if row == column:
                assert float(at["lesion_margin_less"]) == float(at["lesion_margin_less_upper"]) == 0
                continue
            for metric, values in (("margin", by_set), ("accuracy", (by_set > 0).astype(float))):
                test = scipy.stats.ttest_rel(values[row], values[column])
                ends = test.confidence_interval(0.95)
                assert float(at[f"lesion_{metric}_less"]) == pytest.approx((values[row] - values[column]).mean())
                assert float(at[f"lesion_{metric}_less_lower"]) == pytest.approx(ends.low)
                assert float(at[f"lesion_{metric}_less_upper"]) == pytest.approx(ends.high)


@pytest.mark.full
def test_where_sets_are_like_random_ones_few_worlds_have_a_lesion_and_none_a_dissociation() -> None:
    worlds, lesions, dissociations = 200, 0, 0
    for seed in range(worlds):
        table = tabulate_lesions(measure(draw_margins(seed)))
        frame = list_lesions(table).query("metric == 'margin' and subset != 'all'")
        lesions += bool((frame["verdict"] == "suffers").any())
        dissociations += len(find_dissociations(table, "margin")) > 0
    assert lesions <= scipy.stats.binom.ppf(0.999, worlds, 0.05)
    assert dissociations <= scipy.stats.binom.ppf(0.999, worlds, 0.05)


def test_planted_lesions_are_found_and_are_a_double_dissociation() -> None:
    table = tabulate_lesions(measure(draw_margins(11, [(0, 2, 30.0), (2, 4, 30.0)])))
    frame = list_lesions(table).query("metric == 'margin' and subset != 'all'")
    harmed = frame[frame["verdict"] == "suffers"]
    assert [*zip(harmed["set"], harmed["subset"], strict=True)] == [
        ("nsubj", "phenomenon p2"),
        ("det", "phenomenon p4"),
    ]
    (row,) = find_dissociations(table, "margin").to_dict("records")
    assert (row["set"], row["subset"]) == ("nsubj", "phenomenon p2")
    assert (row["set_other"], row["subset_other"]) == ("det", "phenomenon p4")
    assert min(row["harm"], row["harm_other"]) > 20


def test_a_dissociation_is_tested_as_by_scipy() -> None:
    """Each half is Welch's test of what two sets harm beyond their random sets; the larger p-value counts."""
    margins = draw_margins(11, [(0, 2, 30.0), (2, 4, 30.0)])
    (row,) = find_dissociations(tabulate_lesions(measure(margins)), "margin").to_dict("records")
    changes = (margins[1:] - margins[0]).reshape(len(SETS), 1 + RANDOM, -1)
    halves = []
    for harming, sparing, phenomenon in ((0, 2, 2), (2, 0, 4)):
        of_pairs = changes[..., np.arange(PHENOMENA * PAIRS) % PHENOMENA == phenomenon].mean(-1)
        harm = {each: of_pairs[each, 1:].mean() - of_pairs[each, 0] for each in (harming, sparing)}
        # The set is one more like its random sets: its spread counts once, and that of their mean.
        spread = {each: of_pairs[each, 1:].std(ddof=1) * np.sqrt(RANDOM + 1) for each in (harming, sparing)}
        halves.append(
            scipy.stats.ttest_ind_from_stats(
                harm[harming], spread[harming], RANDOM, harm[sparing], spread[sparing], RANDOM, equal_var=False,
                alternative="greater",
            ).pvalue
        )  # fmt: skip
    assert row["p"] == pytest.approx(max(halves))
    pairs_of_sets, pairs_of_phenomena = 3, PHENOMENA * (PHENOMENA - 1)
    assert row["q"] <= row["p"] * pairs_of_sets * pairs_of_phenomena * (1 + 1e-9)


def test_one_lesion_alone_is_no_dissociation() -> None:
    table = tabulate_lesions(measure(draw_margins(11, [(0, 2, 30.0)])))
    assert find_dissociations(table, "margin").empty


def test_a_metric_that_is_not_there_is_refused() -> None:
    with pytest.raises(TableError, match=r"^the table has no metric 'f1'; it has accuracy, margin\.$"):
        find_dissociations(tabulate_lesions(measure(draw_margins(1))), "f1")


def test_the_map_has_a_cell_for_each_set_and_a_row_for_each_phenomenon() -> None:
    table = tabulate_lesions(measure(draw_margins(11, [(0, 2, 30.0)])))
    about = {"model": "made/up", "corpus": "blimp", "documents": 77}
    figures = draw_lesions(table.assign_attrs(about))
    assert [*figures] == ["lesions-phenomenon-accuracy", "lesions-phenomenon-margin"]
    axes = figures["lesions-phenomenon-margin"].axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == [*SETS]
    assert len(axes.get_yticklabels()) == PHENOMENA
    ((across, down),) = [line.get_xydata()[0] for line in axes.lines]
    assert (across, down) == (0, 2)


# ------------------------------------------------------------- the heads of a set


@pytest.fixture(scope="module")
def report() -> xr.Dataset:
    return add_report(head_table(texts(np.random.default_rng(83)), RELATIONS))


def test_the_heads_of_a_row_are_the_best_in_the_direction_of_its_reported_head(report: xr.Dataset) -> None:
    sets = choose_sets(report, 3, rows=["obj", "nsubj"])
    assert [*sets] == ["obj", "nsubj"]
    for name, heads in sets.items():
        row = report.sel(relation=name)
        values = row["relation_accuracy"].sel(direction=str(row["reported_direction"].item()))
        best = sorted(((float(value), cell) for cell, value in np.ndenumerate(values.values)), key=lambda x: -x[0])[:3]
        assert {*heads} == {f"{layer + 1}-{head + 1}" for _, (layer, head) in best}


def test_by_default_the_most_frequent_rows_with_a_reported_head_are_taken(report: xr.Dataset) -> None:
    sets = choose_sets(report, 1, most=2)
    reported = [name for name in RELATIONS if report["reported_layer"].sel(relation=name) > 0]
    frequent = sorted(reported, key=lambda name: -int(report["relation_count"].sel(relation=name)))
    assert next(iter(sets)) == frequent[0]
    assert len(sets) == 2


@pytest.mark.parametrize(
    ("size", "rows", "sentence"),
    [
        (15, [], "sets of 15 heads cannot be compared with others: the model has 15; give fewer."),
        (2, ["objects"], "the table has no row 'objects' with a reported head; it has nsubj, obj, case."),
    ],
)
def test_sets_that_cannot_be_are_refused(report: xr.Dataset, size: int, rows: list[str], sentence: str) -> None:
    with pytest.raises(TableError) as refused:
        choose_sets(report, size, rows=rows)
    assert str(refused.value).startswith(sentence)
