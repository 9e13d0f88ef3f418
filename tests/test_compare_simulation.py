"""Task and control drawn from one distribution, and changes planted in chosen heads: what `compare` then says."""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom, false_discovery_control

from analyse.tables import ATTRIBUTES
from headscope.analyse import compare_variable as compare
from headscope.analyse.ranktests import rank_sums
from headscope.analyse.welch import compare_means

pytestmark = pytest.mark.full

LEVEL = 0.05
LAYERS, HEADS, RUNS = 5, 11, 7
PLANTED = ((0, 3), (2, 0), (2, 7), (4, 10))


def table(values: np.ndarray, control: bool = False) -> xr.Dataset:
    """A variable of heads, in each run where there are runs; the seeds of all groups are the same."""
    dims = ("run", "layer", "head")[-values.ndim :]
    coords = {"layer": np.arange(1, values.shape[-2] + 1), "head": np.arange(1, values.shape[-1] + 1)}
    if values.ndim == 3:
        coords["seed"] = ("run", np.arange(len(values)))
    about = {"units": "share of attention", "source": "drawn", "long_name": "attention"}
    return xr.Dataset({"mass_sep": (dims, values, about)}, coords=coords, attrs=ATTRIBUTES)


def world(draw: np.random.Generator, layers: int = LAYERS, heads: int = HEADS, planted: float = 0.0) -> xr.Dataset:
    """Runs that all change as much, and differ as wholes and head by head; with what is planted in the task's."""
    before = draw.normal(0.3, 0.1, (layers, heads))
    groups = []
    for _ in range(2):
        whole = draw.normal(0, 0.01, (RUNS, 1, 1)) + draw.normal(0, 0.01, (RUNS, layers, 1))
        groups.append(before + 0.03 + whole + draw.normal(0, 0.02, (RUNS, layers, heads)))
    for layer, head in PLANTED if planted else ():
        groups[0][:, layer, head] += planted
    return compare(table(before), table(groups[0]), table(groups[1]), "mass_sep")


def attainable() -> float:
    """The largest p-value up to 0.05 that a rank-sum test of so many runs against so many can give."""
    deals = np.array(list(combinations(range(2 * RUNS), RUNS)))
    sums = deals.sum(1)
    tails = np.array([(sums <= low).mean() for low in np.unique(sums)])
    return float(2 * tails[2 * tails <= LEVEL].max())


def within(hits: int, of: int, share: float) -> bool:
    """Whether so many hits are what chance allows, at a share."""
    low, high = binom.ppf([1e-4, 1 - 1e-4], of, share)
    return bool(low <= hits <= high)


def test_tests_of_layers_and_heads_reject_at_the_level_that_so_few_runs_can_have() -> None:
    exact = attainable()
    assert 0.03 < exact < LEVEL
    layers = 601  # each is a world of its own
    draw = np.random.default_rng(3)
    before = draw.normal(0.3, 0.1, (layers, 3))
    groups = [
        before + draw.normal(0, 0.02, (RUNS, layers, 3)) + draw.normal(0, 0.01, (RUNS, layers, 1)) for _ in range(2)
    ]
    found = compare(table(before), table(groups[0]), table(groups[1]), "mass_sep")
    assert within(int((found["layer_p"] <= LEVEL).sum()), layers, exact)
    assert within(int((found["p"].isel(head=0) <= LEVEL).sum()), layers, exact)
    paired = 6 / 2**RUNS  # the largest up to 0.05: of 128 choices of signs, three on each side have a sum up to 2
    assert within(int((found["layer_paired_p"] <= LEVEL).sum()), layers, paired)
    assert within(int((found["layer_before_p"].sel(group="task") <= LEVEL).sum()), layers, paired)


@pytest.fixture(scope="module")
def worlds() -> list[xr.Dataset]:
    draw = np.random.default_rng(5)
    return [world(draw) for _ in range(101)]


@pytest.mark.parametrize("name", ["average_p", "best_p", "average_paired_p"])
def test_where_the_control_changes_as_much_the_tests_reject_at_their_level(worlds, name: str) -> None:
    rejected = sum(float(found[name]) <= LEVEL for found in worlds)
    assert rejected <= binom.ppf(0.999, len(worlds), LEVEL)
    assert rejected > 0


@pytest.mark.parametrize("name", ["q", "layer_q"])
def test_where_the_control_changes_as_much_no_head_and_no_layer_is_found_more_often_than_its_level(
    worlds, name
) -> None:
    assert sum(bool((found[name] <= LEVEL).any()) for found in worlds) <= binom.ppf(0.999, len(worlds), LEVEL)


def test_that_both_groups_changed_is_found(worlds) -> None:
    assert sum(float(found["average_before_p"].max()) <= LEVEL for found in worlds) > 0.9 * len(worlds)


def test_the_interval_of_the_mean_change_covers_the_truth(worlds) -> None:
    inside = [(one["average_lower"] <= 0.03) & (one["average_upper"] >= 0.03) for one in worlds]
    covered = sum(bool(both.sel(group="task")) for both in inside)
    assert binom.ppf(1e-3, len(worlds), 0.95) <= covered <= binom.ppf(0.999, len(worlds), 0.95)


def test_a_change_planted_in_some_heads_is_found_and_others_no_more_often_than_its_level() -> None:
    draw, tried = np.random.default_rng(7), 23
    found = [world(draw, planted=0.2)["q"].values <= LEVEL for _ in range(tried)]
    named = [tuple(place) for one in found for place in np.argwhere(one).tolist()]
    false = sum(place not in PLANTED for place in named)
    assert len(named) - false == tried * len(PLANTED)
    assert false <= binom.ppf(0.999, len(named), LEVEL)
    assert min(int(one.sum()) for one in found) == len(PLANTED)


# ------------------------------------------------------- equal means, unequal spreads

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "compare.md"
NULL_WORLDS = 2003
KINDS = ((10, 1, "normal"), (10, 2, "normal"), (10, 4, "normal"), (7, 4, "normal"), (5, 4, "normal"), (10, 4, "skewed"))
"""Runs of each group, the task's standard deviation to the control's, and how the runs of a group are distributed."""


def count_rejections(runs: int, ratio: int, shape: str) -> tuple[float, float, float]:
    """The shares of worlds of 72 heads and equal means with a small q of some head: rank-sum, Welch, both of one."""
    draw, size = np.random.default_rng(13), (runs, NULL_WORLDS, 72)
    groups = []
    for spread in (0.02 * ratio, 0.02):
        standard = (draw.gamma(2, 1, size) - 2) / np.sqrt(2) if shape == "skewed" else draw.normal(0, 1, size)
        groups.append(0.3 + spread * standard)
    exact, welch = (false_discovery_control(p, axis=1) <= LEVEL for p in (rank_sums(*groups), compare_means(*groups).p))
    return tuple(float(small.any(1).mean()) for small in (exact, welch, exact & welch))


@pytest.fixture(scope="module")
def rejections() -> dict[tuple[int, int, str], tuple[float, float, float]]:
    return {kind: count_rejections(*kind) for kind in KINDS}


def test_with_equal_spreads_equal_means_are_not_rejected_too_often(rejections) -> None:
    assert max(rejections[10, 1, "normal"]) <= binom.ppf(0.999, NULL_WORLDS, LEVEL) / NULL_WORLDS


def test_with_unequal_spreads_the_rank_sum_rejects_equal_means_more_often_than_welch(rejections) -> None:
    for runs in (7, 10):
        exact, welch, both = rejections[runs, 4, "normal"]
        assert exact > 1.4 * welch
        assert exact > binom.ppf(0.999, NULL_WORLDS, LEVEL) / NULL_WORLDS
        # Welch's t is an approximation, and least good far out, where a q over 72 heads is decided.
        assert both < welch <= (0.08 if runs == 10 else 0.1)
    exact, welch, both = rejections[5, 4, "normal"]
    assert exact == both == 0  # 12 heads would need the smallest p
    assert welch <= 0.12


def test_the_rejections_are_those_of_the_documentation(rejections) -> None:
    row = r"^\| (\d+) \| (\d+) \| (normal|skewed) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$"
    rows = re.findall(row, PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    shown = {(int(runs), int(ratio), shape): list(map(float, shares)) for runs, ratio, shape, *shares in rows}
    assert shown.keys() == set(KINDS)
    for kind, shares in shown.items():
        assert shares == pytest.approx(rejections[kind], abs=0.006), kind


def test_changes_of_unequal_spread_are_found_by_both_tests() -> None:
    draw = np.random.default_rng(17)
    before = draw.normal(0.3, 0.1, (LAYERS, HEADS))
    task, control = (before + draw.normal(0, spread, (10, LAYERS, HEADS)) for spread in (0.08, 0.02))
    for layer, head in PLANTED:
        task[:, layer, head] += 0.3
    found = compare(table(before), table(task), table(control), "mass_sep")
    both = (found["q"] <= LEVEL) & (found["welch_q"] <= LEVEL)
    assert [tuple(place) for place in np.argwhere(both.values).tolist()] == list(PLANTED)
    assert float(found["spread_ratio"].median()) == pytest.approx(4, rel=0.1)
