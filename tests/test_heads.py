"""Head tables: what is refused, what survives the disk, and what heads are called."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import h5py
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from analyse.tables import RELATIONS, head_table, stacked, texts, two_stacks
from headscope import heads
from headscope.analyse import add_intervals, add_report
from headscope.errors import HeadscopeError, TableError, quote

KNOWN = (
    "layer, head, layer_other, head_other, layer_before, head_before, half, attention_type, relation, direction, "
    "offset, distance, match, back, nearby, answer, role, needle, occurrence, decoder_step, shift, sink, beside, "
    "token_offset, class, token_class, mention, "
    "target, length, permutation, run, group, fold, side, word_class, before, behind, rule, end, how, "
    "how_other, subset, key_value_head, pair, set, set_other, part, slot, step, merge, probe, "
    "baseline, controlled, seed, pattern, kept, shape, query_bin, key_bin, side_special, hidden_layer, regressor, "
    "regressor_other"
)


@pytest.fixture
def table() -> xr.Dataset:
    """Floats, NaN, integers of two widths and strings, some of them empty."""
    made = head_table(texts(np.random.default_rng(89)), RELATIONS)
    reported = add_report(add_intervals(made), made, minimum=20)
    assert {values.dtype.kind for values in reported.variables.values()} == set("fiU")
    assert "" in reported["reported_direction"].values
    assert reported["heldout_accuracy"].isnull().any()
    return reported


@pytest.fixture
def umask():
    """Sets the umask, and sets it back."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


# ---------------------------------------------------------------- on disk


def test_what_is_read_is_what_was_written(table: xr.Dataset, tmp_path: Path) -> None:
    table = table.assign_attrs(seed=7, versions='{"numpy": "2"}', naïve="é")
    path = tmp_path / "heads.nc"
    assert heads.write_table(table, path) == path
    again = heads.read_table(str(path))
    xr.testing.assert_identical(again, table)
    assert list(again.data_vars) == list(table.data_vars)
    assert {name: values.dtype for name, values in again.variables.items()} == {
        name: values.dtype for name, values in table.variables.items()
    }
    assert list(tmp_path.iterdir()) == [path]


def test_a_table_of_stacks_survives_too(tmp_path: Path) -> None:
    encoder, decoder = two_stacks(97)
    table = add_report(stacked({"encoder": encoder, "decoder": decoder}), minimum=1)
    xr.testing.assert_identical(
        heads.read_table(heads.write_table(table, tmp_path / "new" / "folder" / "heads.nc")), table
    )


def test_a_table_can_be_written_over_the_file_that_it_was_read_from(table: xr.Dataset, tmp_path: Path) -> None:
    path = heads.write_table(table, tmp_path / "heads.nc")
    changed = heads.read_table(path).assign_attrs(seed=11)
    heads.write_table(changed, path)
    xr.testing.assert_identical(heads.read_table(path), changed)


def test_the_file_is_netcdf_that_others_can_read(table: xr.Dataset, tmp_path: Path) -> None:
    heads.write_table(table, tmp_path / "heads.nc")
    with h5py.File(tmp_path / "heads.nc") as file:
        assert file.attrs["headscope_format"] == 4
        np.testing.assert_array_equal(file["sums/fold_link"][:], table["fold_link"].values)
        assert file["sums/fold_link"].attrs["units"] == "1"
        assert [scale[0].name for scale in file["sums/fold_link"].dims] == ["/relation", "/sums/fold"]
        assert [scale[0].name for scale in file["reported_layer"].dims] == ["/relation"]


def test_what_is_not_by_fold_is_a_table_of_its_own(table: xr.Dataset, tmp_path: Path) -> None:
    path = heads.write_table(table, tmp_path / "heads.nc")
    with xr.open_dataset(path, engine="h5netcdf") as opened:
        values = opened.load()
    assert "fold" not in values.dims
    assert not [name for name in values.data_vars if str(name).startswith("fold_")]
    frame = values[["relation_accuracy", "reported_layer"]].to_dataframe()
    assert len(frame) == table["relation_accuracy"].size
    xr.testing.assert_identical(values.drop_attrs(deep=False), table[list(values.data_vars)].drop_attrs(deep=False))


def test_a_file_without_its_sums_is_read(table: xr.Dataset, tmp_path: Path) -> None:
    path = heads.write_table(table, tmp_path / "heads.nc")
    with h5py.File(path, "a") as file:
        del file["sums"]
    values = heads.read_table(path)
    assert "relation_accuracy" in values
    assert "fold" not in values.dims


def test_one_head_is_chosen_by_its_name(table: xr.Dataset) -> None:
    xr.testing.assert_identical(heads.head(table, "3-5"), table.sel(layer=3, head=5))
    with pytest.raises(TableError, match=r"^there is no head 17-1; the model has "):
        heads.head(table, "17-1")


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600), (0o002, 0o664)])
def test_the_file_is_as_open_as_the_umask_says(table: xr.Dataset, tmp_path: Path, umask: Any, mask, mode) -> None:
    umask(mask)
    path = heads.write_table(table, tmp_path / "heads.nc")
    assert path.stat().st_mode & 0o777 == mode
    assert umask(0o022) == mask  # it is left as it was found


def test_a_table_that_is_refused_leaves_the_old_file_alone(table: xr.Dataset, tmp_path: Path) -> None:
    path = heads.write_table(table, tmp_path / "heads.nc")
    before = path.read_bytes()
    with pytest.raises(TableError):
        heads.write_table(table.drop_attrs(deep=False), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file_and_nothing_else(table: xr.Dataset, tmp_path: Path, monkeypatch) -> None:
    path = heads.write_table(table, tmp_path / "heads.nc")
    before = path.read_bytes()

    def fail(written: memoryview) -> NoReturn:
        begun.extend(file for file in tmp_path.iterdir() if file != path)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    begun: list[Path] = []
    # Its checksum is taken when all but this has been written.
    monkeypatch.setattr(heads, "hashlib", SimpleNamespace(sha256=fail))
    with pytest.raises(HeadscopeError) as refused:
        heads.write_table(table.assign_attrs(seed=13), path)
    assert str(refused.value) == (
        f"{path} could not be written (No space left on device); free some space or choose another place."
    )
    assert len(begun) == 1
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


FULL = """
import resource, sys
from headscope import heads
from headscope.errors import HeadscopeError
table = heads.read_table(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    heads.write_table(table.assign_attrs(seed=17), sys.argv[1])
except HeadscopeError as error:
    print(error)
"""
"""A process that may write no file beyond a size: what a full disk does to it, without a full disk."""


@pytest.mark.full
@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="the system cannot limit the size of a file")
@pytest.mark.parametrize("percent", [0, 3, 50, 97])
def test_a_disk_that_is_really_full(table: xr.Dataset, tmp_path: Path, percent: int) -> None:
    path = heads.write_table(table, tmp_path / "heads.nc")
    before = path.read_bytes()
    limit = str(len(before) * percent // 100)
    # Python ignores SIGXFSZ, so that the write is an OSError.
    done = subprocess.run([sys.executable, "-c", FULL, str(path), limit], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == (
        f"{path} could not be written ({os.strerror(errno.EFBIG)}); free some space or choose another place.\n"
    )
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


# ------------------------------------------------------- what is not read


def assert_not_read(path: Path, sentence: str) -> None:
    with pytest.raises(TableError) as refused:
        heads.read_table(path)
    assert str(refused.value) == sentence


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "heads.nc"
    assert_not_read(
        path,
        f"there is no file {path}; a head table is written by `headscope atlas`, `headscope measure` or "
        "`headscope merge`.",
    )


@pytest.mark.parametrize("content", [b"", b"layer,head\n1,1\n", b"CDF\x01" + bytes(100)])
def test_a_file_that_is_not_netcdf_4(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "heads.nc"
    path.write_bytes(content)
    assert_not_read(
        path,
        f"{path} is not a netCDF-4 file; a head table is written by `headscope atlas`, `headscope measure` or "
        "`headscope merge`.",
    )


def test_netcdf_that_is_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "rain.nc"
    xr.Dataset({"rain": ("day", np.arange(3.0))}).to_netcdf(path, engine="h5netcdf")
    assert_not_read(path, f"{path} is a netCDF file but not a head table; it has no attribute headscope_format.")


def test_hdf5_that_is_not_netcdf(tmp_path: Path) -> None:
    path = tmp_path / "plain.h5"
    with h5py.File(path, "w") as file:
        file["rain"] = np.arange(3)
    assert_not_read(path, f"{path} is a netCDF file but not a head table; it has no attribute headscope_format.")


@pytest.mark.parametrize("version", [0, 1, 2, 101])
def test_another_format(table: xr.Dataset, tmp_path: Path, version: int) -> None:
    path = tmp_path / "heads.nc"
    table.assign_attrs(headscope_format=version).to_netcdf(path, engine="h5netcdf")
    assert_not_read(
        path,
        f"{path} has format {version}, and this headscope reads format 4; measure again, or use the version that "
        "wrote it.",
    )


def test_a_file_with_the_old_names_of_dimensions_is_refused_for_its_format(table: xr.Dataset, tmp_path: Path) -> None:
    """As it was written before: ``stack`` for the attention type, and ``draw`` for the permutation."""
    path = tmp_path / "heads.nc"
    old = table.expand_dims(stack=["encoder", "decoder"], draw=[0, 1, 2])
    old.assign_attrs(headscope_format=1).to_netcdf(path, engine="h5netcdf")
    assert_not_read(
        path,
        f"{path} has format 1, and this headscope reads format 4; measure again, or use the version that wrote it.",
    )


def test_a_file_that_was_cut_off(table: xr.Dataset, tmp_path: Path) -> None:
    path = heads.write_table(table, tmp_path / "heads.nc")
    path.write_bytes(path.read_bytes()[:-1000])
    assert_not_read(path, f"{path} is damaged or incomplete; copy it again, or measure again.")


def test_a_file_of_ours_that_no_longer_follows_the_schema(table: xr.Dataset, tmp_path: Path) -> None:
    path = tmp_path / "heads.nc"
    table.drop_attrs(deep=False).assign_attrs(headscope_format=heads.FORMAT).to_netcdf(path, engine="h5netcdf")
    assert_not_read(
        path,
        "the head table does not say where it came from: it lacks model, weights_sha256, corpus, corpus_sha256, "
        "documents, tokens, skipped, call.",
    )


# ------------------------------------------------------------- the schema


def assert_refused(table: xr.Dataset, sentence: str) -> None:
    with pytest.raises(TableError) as refused:
        heads.check(table)
    assert str(refused.value) == sentence


def test_a_table_that_follows_the_schema_is_returned(table: xr.Dataset) -> None:
    assert heads.check(table) is table


def test_an_unknown_dimension(table: xr.Dataset) -> None:
    other = table.rename(direction="way")
    known = f"known are {KNOWN}, and any whose coordinate has an attribute long_name."
    assert_refused(other, f"the head table has a dimension 'way'; {known}")
    described = other.assign_coords(way=other["way"].assign_attrs(long_name="where a link leads"))
    assert heads.check(described) is described


@pytest.mark.parametrize("dim", ["layer", "head"])
def test_no_layers_or_no_heads(table: xr.Dataset, dim: str) -> None:
    sentence = f"the head table has no coordinate {dim!r}; every head table is indexed by layer and head."
    assert_refused(table.drop_vars(dim), sentence)
    assert_refused(table.isel({dim: 0}, drop=True), sentence)


@pytest.mark.parametrize("dim", ["layer", "head"])
def test_a_single_layer_or_head_is_not_a_table(table: xr.Dataset, dim: str) -> None:
    # It has the coordinate, but not the dimension.
    assert_refused(table.sel({dim: 2}), f"the coordinate {dim!r} of the head table must count 1, 2, 3 ...; it is 2.")


@pytest.mark.parametrize("layers", [[0, 1, 2], [1, 2, 4], [3, 2, 1], [1.5, 2.5, 3.5]])
def test_layers_that_do_not_count_from_1(table: xr.Dataset, layers: list) -> None:
    assert_refused(
        table.assign_coords(layer=layers),
        f"the coordinate 'layer' of the head table must count 1, 2, 3 ...; it is {np.array(layers)}.",
    )


def test_heads_that_do_not_count_from_1(table: xr.Dataset) -> None:
    assert_refused(
        table.isel(head=[1, 2]), "the coordinate 'head' of the head table must count 1, 2, 3 ...; it is [2 3]."
    )


@pytest.mark.parametrize("missing", [["units"], ["source"], ["long_name"], ["units", "source", "long_name"]])
def test_a_number_without_a_unit_or_a_source(table: xr.Dataset, missing: list[str]) -> None:
    sentence = f"the variable 'fold_link' lacks {' and '.join(missing)}; every number states them."
    table = table.copy(deep=True)
    for key in missing:
        table["fold_link"].attrs[key] = ""  # says as little as none
    assert_refused(table, sentence)
    for key in missing:
        del table["fold_link"].attrs[key]
    assert_refused(table, sentence)


@pytest.mark.parametrize("missing", [*heads.REQUIRED_ATTRIBUTES, "corpus, documents"])
def test_a_table_that_does_not_say_where_it_came_from(table: xr.Dataset, missing: str) -> None:
    for key in missing.split(", "):
        del table.attrs[key]
    assert_refused(table, f"the head table does not say where it came from: it lacks {missing}.")


def test_a_variable_is_described() -> None:
    values = heads.variable(np.ones((3, 5)), ["layer", "head"], name="entropy", units="nats", source="section 3")
    assert values.dims == ("layer", "head")
    assert values.attrs == {"long_name": "entropy", "units": "nats", "source": "section 3"}


# --------------------------------------------------------- names of heads


def of_size(layers: int, count: int) -> xr.Dataset:
    return xr.Dataset(coords={"layer": np.arange(1, layers + 1), "head": np.arange(1, count + 1)})


@given(layers=st.integers(1, 53), count=st.integers(1, 31), data=st.data())
def test_every_head_is_found_by_its_name(layers: int, count: int, data: st.DataObject) -> None:
    layer, head = data.draw(st.integers(1, layers)), data.draw(st.integers(1, count))
    name = heads.head_name(layer, head)
    assert name == f"{layer}-{head}"
    assert heads.parse_head(name, of_size(layers, count)) == (layer, head)
    assert heads.parse_head(f" {name}\n", of_size(layers, count)) == (layer, head)
    assert heads.parse_head(f"L{layer - 1}H{head - 1}", of_size(layers, count)) == (layer, head)
    assert heads.parse_head(f" l{layer - 1}h{head - 1} ", of_size(layers, count)) == (layer, head)


def test_a_head_counted_from_0_that_the_model_does_not_have_is_named_from_1() -> None:
    with pytest.raises(TableError, match=r"^there is no head 8-12; the model has 7 layers of 11 heads, 1-1 to 7-11\.$"):
        heads.parse_head("L7H11", of_size(7, 11))


@pytest.mark.parametrize("name", ["8-12", "12-1", "0-1", "1-0", "99-99"])
def test_a_head_that_the_model_does_not_have(name: str) -> None:
    with pytest.raises(TableError) as refused:
        heads.parse_head(name, of_size(7, 11))
    assert str(refused.value) == f"there is no head {name}; the model has 7 layers of 11 heads, 1-1 to 7-11."


@pytest.mark.parametrize(
    "name",
    ["", "8", "8-", "-10", "8.10", "8-10-1", "-1-2", "L8-10", "LH", "L1 H1", "8 - 10", "8-1e1", "9" * 5000 + "-1"],
)
def test_what_is_not_a_head(name: str) -> None:
    with pytest.raises(TableError) as refused:
        heads.parse_head(name, of_size(7, 11))
    assert str(refused.value) == (
        f"{quote(name)} is not a head; write layer-head, both counted from 1, such as 1-1 or 7-11 (L0H0 counts from 0)."
    )
