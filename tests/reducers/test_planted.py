"""Heads that were built to attend by a rule are the heads that the tables name."""

import pytest

import planted
from headscope.analyse import add_intervals, add_report, list_highest
from headscope.capture.open.untrained import untrained_model
from headscope.runner.local import measure


@pytest.fixture(scope="module")
def table():
    model, documents = planted.plant(planted.RULES), planted.documents()
    measured = measure(model, documents, ["surface", "relations"])
    untrained = measure(untrained_model(model), documents, ["relations"])
    return add_report(add_intervals(measured), untrained)


def test_the_planted_surface_heads_stand_out(table) -> None:
    (best, share), (_, second) = list_highest(table, "mass_previous", 2)
    assert best == "1-4"
    assert share == pytest.approx(1, abs=1e-3)
    assert second < 0.5
    (best, share), (_, second) = list_highest(table, "mass_sep", 2)
    assert best == "3-1"
    assert share == pytest.approx(1, abs=1e-3)
    assert second < 0.5


@pytest.mark.parametrize(
    ("relation", "layer", "head", "direction"), [("obj", 2, 3, "dependent_to_head"), ("det", 3, 5, "head_to_dependent")]
)
def test_the_planted_relation_heads_are_reported(table, relation, layer, head, direction) -> None:
    row = table.sel(relation=relation)
    assert (row["reported_layer"], row["reported_head"], row["reported_direction"]) == (layer, head, direction)
    assert row["reported_again"] == 1
    assert row["heldout_accuracy"] == 1
    assert row["heldout_lower"] > max(row["heldout_offset_upper"], row["untrained_upper"])
    assert table["relation_accuracy"].sel(layer=layer, head=head, relation=relation, direction=direction) == 1


def test_a_head_that_was_not_planted_is_no_better_than_chance(table) -> None:
    others = table["relation_accuracy"].sel(relation="obj").where(table["layer"] != 2)
    assert others.max() < 0.45
