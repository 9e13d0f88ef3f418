"""Average maps in an atlas: measured by default, kept in the head tables, and in nothing that is read as a list."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import xarray as xr
from rich.console import Console

import headscope
import tiny
from headscope import heads
from headscope.reducers import AverageMap
from headscope.view.figures.draw_atlas import list_figures
from headscope.view.table_frames import make_frames
from headscope.view.table_report import print_table

pytestmark = pytest.mark.full

ATTENTION_TYPES = {"bert": 1, "gpt2": 1, "bart": 3}
MAPS = ["average_map", "query_bin", "key_bin"]


def print_plain(table: xr.Dataset) -> str:
    printed = io.StringIO()
    print_table(table, Console(file=printed, width=140), whole=True)
    return printed.getvalue()


WRITTEN: dict[str, Callable[[xr.Dataset], Any]] = {
    "terminal": print_plain,
    "tables": lambda table: {name: frame.to_csv() for name, frame in make_frames(table).items()},
    "figures": lambda table: {title: name for title, (name, _) in list_figures(table).items()},
}


@pytest.fixture(scope="module", params=sorted(ATTENTION_TYPES))
def atlas(request, tmp_path_factory) -> tuple[str, Path, xr.Dataset]:
    model, out = (tmp_path_factory.mktemp(name) for name in ("model", "atlas"))
    headscope.atlas(
        tiny.save(model, request.param), "grammar:31", out, permutations=0, map_documents=0, examples=0,
        progress=False,
    )  # fmt: skip
    return request.param, out, heads.read_table(out / "heads.nc")


def test_every_head_has_an_average_map(atlas) -> None:
    family, out, table = atlas
    maps = table["average_map"]
    assert maps.sizes["query_bin"] == maps.sizes["key_bin"] == 16
    assert maps.sizes.get("attention_type", 1) == ATTENTION_TYPES[family]
    # A decoder with fewer or more layers than the encoder leaves the others NaN.
    present = table["entropy"].notnull()
    assert present.any()
    rows = maps.sum("key_bin").where(maps.notnull().any("key_bin"))
    assert (abs(rows.where(present, 1) - 1).fillna(0) < 1e-5).all()
    assert (maps.notnull().any(["query_bin", "key_bin"]) == present).all()
    with xr.open_dataset(out / "heads.nc", engine="h5netcdf") as opened:
        xr.testing.assert_identical(opened["average_map"].load(), maps)


@pytest.mark.parametrize("where", WRITTEN)
def test_neither_terminal_nor_tables_nor_figures_show_them(atlas, where: str) -> None:
    *_, table = atlas
    assert WRITTEN[where](table) == WRITTEN[where](table.drop_vars(MAPS))


def test_no_file_of_the_atlas_has_a_column_of_them(atlas) -> None:
    explained = pd.read_csv(atlas[1] / "tables" / "columns.csv")
    assert not {*MAPS} & {*explained["column"], *explained["table"]}
    assert not [path for path in (atlas[1] / "tables").iterdir() if "bin" in path.name]


def test_an_own_average_map_takes_its_place(tmp_path) -> None:
    result = headscope.atlas(
        tiny.save(tmp_path / "model"), "grammar:31", tmp_path / "atlas", permutations=0, map_documents=0, examples=0,
        reducers=AverageMap(5), progress=False,
    )  # fmt: skip
    assert result.table.sizes["query_bin"] == result.table.sizes["key_bin"] == 5
