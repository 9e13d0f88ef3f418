"""`headscope measure` as a request: what a table records of it, what it is again, and the choices of its options."""

from pathlib import Path

import pytest
import xarray as xr

import headscope
import tiny
import tuned
from headscope.capture.model.model_names import OWN_HEAD, TASKS
from headscope.capture.passes.views import VIEWS
from headscope.commands.measure.request import Measure, TypedMeasure
from headscope.commands.recorded_request import read_request, restore_request
from headscope.errors import TableError
from headscope.reducers import Surface
from headscope.runner.row_sample import LEAST_ROWS


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("model"))


def assert_same(again: xr.Dataset, table: xr.Dataset) -> None:
    """The same to the last bit, attributes too."""
    xr.testing.assert_identical(again.assign_attrs(created=""), table.assign_attrs(created=""))


def test_the_table_records_the_request_that_gives_it_again(run, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "heads.nc"
    options = (
        "--sample",
        17,
        "--seed",
        5,
        "--max-tokens",
        11,
        "--cut",
        "--permutations",
        7,
        "--replicate",
        "grammar:19:3",
    )
    code, _, complaint = run("measure", model, "grammar:23", "-r", "relations", *options, "-o", out)
    assert code == 0, complaint
    table = headscope.read_table(out)
    request = read_request(table.attrs["request"])
    assert request["command"] == "measure"
    expected = {"sample": 17, "seed": 5, "cut": True, "reducers": ["relations"]}
    assert {name: request[name] for name in expected} == expected
    assert not {"out", "resume", "device", "engine", "workers", "progress", "shard", "explain"} & request.keys()
    assert_same(restore_request(Measure, table.attrs["request"]).run(), table)


def test_what_was_in_memory_is_named_and_given_again(model: Path) -> None:
    texts, reducers = ["the old dog walked by the red house ."] * 13, [Surface(offsets=(-3,))]
    table = headscope.measure(headscope.load(str(model)), texts, reducers)
    request = read_request(table.attrs["request"])
    assert request["model"] == {"in_memory": str(model)}
    assert request["corpus"] == {"in_memory": "documents in memory"}
    assert request["reducers"] == [{"in_memory": "surface"}]
    given = {"model": str(model), "corpus": texts}
    with pytest.raises(TableError, match=r"made with .*surface.* in memory as `reducers`; give it again"):
        restore_request(Measure, table.attrs["request"], **given)
    again = restore_request(Measure, table.attrs["request"], **given, reducers=reducers).run()
    assert_same(again.assign_attrs(request=""), table.assign_attrs(request=""))


def test_runs_in_memory_are_named_by_their_folder(tmp_path: Path) -> None:
    runs = tuned.make_runs(tmp_path, seeds=(3,))
    table = headscope.measure(runs.model, "grammar:17", "surface", runs=runs)
    assert read_request(table.attrs["request"])["runs"] == {"in_memory": str(runs.folder)}
    again = restore_request(Measure, table.attrs["request"], runs=runs.folder).run()
    assert_same(again.assign_attrs(request=""), table.assign_attrs(request=""))


def test_the_choices_are_those_of_what_is_measured() -> None:
    options = Measure.options
    assert options["view"].choices == tuple(VIEWS)
    assert options["task"].choices == (*TASKS, OWN_HEAD)
    assert options["sample_queries"].at_least == LEAST_ROWS


def test_the_terminal_has_the_options_of_the_functions_and_its_own() -> None:
    own = {"shard", "explain", "whole"}
    assert set(TypedMeasure.options) == set(Measure.options) | own
    for name in Measure.options.keys() - {"out"}:
        assert TypedMeasure.options[name] == Measure.options[name]
