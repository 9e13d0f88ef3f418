"""What the page exports: tables beside the numbers of the head table, pictures that stand alone, Python that runs."""

import csv
import io
import json
import xml.etree.ElementTree as ET
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import playwright.sync_api as playwright
import pytest
import xarray as xr
from PIL import Image

import headscope
from headscope.view.page import render_page
from view.parsed import OpenPage
from view.screen import open_tab, settle
from view.tables import head_table
from view.test_head_map import show, tabulate
from view.test_sentences import HOSTILE, ROW, TEXTS, draw, make_text, words_by_hand
from view.test_thumbnails import tabulate as tabulate_maps

SVG = "{http://www.w3.org/2000/svg}"


def export(page: playwright.Page, name: str, folder: Path) -> Path:
    open_tab(page, "export")
    with page.expect_download() as download:
        page.locator(f"#export-{name}").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def read_csv(path: Path) -> list[list[str]]:
    return [*csv.reader(io.StringIO(path.read_bytes().decode("utf-8"), newline=""))]


def test_the_grid_is_exported_as_it_is_in_the_table(open_page: OpenPage, tmp_path: Path) -> None:
    table = head_table()
    page = open_page(
        render_page(table, figures={}), address="#variable=relation:obj&direction=head_to_dependent&head=2-3"
    )
    path = export(page, "grid-csv", tmp_path)
    assert path.name == "tiny-bert-obj.csv"
    heading, *rows = read_csv(path)
    assert heading == ["layer", "head", "obj (accuracy)"]
    values = table["relation_accuracy"].sel(relation="obj", direction="head_to_dependent")
    assert len(rows) == values.size
    for layer, head, value in rows:
        assert float(value) == pytest.approx(float(values.sel(layer=int(layer), head=int(head))), rel=1e-5)


def test_the_picture_of_the_grid_stands_alone(open_page: OpenPage, tmp_path: Path) -> None:
    table = head_table()
    page = open_page(render_page(table, figures={}), address="#variable=entropy&head=2-3")
    picture = ET.fromstring(export(page, "grid-svg", tmp_path).read_text(encoding="utf-8"))
    assert picture.tag == f"{SVG}svg"
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert texts[0] == "entropy (nats)"
    shown = [f"{value:.2f}" for value in np.ravel(table["entropy"].values)]
    assert [text for text in texts if text and "." in text] == shown
    image = Image.open(export(page, "grid-png", tmp_path))
    assert image.size == (2 * int(picture.get("width") or 0), 2 * int(picture.get("height") or 0))
    assert len(image.convert("RGB").getcolors(maxcolors=10**6) or []) > 35


@pytest.mark.parametrize("picture", ["lines", "arcs", "matrix"])
def test_a_sentence_is_exported_with_its_paint(open_page: OpenPage, tmp_path: Path, picture: str) -> None:
    page = open_page(draw(), address=f"#variable={ROW}&head=2-3&text=0&picture={picture}")
    path = export(page, "sentence-svg", tmp_path)
    text = path.read_text(encoding="utf-8")
    assert "class=" in text
    assert "var(" not in text
    svg = ET.fromstring(text)
    kind = {"lines": "line", "arcs": "path", "matrix": "rect"}[picture]
    weights = [node for node in svg.iter(f"{SVG}{kind}") if node.get("class") in ("weight", "cell")]
    assert weights
    assert all("11, 98, 173" in (node.get("stroke" if kind != "rect" else "fill") or "") for node in weights)
    image = Image.open(export(page, "sentence-png", tmp_path)).convert("RGB")
    # Some pixels are as blue as the lines.
    assert any(blue > 150 > red for _, (red, _, blue) in image.getcolors(maxcolors=10**6) or [])


def test_a_sentence_is_exported_as_numbers(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(draw(), address=f"#variable={ROW}&head=2-3&text=0")
    heading, *rows = read_csv(export(page, "sentence-csv", tmp_path))
    assert heading == ["from", "attends most to", "annotated"]
    assert [row[0] for row in rows] == ["[CLS]", *TEXTS[0].words, "[SEP]"]
    best = words_by_hand(TEXTS[0], 2, 3).max(axis=1)
    shown = [int(row[1].split(",")[0].split()[1]) for row in rows]
    assert shown == pytest.approx(100 * best, abs=0.51)


def test_the_reported_heads_are_exported_row_by_row(open_page: OpenPage, tmp_path: Path) -> None:
    table = head_table()
    page = open_page(render_page(table, figures={}))
    heading, *rows = read_csv(export(page, "reported-csv", tmp_path))
    assert heading[:3] == ["score", "row", "head"]
    assert {len(row) for row in rows} == {len(heading)}
    for row in rows:
        reported = table.sel(relation=row[1])
        assert row[2].rstrip("*?") == f"{int(reported['reported_layer'])}-{int(reported['reported_head'])}"
        assert f"{float(reported['heldout_accuracy']):.2f}" in row[heading.index("score, held out")]
    assert not page.locator("#export-needed-csv").is_visible()


def test_the_tables_of_the_head_are_exported(open_page: OpenPage, tmp_path: Path) -> None:
    table = head_table()
    page = open_page(render_page(table, figures={}), address="#variable=entropy&head=2-3")
    heading, *rows = read_csv(export(page, "statistics-csv", tmp_path))
    assert heading == ["statistic", "head", "mean", "baseline"]
    entropy = next(row for row in rows if row[0] == "entropy")
    values = table["entropy"]
    assert entropy[1:3] == [f"{float(value):.2f}" for value in (values.sel(layer=2, head=3), values.mean())]
    path = tmp_path / "scores.csv"
    export(page, "scores-csv", tmp_path).rename(path)
    heading, *rows = read_csv(path)
    assert heading[:3] == ["score", "from", "value"]
    assert len(rows) == 6
    for picture in ("maps", "map", "neurons"):
        assert not page.locator(f"#export-{picture}").is_visible()


def test_the_map_and_the_average_maps_are_exported(open_page: OpenPage, tmp_path: Path) -> None:
    table, distances = tabulate("bert")
    page = open_page(show((table.merge(tabulate_maps("bert")["average_map"]), distances)), address="#head=2-3")
    heading, *rows = read_csv(export(page, "map-csv", tmp_path))
    assert heading == ["layer", "head", "x", "y", "cluster"]
    assert len(rows) == table["head_map_x"].size
    for layer, head, x, y, _ in rows:
        place = table.sel(layer=int(layer), head=int(head))
        assert (float(x), float(y)) == pytest.approx((float(place["head_map_x"]), float(place["head_map_y"])), rel=1e-5)
    circles = ET.fromstring(export(page, "map-svg", tmp_path).read_text(encoding="utf-8")).iter(f"{SVG}circle")
    assert len([*circles]) == len(rows)
    (image,) = ET.fromstring(export(page, "maps-svg", tmp_path).read_text(encoding="utf-8")).iter(f"{SVG}image")
    assert (image.get("href") or "").startswith("data:image/png;base64,")
    picture = Image.open(export(page, "maps-png", tmp_path))
    assert picture.size == (2 * int(image.get("width") or 0), 2 * int(image.get("height") or 0))
    assert len(picture.convert("RGB").getcolors(maxcolors=10**6) or []) > 50


def test_no_cell_is_a_formula_or_breaks_its_row(open_page: OpenPage, tmp_path: Path) -> None:
    words = ("=1+1", "+cmd", "@x", "-1", 'a"b,c', "line\nbreak", *HOSTILE)
    page = open_page(draw([make_text("hostile", words)]), address=f"#variable={ROW}&head=2-3&text=0")
    rows = read_csv(export(page, "sentence-csv", tmp_path))
    assert [row[0] for row in rows[2:8]] == ["'=1+1", "'+cmd", "'@x", "-1", 'a"b,c', "line break"]
    assert {len(row) for row in rows} == {3}
    assert rows[8][0] == HOSTILE[0]


def with_own_variables(table: xr.Dataset) -> xr.Dataset:
    """A table with variables that have no title and no score, as somebody's reducer may give them."""
    draw, dims, sizes = np.random.default_rng(5), table["entropy"].dims, table["entropy"].shape
    about = {"long_name": "what somebody counts", "units": "things", "source": "somebody"}
    kinds = ("kind", ["a", "b"], {"long_name": "kind of thing"})
    return table.assign_coords(step=[5, 7, 11], kind=kinds).assign(
        own_sum=(dims, draw.normal(size=sizes), about),
        own_share=((*dims, "step"), draw.random((*sizes, 3)) * [1, 1, 0], about),
        own_kind=((*dims, "kind"), draw.random((*sizes, 2)), about),
        own_pairs=((*dims, "step", "kind"), draw.random((*sizes, 3, 2)), about),
        own_ways=((*dims, "direction"), draw.random((*sizes, 2)), about),
    )


def test_variables_without_a_title_can_colour_the_grid_and_are_in_no_profile(open_page: OpenPage) -> None:
    page = open_page(render_page(with_own_variables(head_table()), figures={}), address="#variable=own_sum&head=2-3")
    options = page.locator("#variable option").all_inner_texts()
    own = [option for option in options if option.startswith("own")]
    assert own == ["own sum", "own share: 5", "own share: 7", "own kind: a", "own kind: b"]
    assert page.locator("#about").inner_text() == "What somebody counts. (somebody)"
    assert "own" not in page.locator("#profile-statistics").inner_text()
    assert page.locator("#scale .low").inner_text().startswith("−")


@pytest.mark.parametrize("attention_types", [False, True])
@pytest.mark.parametrize("variable", ["relation:obj", "entropy", "own_sum", "own_share:7", "own_kind:b"])
def test_the_python_gives_the_number_that_is_shown(
    open_page: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attention_types: bool, variable: str
) -> None:
    table = with_own_variables(head_table(attention_types=attention_types))
    address = f"#variable={variable}&direction=head_to_dependent&head=2-3"
    page = open_page(
        render_page(table, figures={}), address=address + ("&attention_type=decoder" if attention_types else "")
    )
    code = page.locator("#python").inner_text()
    disabled: list[list[str]] = []
    names = {"model": None, "print": print}
    monkeypatch.setattr(
        headscope, "disable", lambda model, heads: disabled.append(heads) or nullcontext(), raising=False
    )
    headscope.write_table(table, tmp_path / "heads.nc")
    monkeypatch.chdir(tmp_path)
    exec(code.replace("table[", "number = table["), names)
    shown = json.loads(page.locator('#grid button[aria-pressed="true"]').get_attribute("title").split(": ")[1])
    assert float(names["number"]) == pytest.approx(shown, abs=5.1e-4)
    assert disabled == [["decoder 2-3" if attention_types else "2-3"]]


def test_names_with_quotes_stay_names_in_python(open_page: OpenPage) -> None:
    name = "o'b\"j\\"
    page = open_page(render_page(head_table(relations=("nsubj", name, "nsubj:pass")), figures={}))
    page.locator("#variable").select_option(f"relation:{name}")
    settle(page)
    line = next(line for line in page.locator("#python").inner_text().splitlines() if line.startswith("table["))
    asked: dict[str, object] = {}
    variable = SimpleNamespace(sel=lambda **place: asked.update(place))
    eval(line, {"table": {"relation_accuracy": variable}})
    assert asked["relation"] == name
