"""When a head is needed, not needed, or neither: tables of effects of which we know what to say."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
import xarray as xr

from headscope.analyse.effects import compute_effects
from headscope.analyse.metrics import ratio_metric
from headscope.analyse.need import (
    BETTER_WITHOUT,
    BOUND,
    NEEDED,
    NEEDS,
    NOT_NEEDED,
    NOT_SHOWN,
    NOT_TESTED,
    add_need,
    check_effects,
    match_effects,
)
from headscope.errors import TableError

LAYERS, HEADS = 2, 5

SURE, UNSURE = 0.001, 0.2
NEED_OF_A_WAY: Mapping[str, tuple[str, dict[str, float]]] = {
    "worse, beyond placebos": (NEEDED, {"": 0.3, "_lower": 0.2, "_upper": 0.4}),
    "worse, and so with placebos": (
        NOT_SHOWN, {"": 0.3, "_lower": 0.2, "_upper": 0.4, "_placebo": 0.29, "_placebo_p_corrected": UNSURE},
    ),
    "worse, but less than with placebos": (NOT_SHOWN, {"": 0.3, "_lower": 0.2, "_upper": 0.4, "_placebo": 0.9}),
    "worse, perhaps": (NOT_SHOWN, {"": 0.3, "_lower": -0.2, "_upper": 0.8, "_p_corrected": UNSURE}),
    "better": (BETTER_WITHOUT, {"": -0.3, "_lower": -0.4, "_upper": -0.2}),
    "the same, surely": (NOT_NEEDED, {"": 0.001, "_lower": -0.004, "_upper": 0.006, "_p_corrected": UNSURE}),
    "the same, perhaps": (NOT_SHOWN, {"": 0.001, "_lower": -0.02, "_upper": 0.022, "_p_corrected": UNSURE}),
    "a little worse, surely": (NEEDED, {"": 0.004, "_lower": 0.003, "_upper": 0.005}),
    "not run": (NOT_TESTED, dict.fromkeys(("", "_lower", "_upper", "_p_corrected"), np.nan)),
    "a single text": (NOT_TESTED, {"": 0.3, "_lower": np.nan, "_upper": np.nan, "_p_corrected": np.nan}),
}  # fmt: skip
"""Heads of one layer after the other: what is to be said of each, and what differs from an effect that is sure."""


def make_effects(ways: Sequence[Sequence[Mapping[str, float]]], better: int = -1, **attrs: object) -> xr.Dataset:
    """A table of effects with a loss, by way and head."""
    certain = {"_p_corrected": SURE, "_placebo": 0.0, "_placebo_lower": -0.01, "_placebo_upper": 0.01,
               "_placebo_p_corrected": SURE}  # fmt: skip
    ends = ("", "_lower", "_upper", *certain)
    table = xr.Dataset(
        coords={
            "layer": [*range(1, LAYERS + 1)], "head": [*range(1, HEADS + 1)],
            "how": [f"way {n}" for n in range(len(ways))], "subset": ["all", "some"],
        }
    )  # fmt: skip
    for end in ends:
        values = np.array([[{**certain, **head}[end] for head in heads] for heads in ways], dtype=float)
        # The second subset says something else, and nobody asks it.
        both = np.stack([values, -7 * values], axis=1).reshape(len(ways), 2, LAYERS, HEADS)
        described = {"long_name": f"loss{end}", "units": "nats", "source": "test"}
        table[f"effect_loss{end}"] = (("how", "subset", "layer", "head"), both, described)
    # An accuracy comes first in the table, and is not what need is about.
    table["effect_accuracy"] = -table["effect_loss"]
    table["first_order_loss"] = table["effect_loss"]
    table["examples"], table["texts"] = ("subset", [61, 7]), ("subset", [31, 5])
    metrics = [
        {"name": "accuracy", "title": "accuracy", "units": "share", "better": 1},
        {"name": "loss", "title": "loss", "units": "nats", "better": better},
    ]
    about = {"model": "m", "weights_sha256": "w", "corpus": "c", "corpus_sha256": "s", "call": "f()", "created": "now",
             "content": "examples", "metrics": json.dumps(metrics)}  # fmt: skip
    return table.assign_attrs(about | attrs)


def make_table() -> xr.Dataset:
    return xr.Dataset(coords={"layer": [*range(1, LAYERS + 1)], "head": [*range(1, HEADS + 1)]})


def read_needs(table: xr.Dataset) -> list[str]:
    return [NEEDS[code] for code in table["need"].values.ravel()]


def test_each_head_is_judged_by_effect_interval_and_placebos() -> None:
    effects = make_effects([[head for _, head in NEED_OF_A_WAY.values()]])
    table = add_need(make_table(), effects)
    assert dict(zip(NEED_OF_A_WAY, read_needs(table), strict=True)) == {
        name: need for name, (need, _) in NEED_OF_A_WAY.items()
    }
    xr.testing.assert_equal(
        table["effect_loss"].drop_attrs(), effects["effect_loss"].sel(how="way 0", subset="all", drop=True).drop_attrs()
    )


def test_of_a_metric_that_is_to_be_high_the_other_direction_is_worse() -> None:
    effects = make_effects([[head for _, head in NEED_OF_A_WAY.values()]], better=1)
    needs = dict(zip(NEED_OF_A_WAY, read_needs(add_need(make_table(), effects)), strict=True))
    assert needs["worse, beyond placebos"] == BETTER_WITHOUT
    assert needs["better"] == NEEDED
    assert needs["the same, surely"] == NOT_NEEDED


def test_what_is_said_holds_in_every_way() -> None:
    """Uniform attention may harm where taking the head away does not; the ways behind the first have no placebos."""
    names = ("worse, beyond placebos", "the same, surely", "the same, perhaps", "better", "not run")
    without_placebos = dict.fromkeys(("_placebo", "_placebo_lower", "_placebo_upper", "_placebo_p_corrected"), np.nan)
    first = [NEED_OF_A_WAY["worse, beyond placebos"][1]] * HEADS + [NEED_OF_A_WAY["the same, surely"][1]] * HEADS
    second = [NEED_OF_A_WAY[name][1] | without_placebos for name in names] * LAYERS
    needs = read_needs(add_need(make_table(), make_effects([first, second])))
    assert needs == [
        NEEDED, NOT_SHOWN, NOT_SHOWN, NOT_SHOWN, NOT_TESTED, NOT_SHOWN, NOT_NEEDED, NOT_SHOWN, NOT_SHOWN, NOT_TESTED,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "effect", "least", "most"), [(7, BOUND, 0, 0.04), (31, -BOUND, 0, 0.04), (7, 0, 0.9, 1), (31, 0, 0.9, 1)]
)
def test_a_head_that_changes_the_loss_by_the_bound_is_seldom_called_unneeded(
    texts: int, effect: float, least: float, most: float
) -> None:
    """The worlds in which it would be wrong, with effects as large as the bound, and one in which it is right.

    Texts are few and of unequal length. With exact intervals 2.5 % would be called unneeded at the bound.
    """
    heads, random = 1009, np.random.default_rng(0)
    examples = random.integers(1, 4, texts)
    clusters = np.repeat(np.arange(texts), examples)
    of_text = random.normal(0, 0.003, (heads, texts))
    changes = effect + of_text[:, clusters] + random.normal(0, 0.003, (heads, len(clusters)))
    metric = ratio_metric("loss", "loss", "nats", -1, "minus_loss", "examples")
    whole = {"minus_loss": np.full(len(clusters), 1.0), "examples": np.ones(len(clusters))}
    without = {"minus_loss": 1 + changes, "examples": np.ones(changes.shape)}
    everything = np.ones(len(clusters), dtype=bool)
    effects = compute_effects(metric, whole, without, [str(text) for text in clusters], everything)
    lower, upper = effects.interval()
    sure = np.full(heads, UNSURE)
    effects_of_heads = {"": effects.values, "_lower": lower, "_upper": upper, "_p_corrected": sure}
    per_table = LAYERS * HEADS
    needs = [
        need
        for first in range(0, heads - per_table, per_table)
        for need in read_needs(
            add_need(
                make_table(),
                make_effects(
                    [[{end: each[first + n] for end, each in effects_of_heads.items()} for n in range(per_table)]]
                ),
            )
        )
    ]
    assert least <= needs.count(NOT_NEEDED) / len(needs) <= most


def test_of_a_loss_in_other_units_no_head_is_called_unneeded() -> None:
    effects = make_effects([[head for _, head in NEED_OF_A_WAY.values()]])
    effects.attrs["metrics"] = effects.attrs["metrics"].replace('"nats"', '"squared units of the label"')
    table = add_need(make_table(), effects)
    needs = dict(zip(NEED_OF_A_WAY, read_needs(table), strict=True))
    assert needs["the same, surely"] == NOT_SHOWN
    assert needs["worse, beyond placebos"] == NEEDED
    assert "effects_bound" not in table.attrs


def test_a_part_of_a_table_is_refused() -> None:
    effects = make_effects([[head for _, head in NEED_OF_A_WAY.values()]])
    for part in (effects.isel(how=0), effects.sel(subset="all")):
        with pytest.raises(TableError, match=r"^t is a part of a table of effects; give the whole"):
            check_effects(part, "t")


def test_the_run_with_the_weights_of_the_model_is_taken() -> None:
    heads = [head for _, head in NEED_OF_A_WAY.values()]
    runs = [{"name": "seed-1", "weights_sha256": "a"}, {"name": "seed-2", "weights_sha256": "b"}]
    both = xr.concat([make_effects([heads]), make_effects([heads[::-1]])], xr.Variable("run", ["seed-1", "seed-2"]))
    both = both.assign({name: both[name].isel(run=0) for name in ("examples", "texts")})
    both = both.assign_attrs(runs=json.dumps(runs))
    table = add_need(make_table(), match_effects(both, {"model": "folder/seed-2", "weights_sha256": "b"}))
    assert read_needs(table) == [need for need, _ in NEED_OF_A_WAY.values()][::-1]
    with pytest.raises(TableError) as refused:
        match_effects(both, {"model": "minilm", "weights_sha256": "w"})
    assert str(refused.value).startswith(
        "the effects are those of the runs seed-1, seed-2, and minilm differs from that in its weights; give"
    )


@pytest.mark.parametrize(
    "metrics", ["[", "7", "[7]", '[{"name": "loss"}]', '[{"name": "loss", "title": "t", "units": "u", "better": 3}]']
)
def test_metrics_that_are_not_as_they_were_written_are_refused(metrics: str) -> None:
    effects = make_effects([[head for _, head in NEED_OF_A_WAY.values()]], metrics=metrics)
    with pytest.raises(TableError, match=r"the attribute metrics of the table is not as it was written"):
        check_effects(effects, "t")


@pytest.mark.parametrize(
    ("lacks", "sentence"),
    [
        (("metrics",), "t has no effects of query heads such as 3-1; run `headscope disable` on all of them"),
        (("effect_loss",), "t has no effects of query heads such as 3-1; run `headscope disable` on all of them"),
        (
            ("effect_loss_lower", "effect_loss_p_corrected"),
            "the effects in t are of a single text, which",
        ),
        (("effect_loss_placebo",), "the effects in t have no placebos, without which no head can be called needed"),
    ],
)
def test_tables_that_do_not_tell_are_refused(lacks: tuple[str, ...], sentence: str) -> None:
    effects = make_effects([[head for _, head in NEED_OF_A_WAY.values()]])
    effects = effects.drop_vars([name for name in lacks if name in effects])
    effects.attrs = {name: value for name, value in effects.attrs.items() if name not in lacks}
    with pytest.raises(TableError) as refused:
        check_effects(effects, "t")
    assert str(refused.value).startswith(sentence)
