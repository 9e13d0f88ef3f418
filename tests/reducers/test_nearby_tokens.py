"""Tokens at a fixed distance: naive loops over the maps of the model itself, and worlds of heads."""

import numpy as np
import pytest
import xarray as xr

import tiny
import witnesses
from causal_heads import Scores, attend_evenly, build, like_tokens, look_at_place, look_back, look_nearby
from family_maps import make, see_all
from headscope.corpora import Document, read, summarize
from headscope.reducers import REDUCERS, NearbyTokens
from headscope.reducers.nearby_tokens import NEARBY, SIDES
from headscope.runner import Plan, measure

DOCUMENTS = tiny.documents(23)
IGNORANT = [attend_evenly, like_tokens, look_at_place(0), look_at_place(3)]
"""Heads that attend evenly, to liked tokens or to a place of the text, and so at no distance."""


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize(
    "plan", [Plan(), Plan(batch_tokens=1, rows=3), Plan(fused=True)], ids=["batched", "3 rows", "fused"]
)
def test_masses_equal_naive_loops(family: str, plan: Plan) -> None:
    seen = see_all(family, tuple(DOCUMENTS))
    table = measure(make(family), DOCUMENTS, ["nearby_tokens"], plan=plan)
    for attention_type, maps in seen.items():
        ours = table
        if "attention_type" in table.dims:
            ours = table.sel(attention_type=attention_type).isel(layer=slice(0, len(maps[0].weights)))
        rows = witnesses.nearby_tokens(maps, causal=attention_type == "decoder")
        assert list(rows) == list(NEARBY)
        for name, (mass, beside, uniform, count) in rows.items():
            row = ours.sel(nearby=name)
            np.testing.assert_allclose(row["nearby_mass"].transpose("layer", "head"), mass, atol=1e-6)
            assert int(row["nearby_count"]) == count
            sums = {name: row[f"fold_nearby_{name}"].sum("fold") / (count or np.nan) for name in ("beside", "uniform")}
            np.testing.assert_allclose(sums["beside"].transpose("layer", "head", "beside"), beside, atol=1e-6)
            even = sums["uniform"].transpose("layer", "head")
            np.testing.assert_allclose(even, np.broadcast_to(uniform, even.shape), atol=1e-6)
            assert (count > 0) == (len(seen) > 1 or attention_type == "encoder" or NEARBY[name] < 0)


def judge(heads: list[Scores], documents: list[Document]) -> xr.Dataset:
    return build(NearbyTokens.for_corpus(summarize(documents)), make("gpt2"), heads, documents)


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    """Random tokens, 16 to 64 of them."""
    return [document.truncate(len(document.words) // 2) for document in read("repeats:150:3")]


def test_no_head_stands_out_that_attends_at_no_distance(documents: list[Document]) -> None:
    table = judge(IGNORANT, documents)
    for name in NEARBY:
        row = table.sel(nearby=name)
        expected = "" if NEARBY[name] > 0 else "does not stand out"
        assert str(row["nearby_reported_verdict"].item()) == expected, name


@pytest.mark.parametrize("reach", [2.0, 5.0])
def test_a_head_that_looks_nearby_has_no_distance_of_its_own(documents: list[Document], reach: float) -> None:
    """It gives the previous token more than uniform attention does, and the token itself more than that."""
    table = judge([*IGNORANT, look_nearby(reach)], documents)
    row = table.sel(nearby="previous token")
    assert int(row["nearby_reported_head"]) == len(IGNORANT) + 1
    assert float(row["nearby_lift_over_uniform_lower"]) > 0.05
    assert (row["nearby_lift_rival"], row["nearby_heldout_beside"]) == ("beside", "a token nearer")
    assert str(row["nearby_reported_verdict"].item()) == "does not stand out"


@pytest.mark.parametrize("strength", [9, 2])
@pytest.mark.parametrize("distance", [1, 3])
def test_a_head_that_looks_at_a_distance_stands_out_there_alone(
    documents: list[Document], distance: int, strength: float
) -> None:
    table = judge([*IGNORANT, look_nearby(2.0), look_back(distance, strength)], documents)
    stands = {
        name: int(table["nearby_reported_head"].sel(nearby=name))
        for name in NEARBY
        if str(table["nearby_reported_verdict"].sel(nearby=name).item()) == "stands out"
    }
    assert stands == {next(name for name, step in NEARBY.items() if step == -distance): len(IGNORANT) + 2}


def test_it_is_measured_where_it_is_named() -> None:
    assert not REDUCERS["nearby_tokens"].supports(summarize(DOCUMENTS))
    assert {*SIDES.values()} == {-1, 1}
