"""The average maps of all heads on one canvas, and that of the chosen head."""

import base64
import re
from importlib import resources

import numpy as np
import pytest
import xarray as xr

import tiny
from headscope.capture.model.model import Model
from headscope.runner import measure
from headscope.view.page import render_page
from headscope.view.page.average_maps import MISSING, STEPS, describe_maps
from view.parsed import OpenPage
from view.screen import settle
from view.tables import head_table
from view.test_accessibility import violations
from view.test_view_switch import through_norms

BINS, CELL, GAP, LABELS, LARGE = 16, 2, 4, 24, 14
PIXEL = """([id, x, y]) => {
    const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    pixel.drawImage(document.getElementById(id), x, y, 1, 1, 0, 0, 1, 1);
    return [...pixel.getImageData(0, 0, 1, 1).data];
}"""
ADDRESS = "#variable=entropy&head=2-3&tab=maps"


def tabulate(family: str) -> xr.Dataset:
    model = Model.from_module(*tiny.make(family), name=family)
    return measure(model, tiny.documents(11), ["surface", "average_map"])


@pytest.fixture(scope="module")
def table() -> xr.Dataset:
    return tabulate("bert")


def colour(value: float) -> np.ndarray:
    """The colour of a light page, which has some and blends between them."""
    script = resources.files("headscope.view.page").joinpath("scripts/colours.js").read_text(encoding="utf-8")
    (listed,) = re.findall(r"light: \[(.*?)\]", script)
    stops = np.array([[*bytes.fromhex(stop)] for stop in re.findall(r"\w{6}", listed)])
    share = np.sqrt(value) * (len(stops) - 1)
    return np.array([np.interp(share, np.arange(len(stops)), part) for part in stops.T])


def test_the_bytes_are_the_roots_of_the_maps(table: xr.Dataset) -> None:
    described = describe_maps(table)
    cells = np.frombuffer(base64.b64decode(described["cells"]), dtype=np.uint8).reshape(1, 2, 5, BINS, BINS)
    wanted = table["average_map"].transpose("layer", "head", "query_bin", "key_bin").values
    np.testing.assert_allclose((cells[0] / STEPS) ** 2, wanted, atol=1 / STEPS)
    assert describe_maps(head_table()) is None


def test_each_map_stands_in_its_place_with_its_colours(table: xr.Dataset, open_page: OpenPage) -> None:
    page = open_page(render_page(table, figures={}), address=ADDRESS)
    step = BINS * CELL + GAP
    for layer, head, query, key in ((1, 1, 1, 1), (2, 5, 3, 11), (1, 4, 16, 2), (2, 3, 7, 7)):
        value = table["average_map"].sel(layer=layer, head=head, query_bin=query, key_bin=key).item()
        x, y = (LABELS + (at - 1) * step + (part - 1) * CELL for at, part in ((head, key), (layer, query)))
        red_green_blue = page.evaluate(PIXEL, ["thumbnails-picture", x, y])[:3]
        np.testing.assert_allclose(red_green_blue, colour(value), atol=9)
    for query, key in ((1, 1), (5, 12), (16, 16)):
        value = table["average_map"].sel(layer=2, head=3, query_bin=query, key_bin=key).item()
        at = ["thumbnails-head", (key - 1) * LARGE + 3, (query - 1) * LARGE + 3]
        np.testing.assert_allclose(page.evaluate(PIXEL, at)[:3], colour(value), atol=9)
    assert page.locator("#thumbnails-name").inner_text() == "Head 2-3"


def test_clicks_and_arrow_keys_choose_a_head(table: xr.Dataset, open_page: OpenPage) -> None:
    page = open_page(render_page(table, figures={}), address=ADDRESS)
    step = BINS * CELL + GAP
    page.locator("#thumbnails-picture").click(position={"x": LABELS + 3 * step + 9, "y": LABELS + 9})
    settle(page)
    assert page.locator("#thumbnails-name").inner_text() == page.locator("#profile-name").inner_text() == "Head 1-4"
    assert "head=1-4" in page.evaluate("location.hash")
    page.locator("#thumbnails-parts [tabindex]").focus()
    for key, head in (("ArrowDown", "2-4"), ("ArrowDown", "2-4"), ("ArrowRight", "2-5"), ("ArrowRight", "2-5")):
        page.keyboard.press(key)
        assert page.locator("#thumbnails-name").inner_text() == f"Head {head}"
    page.locator("#thumbnails-picture").click(position={"x": 3, "y": 3})  # the labels are no head
    assert page.locator("#thumbnails-name").inner_text() == "Head 2-5"


def test_parts_without_a_query_are_left_blank(table: xr.Dataset, open_page: OpenPage) -> None:
    holed = table.copy(deep=True)
    holed["average_map"].loc[{"query_bin": 4}] = np.nan
    cells = np.frombuffer(base64.b64decode(describe_maps(holed)["cells"]), dtype=np.uint8).reshape(-1, BINS, BINS)
    assert (cells[:, 3] == MISSING).all()
    assert (np.delete(cells, 3, 1) != MISSING).all()
    page = open_page(render_page(holed, figures={}), address=ADDRESS)
    assert page.evaluate(PIXEL, ["thumbnails-head", 3, 3 * LARGE + 3]) == [0, 0, 0, 0]
    assert page.evaluate(PIXEL, ["thumbnails-head", 3, 4 * LARGE + 3])[3] == 255


def test_each_attention_type_has_its_own_maps(open_page: OpenPage) -> None:
    table = tabulate("bart")
    page = open_page(render_page(table, figures={}), address=ADDRESS)
    for name in ("decoder", "cross", "encoder"):
        page.locator("#attention_type").select_option(name)
        settle(page)
        value = table["average_map"].sel(attention_type=name, layer=2, head=3, query_bin=9, key_bin=5).item()
        pixel = page.evaluate(PIXEL, ["thumbnails-head", 4 * LARGE + 3, 8 * LARGE + 3])
        np.testing.assert_allclose(pixel[:3], colour(value), atol=9)


def test_what_has_no_maps_says_so(table: xr.Dataset, open_page: OpenPage) -> None:
    norms = through_norms(table).drop_vars("average_map")
    page = open_page(render_page(table, figures={}, views={"norm": norms}), address=ADDRESS + "&view=norm")
    assert page.locator("#thumbnails-about").inner_text() == "norm has no average maps."
    assert page.locator("#thumbnails-picture").is_hidden()
    page = open_page(render_page(head_table(), figures={}))
    assert page.locator("#thumbnails").is_hidden()
    assert 'href="#thumbnails"' not in page.content()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_maps_keep_the_rules_of_axe(table: xr.Dataset, open_page: OpenPage, width: int, dark: bool) -> None:
    assert violations(open_page(render_page(table, figures={}), address=ADDRESS, width=width, dark=dark)) == []
