"""The map of heads in an atlas: measured on a sample of the corpus, drawn, and left out where it is not wanted."""

import json
from pathlib import Path

import pytest
import xarray as xr

import headscope
import tiny
from headscope import heads
from headscope.errors import HeadscopeError
from headscope.reducers import HeadDistances

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    model, out = (tmp_path_factory.mktemp(name) for name in ("model", "atlas"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.view.figures.draw_atlas.list_score_figures", lambda table, score: {})
        headscope.atlas(
            tiny.save(model, "bart"), "grammar:31", out, permutations=0, map_documents=13, examples=0, figures=True,
            progress=False,
        )  # fmt: skip
    return out


def test_heads_are_compared_on_a_sample_and_mapped(folder: Path) -> None:
    table, distances = (heads.read_table(folder / name) for name in ("heads.nc", "head-distances.nc"))
    assert distances["js_distance_count"] == distances.attrs["documents"] == 13
    assert distances.attrs["part"] == "13 documents at random, seed 0"
    assert distances.attrs["corpus"] == table.attrs["corpus"] == "grammar:31"
    assert "map_documents=13" in table.attrs["call"]
    again = headscope.analyse.add_behaviours(headscope.analyse.add_head_map(table, distances))
    for name in ("head_map_x", "cluster", "cluster_silhouette", "behaviour"):
        xr.testing.assert_identical(again[name], table[name])


def test_the_map_is_drawn_and_the_behaviour_is_in_the_csv(folder: Path) -> None:
    page = (folder / "atlas.html").read_text()
    for name, title in (("head-map", "Heads that attend alike"), ("head-tree", "Heads joined by how far apart")):
        assert (folder / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert title in page
    lines = (folder / "tables" / "heads.csv").read_text().splitlines()
    columns = lines[0].split(",")
    named = {line.split(",")[columns.index("behaviour")] for line in lines[1:]}
    names = headscope.analyse.name_behaviours(heads.read_table(folder / "heads.nc")).values
    assert named == {*names.ravel()}
    assert "head-distances.nc" in json.loads((folder / "manifest.json").read_text())["sha256"]


def test_no_documents_are_no_map(tmp_path) -> None:
    out = tmp_path / "atlas"
    model = tiny.save(tmp_path / "model")
    result = headscope.atlas(model, ["a text ."], out, map_documents=0, progress=False)
    assert "head_map_x" not in result.table
    assert "head-distances.nc" not in result.files


def test_a_single_text_has_a_map_of_unknown_stability(tmp_path) -> None:
    model = tiny.save(tmp_path / "model")
    result = headscope.atlas(model, ["a text , the same ."], tmp_path / "atlas", progress=False)
    assert result.table["head_map_x"].notnull().all()
    assert result.table["cluster_stability"].isnull()


def test_a_reducer_of_distances_that_is_named_is_measured_on_the_whole_corpus(tmp_path) -> None:
    model, exact = tiny.save(tmp_path / "model"), HeadDistances()
    result = headscope.atlas(
        model, "grammar:7", tmp_path / "a", reducers=exact, permutations=0, examples=0, progress=False
    )
    assert result.table["js_distance_count"] == 7
    assert "head_map_x" in result.table
    assert "head-distances.nc" not in result.files


def test_a_negative_number_of_documents_is_refused_at_once(tmp_path) -> None:
    with pytest.raises(HeadscopeError) as refused:
        headscope.atlas("minilm", "grammar:9", tmp_path / "atlas", map_documents=-3, progress=False)
    assert str(refused.value) == "`map_documents` is -3; give 0 or more."
    assert not (tmp_path / "atlas").exists()
