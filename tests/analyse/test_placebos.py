"""An adapter against its placebos, on tables that are made by hand: the numbers, the verdicts, and what is refused."""

import json
from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from analyse.tables import ATTRIBUTES
from headscope import heads
from headscope.analyse.placebos import CHANGED, FEWEST, UNCHANGED, compare_with_placebos
from headscope.analyse.report import UNDECIDED
from headscope.analyse.uncertainty import Ratio
from headscope.errors import TableError
from headscope.score import find_score
from headscope.view.placebo_report import describe_placebo_test
from worlds.differences import make_table

LAYERS, HEADS, ROWS, FOLDS = 6, 12, 5, 64
ITEMS = np.full((ROWS, FOLDS), 3.0)
ACCURACY = [("relation_accuracy", {})]
BASE, ADAPTER = "b" * 64, "a" * 64


def make(right: np.ndarray, **attributes: str) -> xr.Dataset:
    return make_table(right, ITEMS).assign_attrs({"weights_sha256": BASE, "model": "base"} | attributes)


def make_tables(seed: int = 0, placebos: int = 19) -> tuple[xr.Dataset, xr.Dataset, xr.Dataset]:
    """A model, an adapter that changes head 3-5 in the second row, and placebos that change each head a little."""
    draw = np.random.default_rng(seed)
    right = draw.binomial(3, 0.4, (LAYERS, HEADS, ROWS, FOLDS)).astype(float)

    def change() -> np.ndarray:
        return np.clip(right + draw.choice([-1, 0, 1], right.shape, p=[0.05, 0.9, 0.05]), 0, 3)

    tuned = change()
    tuned[2, 4, 1] = 3
    about = {"adapter_of": "base", "adapter_of_sha256": f"{'f' * 64} {BASE}"}
    after = make(tuned, weights_sha256=ADAPTER, model="adapter", **about)
    of_placebo = {"weights_sha256": ADAPTER, "model": "adapter", "placebo_of": ADAPTER}
    runs = [make(change(), **of_placebo, **about) for _ in range(placebos)]
    listed = [{"name": f"placebo-{n}", "seed": n, "weights_sha256": f"{n:064}"} for n in range(placebos)]
    changing = ["relation_accuracy", "fold_correct"]
    together = xr.concat(runs, "run", data_vars=changing, coords="minimal", compat="override")
    together = together.assign_coords(run=[each["name"] for each in listed])
    return make(right), after, together.assign_attrs(runs=json.dumps(listed))


def test_the_changed_head_is_named_and_no_other() -> None:
    before, after, placebos = make_tables()
    test = compare_with_placebos(before, after, [placebos], ACCURACY)
    first = test.isel(change=0)
    assert (first["place"].item(), first["row"].item(), first["verdict"].item()) == ("3-5", "obj", CHANGED)
    assert first["p"].item() == pytest.approx(1 / 20)
    assert first["before"].item() == pytest.approx(float(before.relation_accuracy.sel(layer=3, head=5, relation="obj")))
    assert first["after"].item() == 1
    assert [*test["verdict"].values[1:]].count(UNCHANGED) >= 0.9 * (test.sizes["change"] - 1)
    levels = f"from {first['before'].item():.3f} to 1.000"
    assert describe_placebo_test(test) == (
        "This adapter changes head 3-5 more than 19 placebo adapters change any head (p = 0.05): relation accuracy "
        f"obj {levels}."
    )


def test_the_numbers_are_those_of_loops() -> None:
    before, after, placebos = make_tables(3)
    test = compare_with_placebos(before, after, [placebos], ACCURACY)
    lower, upper = Ratio.of_heads(before, find_score(before, "relation_accuracy")).interval()
    half = ((upper - lower) / 2).transpose(*before.relation_accuracy.dims).values
    tables = [after, *(placebos.isel(run=run) for run in range(placebos.sizes["run"]))]
    start = before.relation_accuracy.values
    dims = before.relation_accuracy.dims
    sizes = [abs(each.relation_accuracy.transpose(*dims).values - start) / half for each in tables]
    mean = np.mean([each.max() for each in sizes])
    np.testing.assert_allclose(test["largest"], [each.max() / mean for each in sizes[1:]])
    for place in range(0, test.sizes["change"], 29):
        row = test.isel(change=place)
        layer, head = map(int, row["place"].item().split("-"))
        index = layer - 1, head - 1, [*before.relation.values].index(row["row"].item())
        assert row["size"].item() == pytest.approx(sizes[0][index] / mean)
        larger = sum(each.max() >= sizes[0][index] * (1 - 1e-9) for each in sizes[1:])
        assert row["p"].item() == pytest.approx((1 + larger) / 20)


def test_a_placebo_in_place_of_the_adapter_is_not_named() -> None:
    before, _, placebos = make_tables(placebos=20)
    last = placebos.isel(run=19)
    test = compare_with_placebos(before, last, [placebos.isel(run=slice(19))], ACCURACY)
    assert {*test["verdict"].values} == {UNCHANGED}
    assert describe_placebo_test(test).startswith("No head is changed more than by 19 placebo adapters (p = 0.")


def test_several_scores_are_one_family() -> None:
    """One has no sums by fold, and other units."""

    def add_entropy(table: xr.Dataset) -> xr.Dataset:
        mean = 1000 * table.relation_accuracy.mean("relation")
        return table.assign(entropy=heads.variable(mean.values, mean.dims, name="e", units="nats", source="x"))

    before, after, placebos = map(add_entropy, make_tables())
    alone = compare_with_placebos(before, after, [placebos], ACCURACY)
    both = compare_with_placebos(before, after, [placebos], [*ACCURACY, ("entropy", {})])
    assert (both["largest"].values >= alone["largest"].values).all()
    assert both.isel(change=0)["place"].item() == "3-5"
    assert {*both["score"].values} == {"relation_accuracy", "entropy"}
    assert both.sizes["change"] == LAYERS * HEADS * (ROWS + 1)


def test_one_place_is_compared_alone() -> None:
    test = compare_with_placebos(*make_tables()[:2], [make_tables()[2]], [("relation_accuracy", {"relation": "det"})])
    assert {*test["row"].values} == {"det"}
    assert test.sizes["change"] == LAYERS * HEADS


def test_with_fewer_than_nineteen_nothing_is_decided() -> None:
    before, after, placebos = make_tables(placebos=18)
    test = compare_with_placebos(before, after, [placebos], ACCURACY)
    assert FEWEST == 19
    assert {*test["verdict"].values} == {UNDECIDED}
    assert describe_placebo_test(test) == (
        "Cannot decide whether this adapter changes any head more than placebos do: 18 placebo adapters can give no "
        "p-value below 0.05263; measure 19 or more."
    )


def test_tables_of_single_placebos_are_joined() -> None:
    before, after, placebos = make_tables()
    single = []
    for run in range(placebos.sizes["run"]):
        alone = placebos.isel(run=run, drop=True).assign_attrs(weights_sha256=f"{run:064}")
        del alone.attrs["runs"]
        single.append(alone)
    together, apart = (compare_with_placebos(before, after, each, ACCURACY) for each in ([placebos], single))
    xr.testing.assert_identical(together, apart)


def test_a_change_by_none_is_no_evidence() -> None:
    before, after, placebos = make_tables()
    same = after.assign(relation_accuracy=before.relation_accuracy)
    still = placebos.assign(relation_accuracy=before.relation_accuracy.expand_dims(run=placebos.run))
    test = compare_with_placebos(before, same, [still], ACCURACY)
    assert (test["p"] == 1).all()


def give_placebos(before: xr.Dataset, after: xr.Dataset, placebos: xr.Dataset) -> tuple:
    return before, placebos, placebos


def give_no_adapter(before: xr.Dataset, after: xr.Dataset, placebos: xr.Dataset) -> tuple:
    after = after.copy()
    del after.attrs["adapter_of"], after.attrs["adapter_of_sha256"]
    return before, after, placebos


def give_other_base(before: xr.Dataset, after: xr.Dataset, placebos: xr.Dataset) -> tuple:
    return before.assign_attrs(weights_sha256="9" * 64, model="another"), after, placebos


def give_no_placebos(before: xr.Dataset, after: xr.Dataset, placebos: xr.Dataset) -> tuple:
    return before, after, before


def give_other_adapter(before: xr.Dataset, after: xr.Dataset, placebos: xr.Dataset) -> tuple:
    return before, after, placebos.assign_attrs(placebo_of="7" * 64)


def give_other_texts(before: xr.Dataset, after: xr.Dataset, placebos: xr.Dataset) -> tuple:
    return before, after, placebos.assign_attrs(corpus="other.conllu", corpus_sha256="5" * 64)


def give_other_edit(before: xr.Dataset, after: xr.Dataset, placebos: xr.Dataset) -> tuple:
    return before, after, placebos.assign_attrs(edited="3-1 zeroed")


def give_one_twice(before: xr.Dataset, after: xr.Dataset, placebos: xr.Dataset) -> tuple:
    return before, after, placebos.assign_attrs(runs=placebos.attrs["runs"].replace(f"{3:064}", f"{2:064}"))


def give_other_scores(before: xr.Dataset, after: xr.Dataset, placebos: xr.Dataset) -> tuple:
    return before, after, placebos.drop_vars("relation_accuracy")


CORPUS = ATTRIBUTES["corpus"]
REFUSALS: dict[Callable, str] = {
    give_placebos: "the table after holds 19 runs, and placebos are of one adapter; give the table of one model.",
    give_no_adapter: "the table after is of 'adapter', which has no adapter, and placebos are of one; give the table "
    "of a model with an adapter.",
    give_other_base: "the adapter of the table after was trained for 'base', whose weights are not those that the "
    "table before is of ('another'); measure the model that it was trained for.",
    give_no_placebos: "the table of the placebos is of 'base', which is no placebo; measure placebos of the adapter "
    "with `headscope measure --placebos`.",
    give_other_adapter: "the table of the placebos has placebos of another adapter than that of the table after; "
    "measure placebos of 'adapter', loaded in the same way.",
    give_other_texts: f"the table of the placebos is of the corpus 'other.conllu' and the table after of {CORPUS!r}; "
    "measure both on the same corpus.",
    give_other_edit: "the table of the placebos and the table after were measured within different edits; measure both "
    "within the same ones.",
    give_one_twice: "a placebo is there twice; measure placebos with different seeds.",
    give_other_scores: "a table has no variable 'relation_accuracy'; measure the same of the model, the adapter and "
    "its placebos.",
}


@pytest.mark.parametrize("change", REFUSALS)
def test_tables_that_do_not_go_together_are_refused(change: Callable) -> None:
    before, after, placebos = change(*make_tables())
    with pytest.raises(TableError) as refused:
        compare_with_placebos(before, after, [placebos], ACCURACY)
    assert str(refused.value) == REFUSALS[change]
