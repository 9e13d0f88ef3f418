"""Head tables that were damaged or crafted are refused in a sentence, before HDF5 makes room for what they claim."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

from analyse.tables import RELATIONS, head_table, texts
from headscope import heads
from headscope.errors import HeadscopeError, TableError

CHECKSUM = 48
"""Bytes: 16 that say what it is, and 32 of the SHA-256."""

DAMAGED = "{} is damaged or incomplete; copy it again, or measure again."
CHANGED = (
    "{} does not have the bytes that were written, as its checksum says; copy it again or measure again or, if a "
    "program has changed it, let that write a new file."
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return heads.write_table(head_table(texts(np.random.default_rng(89)), RELATIONS), tmp_path / "heads.nc")


@pytest.fixture
def open_path(path: Path) -> Path:
    """The file without its checksum, as another program writes it."""
    path.write_bytes(path.read_bytes()[:-CHECKSUM])
    return path


def refusal(path: Path) -> str:
    with pytest.raises(HeadscopeError) as refused:
        heads.read_table(path)
    return str(refused.value)


def test_every_bit_is_checked(path: Path) -> None:
    content = path.read_bytes()
    for place in range(0, len(content) - CHECKSUM, len(content) // 29):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        assert refusal(path) in (
            CHANGED.format(path),
            f"{path} is not a netCDF-4 file; a head table is written by `headscope atlas`, `headscope measure` or "
            "`headscope merge`.",
        )


def test_the_checksum_is_behind_the_file_that_others_read(path: Path) -> None:
    sealed = path.read_bytes()
    table = heads.read_table(path)
    with h5py.File(path) as file:
        assert all(file[name].fletcher32 for name in ("relation_accuracy", "sums/fold_link"))
    path.write_bytes(sealed[:-CHECKSUM])
    xr.testing.assert_identical(heads.read_table(path), table)
    np.testing.assert_array_equal(xr.open_dataset(path, engine="h5netcdf")["relation_count"], table["relation_count"])


def test_a_table_that_another_program_has_written_again_is_read(open_path: Path) -> None:
    table = heads.read_table(open_path)
    with h5py.File(open_path, "r+") as file:
        file.attrs["note"] = "mine"
    assert heads.read_table(open_path).attrs == {**table.attrs, "note": "mine"}


def test_what_a_file_cannot_hold_is_refused_by_its_sizes(open_path: Path) -> None:
    with h5py.File(open_path, "r+") as file:
        del file["relation_count"]
        file.create_dataset("relation_count", (10**10,), dtype="f8", chunks=True)
    size = open_path.stat().st_size
    assert refusal(open_path) == (
        f"{open_path} claims to hold 80.0 GB, which {size:,} bytes cannot; copy it again, or measure again."
    )


def set_attribute(key: str, value: Any, item: str = "/") -> Callable[[h5py.File], None]:
    return lambda file: file[item].attrs.__setitem__(key, value)


def replace_array(name: str, values: Any) -> Callable[[h5py.File], None]:
    def replace(file: h5py.File) -> None:
        del file[name]
        file[name] = values

    return replace


CRAFTED = {
    "no list of variables": lambda file: file["sums"].attrs.pop("variables"),
    "a list that is no JSON": set_attribute("variables", "[", "sums"),
    "a list of others": set_attribute("variables", '["a"]', "sums"),
    "a list without one": set_attribute("variables", '["fold_link"]', "sums"),
    "an array in place of the sums": replace_array("sums", np.zeros(3)),
    "a format that is no number": set_attribute("headscope_format", "four"),
    "a model that is a number": set_attribute("model", 7),
    "documents that are text": set_attribute("documents", "many"),
    "skipped that is no JSON": set_attribute("skipped", "{"),
    "scores that are deep": set_attribute("scores", "[" * 5000 + "]" * 5000),
    "runs that are numbers": set_attribute("runs", "[3]"),
    "units that are numbers": set_attribute("units", 7, "relation_accuracy"),
    "text in place of numbers": replace_array("relation_accuracy", np.full((3, 5, 7, 2), b"a")),
    "a link to another file": replace_array("relation_count", h5py.ExternalLink("/dev/zero", "/")),
    "a link to nothing": replace_array("relation_count", h5py.SoftLink("/none")),
    "a group within": lambda file: file.create_group("sums/more"),
}


@pytest.mark.parametrize("case", CRAFTED)
def test_what_is_crafted_is_refused(open_path: Path, case: str) -> None:
    with h5py.File(open_path, "r+") as file:
        CRAFTED[case](file)
    assert refusal(open_path) == DAMAGED.format(open_path)


def test_no_file_at_all(tmp_path: Path) -> None:
    pipe = tmp_path / "heads.nc"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        assert refusal(path) == f"{path} is a device or a pipe; copy what it gives to a file, and name that file."
    with pytest.raises(HeadscopeError, match="cannot be read"):
        heads.read_table("a" * 300)
    with pytest.raises(TableError, match="there is no file"):
        heads.read_table("a\0b")
