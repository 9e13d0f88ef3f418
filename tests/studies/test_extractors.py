"""What claims read from head tables, against loops over the same numbers."""

import numpy as np
import pytest
import xarray as xr

from headscope.studies import extractors
from headscope.studies.study import NotMeasuredError, Value

LAYERS, HEADS, RELATIONS = 3, 5, ("all", "case", "obj", "det")
DIRECTIONS = ("dependent_to_head", "head_to_dependent")
OFFSETS = (-3, -2, -1, 1, 2, 3, 4)


@pytest.fixture(scope="module")
def table() -> xr.Dataset:
    rng = np.random.default_rng(0)
    accuracy = rng.random((LAYERS, HEADS, len(RELATIONS), 2))
    by_head = ("layer", "head", "relation", "direction")
    return xr.Dataset(
        {
            "relation_accuracy": (by_head, accuracy),
            "relation_accuracy_lower": (by_head, accuracy * 0.9),
            "relation_accuracy_upper": (by_head, accuracy * 1.1),
            "offset_accuracy": (("relation", "offset"), rng.random((len(RELATIONS), len(OFFSETS)))),
            "reported_layer": ("relation", [2, np.nan, 3, 1]),
            "reported_head": ("relation", [5, np.nan, 4, 2]),
            "reported_direction": ("relation", [DIRECTIONS[0], "", DIRECTIONS[1], DIRECTIONS[1]]),
            "heldout_accuracy": ("relation", [0.31, np.nan, 0.37, 0.41]),
            "heldout_lower": ("relation", [0.29, np.nan, 0.31, 0.37]),
            "heldout_upper": ("relation", [0.37, np.nan, 0.41, 0.43]),
            "heldout_offset": ("relation", [-1, np.nan, 2, 3]),
            "heldout_offset_accuracy": ("relation", [0.11, np.nan, 0.13, 0.17]),
            "heldout_offset_lower": ("relation", [0.07, np.nan, 0.11, 0.13]),
            "heldout_offset_upper": ("relation", [0.13, np.nan, 0.17, 0.19]),
            "mass": (("layer", "head"), rng.random((LAYERS, HEADS))),
            "empty": (("layer", "head"), np.full((LAYERS, HEADS), np.nan)),
            "score": ("offset", rng.random(len(OFFSETS))),
            "chosen": ("offset", rng.random(len(OFFSETS))),
        },
        coords={
            "layer": np.arange(1, LAYERS + 1),
            "head": np.arange(1, HEADS + 1),
            "relation": list(RELATIONS),
            "direction": list(DIRECTIONS),
            "offset": list(OFFSETS),
        },
    )


def percent(*numbers: float) -> list:
    return [pytest.approx(100 * number) for number in numbers]


def best_of(table: xr.Dataset, relation: str) -> tuple[float, str]:
    """By a loop: the best accuracy, and the head and direction that it is of."""
    best, name = -1.0, ""
    values = table["relation_accuracy"].sel(relation=relation).transpose("layer", "head", "direction").values
    for layer in range(LAYERS):
        for head in range(HEADS):
            for direction in range(2):
                if values[layer, head, direction] > best:
                    best = values[layer, head, direction]
                    name = f"{layer + 1}-{head + 1}" + (" head to dependent" if direction else "")
    return best, name


@pytest.mark.parametrize(("labels", "row"), [(("All", "all"), "all"), (("dobj", "obj"), "obj"), (("det",), "det")])
def test_the_best_head_of_a_relation(table, labels, row) -> None:
    best, name = best_of(table, row)
    value = extractors.best_relation_head(*labels)(table)
    assert value.detail == name
    assert [value.number, value.lower, value.upper] == percent(best, 0.9 * best, 1.1 * best)


def test_what_is_held_out_is_of_the_reported_head(table) -> None:
    held = extractors.best_relation_head("dobj", "obj")(table).held_out
    assert (held.detail, held.number, held.lower, held.upper) == ("3-4 head to dependent", *percent(0.37, 0.31, 0.41))
    assert extractors.best_relation_head("case")(table).held_out is None


def test_a_relation_that_is_turned_round_changes_direction_and_the_sign_of_offsets(table) -> None:
    best, name = best_of(table, "obj")
    swapped = extractors.best_relation_head("pobj", "obj", swapped=True)(table)
    assert swapped.number == pytest.approx(100 * best)
    assert ("head to dependent" in swapped.detail) != ("head to dependent" in name)
    assert swapped.held_out.detail == "3-4"
    # The paper's own label is read as it stands.
    assert extractors.best_relation_head("obj", swapped=True)(table).detail == name
    straight, back = (extractors.best_relation_offset("pobj", "obj", swapped=turn)(table) for turn in (False, True))
    assert int(back.detail) == -int(straight.detail)
    assert (straight.held_out.detail, back.held_out.detail) == ("+2", "-2")
    assert straight.number == back.number


def test_the_best_fixed_offset(table) -> None:
    values = dict(zip(OFFSETS, table["offset_accuracy"].sel(relation="obj").values, strict=True))
    best = max(values, key=values.get)
    value = extractors.best_relation_offset("dobj", "obj")(table)
    assert (value.detail, value.number) == (f"{best:+d}", *percent(values[best]))
    held = value.held_out
    assert [held.number, held.lower, held.upper] == percent(0.13, 0.11, 0.17)


def test_the_value_at_the_offset_that_is_best_by_another(table) -> None:
    best = max(range(len(OFFSETS)), key=lambda place: table["chosen"].values[place])
    value = extractors.best_offset("score", by="chosen")(table)
    assert (value.detail, value.number) == (f"{OFFSETS[best]:+d}", *percent(table["score"].values[best]))


def test_the_mean_of_near_offsets(table) -> None:
    near = [number for offset, number in zip(OFFSETS, table["score"].values, strict=True) if abs(offset) <= 2]
    assert len(near) == 4
    assert extractors.mean_of_offsets("score", farthest=2)(table).number == pytest.approx(100 * sum(near) / 4)


def test_the_head_that_is_best_by_another_place(table) -> None:
    _, name = best_of(table, "all")
    layer, head = map(int, name.split()[0].split("-"))
    direction = DIRECTIONS[1 if "head to" in name else 0]
    expected = table["relation_accuracy"].sel(relation="det", layer=layer, head=head, direction=direction).item()
    value = extractors.best_head_value("relation_accuracy", by="relation_accuracy", relation="det")(table)
    assert (value.detail, value.number) == (name, *percent(expected))


@pytest.mark.parametrize(
    ("layers", "depth", "expected"),
    [(12, (6 / 12, 10 / 12), [6, 7, 8, 9, 10]), (6, (6 / 12, 10 / 12), [3, 4, 5]), (24, (1.0, 1.0), [24])],
)
def test_layers_are_found_by_their_depth(layers, depth, expected) -> None:
    values = xr.DataArray(
        np.random.default_rng(0).random((layers, 7)), dims=("layer", "head"), coords={"layer": np.arange(1, layers + 1)}
    )
    value = extractors.mean_of_layers("mass", *depth)(values.to_dataset(name="mass"))
    rows = [values.values[layer - 1] for layer in expected]
    assert value.number == pytest.approx(100 * np.mean(rows))
    numbers = ", ".join(map(str, expected))
    assert value.detail == f"layer{'s' if len(expected) > 1 else ''} {numbers} of {layers}"


def test_a_model_without_layers_of_that_depth_says_so(table) -> None:
    with pytest.raises(NotMeasuredError, match=r"^none of the 3 layers is that deep$"):
        extractors.mean_of_layers("mass", 0.4, 0.5)(table)


def test_heads_and_layers_of_a_variable(table) -> None:
    values = table["mass"].values
    above = [layer + 1 for layer in range(LAYERS) for head in range(HEADS) if values[layer, head] > 0.5]
    assert 1 < len(above) < LAYERS * HEADS
    reached = extractors.count_heads_above("mass", 0.5)(table)
    assert (reached.number, reached.detail) == (len(above), f"layers {', '.join(map(str, above))} of 3")
    assert extractors.count_heads_above("mass", 1.0)(table) == Value(0.0)
    assert extractors.share_of_heads_below("mass", 0.5)(table).number == pytest.approx(100 * (values < 0.5).mean())
    means = [sum(row) / HEADS for row in values]
    assert extractors.top_layer("mass")(table).number == 1 + means.index(max(means))
    assert extractors.mean_of_heads("mass")(table).number == pytest.approx(100 * sum(means) / LAYERS)
    flat = values.ravel().tolist()
    layer, head = divmod(flat.index(max(flat)), HEADS)
    top = extractors.layer_of_top_head("mass")(table)
    assert (top.number, top.detail) == (layer + 1, f"head {layer + 1}-{head + 1} of 3 layers")


def test_the_largest_of_what_there_is(table) -> None:
    small, large = (lambda on, number=number: Value(number) for number in (3.0, 5.0))
    missing = extractors.mean_of_heads("empty")
    assert extractors.largest(small, large, missing)(table).number == 5
    with pytest.raises(NotMeasuredError, match=r"^the table has none of what this is compared with$"):
        extractors.largest(missing)(table)


def test_the_largest_has_the_interval_of_the_largest() -> None:
    values = Value(31.0, "", 29.0, 37.0), Value(23.0, "", 11.0, 41.0), Value(19.0)
    best = extractors.largest(*(lambda value=value: value for value in values))()
    assert (best.number, best.ends) == (31.0, (29.0, 41.0))
    assert extractors.largest(lambda: values[1], lambda: Value(27.0))().ends == (27.0, 41.0)


def test_the_value_of_a_head_has_its_p(table) -> None:
    ps = np.linspace(0.01, 0.99, LAYERS * HEADS).reshape(LAYERS, HEADS)
    tested = table.assign(mass_p=(("layer", "head"), ps))
    value = extractors.best_head_value("mass", by="mass", p="mass_p")(tested)
    assert value.p == ps.ravel()[int(table["mass"].values.argmax())]
    assert np.isnan(extractors.best_head_value("mass", by="mass")(tested).p)


@pytest.mark.parametrize(
    ("read", "why"),
    [
        (extractors.best_relation_head("nsubj"), "the corpus has no relation nsubj"),
        (extractors.best_relation_head("prt", "compound:prt"), "the corpus has no relation prt or compound:prt"),
        (extractors.mean_of_heads("absent"), "the table has no absent"),
        (extractors.mean_of_heads("empty"), "the table has no empty"),
        (extractors.best_head("relation_accuracy", relation="nsubj"), "the corpus has no relation nsubj"),
    ],
)
def test_what_is_not_there_is_not_measured(table, read, why) -> None:
    with pytest.raises(NotMeasuredError, match=f"^{why}$"):
        read(table)
