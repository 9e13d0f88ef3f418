"""A head table of any reducer as data frames: for each head, for each row of a score, and for each variable."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import headscope
import rivals
import tiny
from analyse import run_tables
from headscope.analyse import assess
from headscope.capture.model.model import Model
from headscope.errors import TableError
from headscope.runner import measure
from headscope.score import read_scores
from headscope.view.table_frames import make_frames
from plain_reducers import OF_ONE_MODEL
from view import tables

DOCUMENTS = rivals.add_rivals(tiny.documents_with_roles(13))
HEADS = [(layer, head) for layer in (1, 2) for head in range(1, 6)]


@cache
def measured(name: str) -> xr.Dataset:
    return assess(measure(Model.from_module(*tiny.make("gpt2"), name="gpt2"), DOCUMENTS, [name]))


@pytest.mark.parametrize("name", OF_ONE_MODEL)
def test_a_table_of_any_reducer_has_a_row_for_each_head(name: str) -> None:
    frame = headscope.to_frame(measured(name))
    assert [*zip(frame["layer"], frame["head"], strict=True)] == HEADS
    assert frame.columns.is_unique
    pd.testing.assert_frame_equal(headscope.to_frame(measured(name), "heads")[[*frame.columns][:2]], frame.iloc[:, :2])


@pytest.mark.parametrize("name", OF_ONE_MODEL)
def test_all_that_a_table_of_any_reducer_has_is_a_frame(name: str) -> None:
    table = measured(name)
    rows = [score.rows for score in read_scores(table) if score.row_dimension(table)]
    for part in (*table.data_vars, *make_frames(table), *rows):
        frame = headscope.to_frame(table, str(part))
        assert isinstance(frame, pd.DataFrame), part
        if part in table.data_vars:
            assert frame[part].tolist() == pytest.approx(flatten(table[part]), nan_ok=True), part


def flatten(values: xr.DataArray) -> list:
    """The values that are there, in their order."""
    flat = values.values.ravel()
    return flat.tolist() if values.dtype.kind not in "f" or not values.dims else flat[~np.isnan(flat)].tolist()


def test_heads_have_a_column_for_each_row_of_a_score_and_each_label() -> None:
    table = tables.head_table()
    frame = headscope.to_frame(table).set_index(["layer", "head"])
    best = table["relation_accuracy"].sel(relation="obj").max("direction")
    assert frame["relation:obj"].to_dict() == best.to_series().to_dict()
    assert frame["mass_cls"].to_dict() == table["mass_cls"].to_series().to_dict()
    assert {f"relation:{relation}" for relation in table["relation"].values} < {*frame.columns}
    apart = measured("surface")
    frame = headscope.to_frame(apart).set_index(["layer", "head"])
    far = apart["mass_distance"].isel(distance=0)
    assert frame[f"mass_distance:{int(far.distance)}"].to_dict() == pytest.approx(far.to_series().to_dict())


def test_heads_of_attention_types_and_of_runs_are_told_apart() -> None:
    frame = headscope.to_frame(tables.head_table(attention_types=True))
    assert not frame.duplicated(["attention_type", "layer", "head"]).any()
    assert frame.groupby("attention_type")["layer"].max().to_dict() == tables.STACKS
    draw = np.random.default_rng(3)
    runs = run_tables.simulate(draw, draw.beta(2, 6, (2, 3, 5)), seeds=[1, 2])
    frame = headscope.to_frame(runs)
    assert len(frame) == 2 * 3 * 5
    chosen = frame.set_index(["run", "layer", "head"])["scope_f1"]
    assert chosen["seed-2", 3, 4] == runs["scope_f1"].sel(run="seed-2", layer=3, head=4).item()


def test_relations_have_their_count_and_their_name() -> None:
    table = tables.head_table()
    frame = headscope.to_frame(table, "relations")
    assert [*frame.columns[:6]] == ["layer", "head", "direction", "relation", "relation_name", "relation_count"]
    counts = table["relation_count"].to_series()
    assert (frame["relation_count"] == frame["relation"].map(counts)).all()
    names = frame.set_index(["relation", "direction"])["relation_name"]
    assert {*names["obj", "dependent_to_head"]} == {"object → its verb"}
    assert {*names["obj", "head_to_dependent"]} == {"verb → its object"}
    assert len(frame) == table["relation_accuracy"].notnull().sum()


def test_a_single_number_is_a_frame_of_one_row() -> None:
    table = measured("scope")
    frame = headscope.to_frame(table, "scope_count")
    assert frame.to_dict("records") == [{"scope_count": table["scope_count"].item()}]
    pd.testing.assert_frame_equal(headscope.to_frame(table, "scopes of negation"), headscope.to_frame(table, "heads"))


def test_what_is_not_there_is_refused_with_what_comes_near() -> None:
    table = tables.head_table()
    with pytest.raises(
        TableError, match=r"^the table has nothing of the name 'relatons' \(did you mean relations\?\);"
    ):
        headscope.to_frame(table, "relatons")
    with pytest.raises(TableError, match=r"'mass_cl' \(did you mean mass_cls\?\); there are relations, heads"):
        headscope.to_frame(table, "mass_cl")
    with pytest.raises(TableError, match=r"^a head table was wanted, and str came; headscope\.read_table reads one\.$"):
        headscope.to_frame("heads.nc", "relations")


# ------------------------------------------------------- written by xarray


@pytest.mark.parametrize("name", ["surface", "relations", "coreference", "scope"])
def test_what_xarray_writes_is_read(name: str, tmp_path: Path) -> None:
    measured(name).to_netcdf(tmp_path / "heads.nc", engine="h5netcdf")
    xr.testing.assert_identical(headscope.read_table(tmp_path / "heads.nc"), measured(name))
    again = headscope.read_table(headscope.write_table(measured(name), tmp_path / "own.nc"))
    again.to_netcdf(tmp_path / "again.nc", engine="h5netcdf")
    xr.testing.assert_identical(headscope.read_table(tmp_path / "again.nc"), measured(name))


def test_what_xarray_writes_is_read_by_the_version_alone_that_measured_it(tmp_path: Path) -> None:
    old = measured("surface").assign_attrs(versions='{"headscope": "0.0.9"}')
    old.to_netcdf(tmp_path / "heads.nc", engine="h5netcdf")
    with pytest.raises(TableError, match=r"is a table of headscope 0\.0\.9 that xarray wrote, and this is headscope"):
        headscope.read_table(tmp_path / "heads.nc")
    for versions in ("{}", "[]", '"headscope"', "{"):
        old.assign_attrs(versions=versions).to_netcdf(tmp_path / "heads.nc", engine="h5netcdf")
        with pytest.raises(TableError, match=r"has no attribute headscope_format\.$|is damaged or incomplete"):
            headscope.read_table(tmp_path / "heads.nc")
