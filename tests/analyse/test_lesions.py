"""The lesion map: numbers against scipy, and planted lesions."""

import math
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import xarray as xr
from rich.console import Console

from analyse.tables import RELATIONS, head_table, texts
from headscope.analyse import add_report
from headscope.analyse.lesions import (
    MeasuredSets,
    choose_sets,
    compare_with_random,
    find_dissociations,
    list_parts,
    measure_harm,
    tabulate_lesions,
)
from headscope.analyse.metrics import ratio_metric
from headscope.analyse.rank_test import draw_until_decided
from headscope.errors import TableError
from headscope.view.figures.draw_lesions import draw_lesions
from headscope.view.lesions_report import list_lesions, list_members, print_lesions

SETS = {"nsubj": [("", 1, 2), ("", 3, 5)], "obj": [("", 2, 1)], "det": [("", 2, 4), ("", 3, 3), ("", 3, 4)]}
PHENOMENA, PAIRS, RANDOM = 7, 11, 60
METRICS = (
    ratio_metric("accuracy", "accuracy", "share of minimal pairs", 1, "right", "pairs"),
    ratio_metric("margin", "margin", "nats", 1, "margin", "pairs"),
)


def measure(margins: np.ndarray, few: int = 1000) -> MeasuredSets:
    """Sets of heads of 3 layers with 5 heads; margins of the whole model, and behind it ``[set, random set, pair]``."""
    whole, disabled = margins[0], margins[1:]
    number = np.arange(PHENOMENA * PAIRS)
    subsets = {"all": np.ones(len(number), dtype=bool)}
    subsets |= {f"phenomenon p{place}": number % PHENOMENA == place for place in range(PHENOMENA)}

    def quantities(margin: np.ndarray) -> dict[str, np.ndarray]:
        return {"margin": margin, "right": (margin > 0).astype(float), "pairs": np.ones_like(margin)}

    every, others = quantities(disabled), [1000, 1000, few]
    harm = measure_harm(METRICS, quantities(whole), every, subsets).reshape(len(SETS), 1 + RANDOM, -1)
    p = draw_until_decided(
        lambda going, _, until: {row: harm[row, : until + 1] for row in going}, list_parts(METRICS, subsets), others, 10
    )
    return MeasuredSets(
        metrics=METRICS, whole=quantities(whole), disabled=every, sets=SETS, p=p, others=others,
        of_set=np.repeat(np.arange(len(SETS)), len(disabled) // len(SETS)),
        norms=np.arange(1.0, len(disabled) + 1),
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
    compared = compare_with_random(changes, 101)
    for row, (own, *random) in enumerate(changes):
        test = scipy.stats.ttest_ind([own], random)
        assert compared["_excess"][row] == pytest.approx(own - np.mean(random))
        ends = test.confidence_interval(0.95)
        assert compared["_excess_lower"][row] == pytest.approx(ends.low)
        assert compared["_excess_upper"][row] == pytest.approx(ends.high)


def test_random_sets_that_all_change_nothing_differ_by_half_an_example() -> None:
    changes = np.zeros((1, 1 + RANDOM))
    changes[0, 0] = -1 / PAIRS
    compared = compare_with_random(changes, PAIRS)
    half = scipy.stats.t.ppf(0.975, RANDOM - 1) * 0.5 / PAIRS * np.sqrt(1 + 1 / RANDOM)
    assert compared["_excess_upper"].item() == pytest.approx(-1 / PAIRS + half)


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


def test_p_values_are_those_of_ranks_by_loops() -> None:
    """Each run beside all others by scipy's t, times the number of subsets of the level; then the ranks."""
    margins = draw_margins(13, [(0, 2, 5.0)])
    table = tabulate_lesions(measure(margins))
    number, own = np.arange(PHENOMENA * PAIRS) % PHENOMENA, margins[1 : 2 + RANDOM]
    subsets = [number >= 0, *(number == place for place in range(PHENOMENA))]
    surprises = np.empty((1 + RANDOM, len(METRICS), len(subsets)))
    for row, values in enumerate((own > 0, own)):
        for column, subset in enumerate(subsets):
            means = values[:, subset].mean(1)
            for run in range(1 + RANDOM):
                others = np.delete(means, run)
                spread = max(others.std(ddof=1), 0.5 / subset.sum()) * np.sqrt(1 + 1 / RANDOM)
                p = scipy.stats.t.cdf((means[run] - others.mean()) / spread, RANDOM - 1)
                surprises[run, row, column] = p * (PHENOMENA if column else 1)
    for row, metric in enumerate(("accuracy", "margin")):
        expected = [(1 + (surprises[1:].min((1, 2)) <= each).sum()) / (1 + RANDOM) for each in surprises[0, row]]
        p = table[f"lesion_{metric}_p"].sel(set="nsubj").values
        np.testing.assert_allclose(p, np.minimum(1, len(SETS) * np.array(expected)))


def list_harmed(table: xr.Dataset) -> list[tuple[str, str]]:
    frame = list_lesions(table).query("metric == 'margin' and subset != 'all' and verdict == 'suffers'")
    return [*zip(frame["set"], frame["subset"], strict=True)]


def test_planted_lesions_are_seen_and_are_a_double_dissociation() -> None:
    """The changes are those of the same pairs, by scipy's paired t."""
    margins = draw_margins(11, [(0, 2, 30.0), (2, 4, 30.0)])
    table = tabulate_lesions(measure(margins))
    assert list_harmed(table) == [("nsubj", "phenomenon p2"), ("det", "phenomenon p4")]
    (row,) = find_dissociations(table, "margin").to_dict("records")
    assert (row["set"], row["subset"]) == ("nsubj", "phenomenon p2")
    assert (row["set_other"], row["subset_other"]) == ("det", "phenomenon p4")
    first, _, other = margins[1 :: 1 + RANDOM]
    for harming, sparing, phenomenon, harm in ((first, other, 2, "harm"), (other, first, 4, "harm_other")):
        at = np.arange(PHENOMENA * PAIRS) % PHENOMENA == phenomenon
        test = scipy.stats.ttest_rel(sparing[at], harming[at])
        assert row[harm] == pytest.approx((sparing - harming)[at].mean())
        assert test.confidence_interval(0.95).low > 0


def test_two_sets_that_harm_two_phenomena_alike_are_no_dissociation() -> None:
    table = tabulate_lesions(measure(draw_margins(11, [(row, each, 30.0) for row in (0, 2) for each in (2, 4)])))
    assert len(list_harmed(table)) == 4
    assert find_dissociations(table, "margin").empty


def test_one_lesion_alone_is_no_dissociation() -> None:
    table = tabulate_lesions(measure(draw_margins(11, [(0, 2, 30.0)])))
    assert list_harmed(table) == [("nsubj", "phenomenon p2")]
    assert find_dissociations(table, "margin").empty


def test_nothing_is_decided_where_fewer_other_sets_are_possible_than_are_needed() -> None:
    """Three sets need 60."""
    margins = draw_margins(11, [(0, 2, 30.0), (2, 4, 30.0)])
    assert list_harmed(tabulate_lesions(measure(margins, few=60)))[1:] == [("det", "phenomenon p4")]
    table = tabulate_lesions(measure(margins, few=59))
    assert list_harmed(table) == [("nsubj", "phenomenon p2")]
    frame = list_lesions(table)
    assert {*frame[frame["set"] == "det"]["verdict"]} == {"cannot decide"}
    console = Console(width=200, record=True, file=StringIO())
    print_lesions(table.assign_attrs(how="zero", content="pairs", model="made/up", corpus="blimp"), console)
    sentence = "Cannot decide on det: no more than 59 other sets have as many heads, and 60 are needed."
    printed = console.export_text()
    assert sentence in printed
    assert "Of 14 pairs of a set and a phenomenon, the margin suffers in 1." in printed


@pytest.mark.parametrize(("count", "stored"), [(59, 59), (math.comb(270, 27), 1.06e37), (2**2000, 1.797e308)])
def test_more_other_sets_than_an_integer_holds_are_written(tmp_path: Path, count: int, stored: float) -> None:
    tabulate_lesions(measure(draw_margins(5), few=count)).to_netcdf(tmp_path / "lesions.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "lesions.nc", engine="h5netcdf") as table:
        assert float(table["set_others"].sel(set="det")) == pytest.approx(stored, rel=0.01)


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
