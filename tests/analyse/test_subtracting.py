"""Tables are subtracted as numbers are: what is a label is a coordinate, in memory and in files of any age."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

import headscope
import planted
from headscope.analyse.report import await_untrained
from headscope.capture.model.model import Model

RULES = planted.RULES
LABELS = {"reported_direction", "lift_rival", "reported_verdict"}


def measure(model: Model, count: int, seed: int) -> xr.Dataset:
    return headscope.measure(model, planted.documents(count, seed), ["surface", "relations"], permutations=19)


@pytest.fixture(scope="module")
def tables() -> list[xr.Dataset]:
    """Two models that differ in a head, on the same texts."""
    models = [planted.plant(rules) for rules in (RULES, {**RULES, (2, 3): planted.previous})]
    return [headscope.analyse.add_replication(measure(model, 61, 0), measure(model, 47, 1)) for model in models]


def list_labels(table: xr.Dataset) -> set[str]:
    return {str(name) for name, values in table.variables.items() if values.dtype.kind not in "iufb"} - {*table.dims}


def test_a_difference_of_xarray_is_that_of_each_number(tables: list[xr.Dataset]) -> None:
    before, after = tables
    difference = after - before
    assert {*difference.data_vars} == {*before.data_vars}
    for name, values in difference.data_vars.items():
        np.testing.assert_array_equal(values, after[name].values - before[name].values)
    assert float(abs(difference.relation_accuracy.sel(layer=2, head=3)).max()) > 0.1
    assert float(abs(difference.mass_self.sel(layer=1)).max()) == 0


@pytest.mark.parametrize(
    "change",
    [lambda table: table, await_untrained, headscope.analyse.shortlist_heads],
    ids=["replicated", "awaited", "shortlist"],
)
def test_labels_are_coordinates(tables: list[xr.Dataset], change: Callable[[xr.Dataset], xr.Dataset]) -> None:
    table = change(tables[0])
    labels = list_labels(table)
    assert labels > LABELS
    assert labels <= {*table.coords}
    assert all(table[name].attrs["long_name"] and table[name].attrs["units"] for name in labels)


def test_labels_come_back_from_a_file_and_from_one_of_an_earlier_version(tables: list[xr.Dataset], tmp_path) -> None:
    table = tables[0]
    labels = list_labels(table)
    read = headscope.read_table(headscope.write_table(table, tmp_path / "new.nc"))
    older = headscope.read_table(headscope.write_table(table.reset_coords(labels), tmp_path / "old.nc"))
    for each in (read, older):
        assert labels <= {*each.coords}
        xr.testing.assert_equal(each, table)
        assert (each - tables[1]).equals(table - tables[1])


def test_a_data_frame_of_numbers_has_no_labels_and_that_of_the_report_has_them(tables: list[xr.Dataset]) -> None:
    heads = headscope.to_frame(tables[0], "relations")
    assert not {*heads.columns} & LABELS
    report = headscope.to_frame(tables[0], "relation")
    assert {*report.columns} >= LABELS
    verdicts = headscope.to_frame(tables[0], "reported_verdict")
    assert verdicts.columns.tolist() == ["relation", "reported_verdict"]
    assert verdicts.reported_verdict.tolist() == tables[0].reported_verdict.values.tolist()
