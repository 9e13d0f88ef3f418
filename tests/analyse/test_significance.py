"""p-values from permutations: against loops and statsmodels."""

import math

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from analyse.tables import DIRECTIONS, RELATIONS, head_table, stacked, texts
from headscope import heads
from headscope.analyse import add_report, add_significance
from headscope.analyse.significance import holm
from headscope.heads import check

PERMUTATIONS = 97


def drawn(table: xr.Dataset, seed: int) -> xr.Dataset:
    """`table` with z of all heads, and the best in each permutation; some of them equal."""
    draw = np.random.default_rng(seed)
    dims = ("layer", "head", "direction", "relation")
    shape = [table.sizes[dim] for dim in dims]
    values = {
        "relation_z": (draw.normal(size=shape).round(1) + 2 * (draw.random(shape) < 0.1), dims),
        "relation_p": (draw.integers(1, PERMUTATIONS + 2, shape) / (PERMUTATIONS + 1), dims),
        "relation_permuted": (draw.random(shape), dims),
        "relation_z_permuted": (
            (2 + draw.normal(size=(shape[-1], PERMUTATIONS))).round(1),
            ("relation", "permutation"),
        ),
    }
    return table.assign(
        {name: heads.variable(data, of, name=name, units="1", source="numpy") for name, (data, of) in values.items()}
    )


@pytest.fixture
def table() -> xr.Dataset:
    return drawn(head_table(texts(np.random.default_rng(61)), RELATIONS), 67)


def test_corrected_p_values_count_the_draws_in_which_any_head_does_as_well(table) -> None:
    found = add_significance(table)
    for relation in RELATIONS:
        row = found.sel(relation=relation)
        best = row["relation_z_permuted"].values
        for layer, head in np.ndindex(3, 5):
            for direction in DIRECTIONS:
                one = row.sel(layer=layer + 1, head=head + 1, direction=direction)
                p = (1 + sum(value >= one["relation_z"].item() for value in best)) / (PERMUTATIONS + 1)
                assert one["relation_p_corrected"].item() == pytest.approx(p)
        p = (1 + sum(value >= row["relation_z"].values.max() for value in best)) / (PERMUTATIONS + 1)
        assert row["best_p"].item() == pytest.approx(p)
    check(found)


def test_false_discovery_rates_are_those_of_statsmodels(table) -> None:
    found = add_significance(table)
    for rate, of in (("relation_q", "relation_p"), ("best_q", "best_p")):
        theirs = multipletests(found[of].values.ravel(), method="fdr_bh")[1]
        np.testing.assert_allclose(found[rate].values.ravel(), theirs)


def test_of_several_stacks_the_best_of_all_counts() -> None:
    one, other = (
        head_table(texts(np.random.default_rng(seed), layers), RELATIONS) for seed, layers in ((71, 3), (73, 2))
    )
    tables = {"encoder": drawn(one, 79), "decoder": drawn(other, 83)}
    found = add_significance(stacked_with_draws(tables))
    for relation in RELATIONS:
        best = [
            max(pair)
            for pair in zip(
                *(t["relation_z_permuted"].sel(relation=relation).values for t in tables.values()), strict=True
            )
        ]
        most = max(t["relation_z"].sel(relation=relation).values.max() for t in tables.values())
        p = (1 + sum(value >= most for value in best)) / (PERMUTATIONS + 1)
        assert found["best_p"].sel(relation=relation).item() == pytest.approx(p)
    missing = found.sel(attention_type="decoder", layer=3)
    assert missing["relation_p_corrected"].isnull().all()
    assert missing["relation_q"].isnull().all()


def stacked_with_draws(tables: dict[str, xr.Dataset]) -> xr.Dataset:
    """What `headscope.reducers` makes of several attention types: what a draw has of heads is of each attention type
    by itself.
    """
    best = {name: table["relation_z_permuted"] for name, table in tables.items()}
    joint = stacked({name: table.drop_vars("relation_z_permuted") for name, table in tables.items()})
    data = np.stack([values.values for values in best.values()])
    attrs = next(iter(best.values())).attrs
    return joint.assign(relation_z_permuted=xr.Variable(("attention_type", "relation", "permutation"), data, attrs))


def test_the_reported_head_stands_beside_itself_on_moved_gold(table) -> None:
    report = add_report(add_significance(table), minimum=1)
    for relation in RELATIONS:
        row = report.sel(relation=relation)
        place = {dim: row[f"reported_{dim}"].item() for dim in ("layer", "head", "direction")}
        assert row["reported_permuted"] == row["relation_permuted"].sel(place)
        assert row["reported_p"] == row["relation_p_corrected"].sel(place)
    rare = add_report(table, minimum=10_000)
    assert rare["reported_permuted"].isnull().all()


def test_without_draws_nothing_is_added(table) -> None:
    plain = table.drop_vars(["relation_z", "relation_p", "relation_permuted", "relation_z_permuted"])
    xr.testing.assert_identical(add_significance(plain), plain)


@settings(max_examples=11)  # statsmodels looks for garbage each time
@given(p=st.lists(st.floats(0, 1) | st.just(math.nan), min_size=1, max_size=31))
def test_holms_correction_is_that_of_statsmodels_over_what_is_known(p: list[float]) -> None:
    known = [each for each in p if not math.isnan(each)]
    expected = iter(multipletests(known, method="holm")[1] if known else [])
    np.testing.assert_allclose(holm(np.array(p)), [math.nan if math.isnan(each) else next(expected) for each in p])
