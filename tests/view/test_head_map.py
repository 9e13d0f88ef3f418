"""The map of heads on the page, and the nearest heads of each."""

import re

import numpy as np
import playwright.sync_api as playwright
import pytest
import xarray as xr

import headscope
import tiny
from headscope.capture.model.model import Model
from headscope.runner import measure
from headscope.view.page import render_page
from headscope.view.page.head_map_data import NEIGHBOURS, describe_map
from view.parsed import OpenPage, Page
from view.screen import settle

DOCUMENTS = tiny.documents(11)
PLACES = """[...document.querySelectorAll("#map-picture .head")].map((node) => {
    const circle = node.querySelector("circle");
    return [node.querySelector("title").textContent.split(" ")[1].replace(":", ""),
            Number(circle.getAttribute("cx")), Number(circle.getAttribute("cy"))];
})"""


def tabulate(family: str) -> tuple[xr.Dataset, xr.Dataset]:
    """A table with a map, and the distances."""
    model = Model.from_module(*tiny.make(family), name=family)
    distances = measure(model, DOCUMENTS, ["head_distances"])
    return headscope.analyse.add_head_map(measure(model, DOCUMENTS, ["surface"]), distances), distances


@pytest.fixture(scope="module")
def tables() -> tuple[xr.Dataset, xr.Dataset]:
    return tabulate("bert")


def show(tables: tuple[xr.Dataset, xr.Dataset]) -> str:
    return render_page(tables[0], figures={}, distances=tables[1])


def list_nearest(distances: xr.DataArray, layer: int, head: int) -> list[tuple[str, float]]:
    """The nearest heads, by a loop over all."""
    others = []
    for other_layer in distances["layer_other"].values:
        for other_head in distances["head_other"].values:
            value = distances.sel(layer=layer, head=head, layer_other=other_layer, head_other=other_head).item()
            if (other_layer, other_head) != (layer, head) and np.isfinite(value):
                others.append((value, f"{other_layer}-{other_head}"))
    return [(name, value) for value, name in sorted(others)[:NEIGHBOURS]]


def read_neighbours(page: playwright.Page) -> list[tuple[str, str]]:
    return re.findall(r"(\d+-\d+) ([\d.]+\d)", page.locator("#profile-neighbours").inner_text())


def is_chosen(page: playwright.Page, head: str) -> bool:
    title = page.locator("#map-picture .chosen title").text_content()
    return title.startswith(f"head {head}:") and page.locator("#profile-name").inner_text().startswith(f"Head {head}")


def test_distances_on_the_map_are_those_of_the_places(tables, open_page: OpenPage) -> None:
    page = open_page(show(tables), address="#tab=maps")
    places = page.evaluate(PLACES)
    table = tables[0]
    assert len(places) == table.sizes["layer"] * table.sizes["head"]
    in_table = []
    for name, _, _ in places:
        layer, head = map(int, name.split("-"))
        in_table.append([table[axis].sel(layer=layer, head=head).item() for axis in ("head_map_x", "head_map_y")])
    offsets = np.array([place[1:] for place in places]) - places[0][1:]
    wanted = (np.array(in_table) - in_table[0]) * [1, -1]  # upwards is less in pixels
    scale = np.abs(offsets).max() / np.abs(wanted).max()
    np.testing.assert_allclose(offsets, wanted * scale, atol=0.01)
    _, _, width, height = map(float, page.locator("#map-picture svg").get_attribute("viewBox").split())
    assert all(0 < x < width and 0 < y < height for _, x, y in places)


def test_a_click_on_a_head_chooses_it_and_the_grid_and_profile_follow(tables, open_page: OpenPage) -> None:
    page = open_page(show(tables), address="#variable=entropy&head=2-3&tab=maps")
    assert is_chosen(page, "2-3")
    page.locator("#map-picture .head:has(title:text-matches('^head 2-1:'))").locator("circle").click()
    settle(page)
    assert is_chosen(page, "2-1")
    assert "head=2-1" in page.evaluate("location.hash")
    assert page.locator('#grid [aria-pressed="true"]').get_attribute("aria-label").startswith("head 2-1")


def test_colours_are_those_of_the_grid(tables, open_page: OpenPage) -> None:
    page = open_page(show(tables), address="#variable=mass_previous&head=1-1&tab=maps")
    read = """[...document.querySelectorAll("#map-picture .head")].map((node) => {
        const name = node.querySelector("title").textContent.split(":")[0];
        const buttons = [...document.querySelectorAll("#grid button")];
        const button = buttons.find((each) => each.ariaLabel.startsWith(name + ":"));
        return [getComputedStyle(node.querySelector("circle")).fill, getComputedStyle(button).backgroundColor];
    })"""
    pairs = page.evaluate(read)
    assert all(circle == button for circle, button in pairs)
    assert len({circle for circle, _ in pairs}) > 3


def test_neighbours_are_the_nearest_of_all_and_lead_there(tables, open_page: OpenPage) -> None:
    page = open_page(show(tables), address="#variable=entropy&head=2-4&tab=numbers")
    nearest = list_nearest(tables[1]["js_distance"], 2, 4)
    assert read_neighbours(page) == [(name, f"{value:.2f}") for name, value in nearest]
    page.locator("#profile-neighbours a").first.click()
    settle(page)
    assert is_chosen(page, nearest[0][0])
    assert page.locator("#variable").input_value() == "entropy"


def test_arrow_keys_move_to_the_next_head_in_their_direction(tables, open_page: OpenPage) -> None:
    page = open_page(show(tables), address="#variable=entropy&head=2-2&tab=maps")
    places = {name: (x, y) for name, x, y in page.evaluate(PLACES)}
    page.locator("#map-picture").focus()
    at = "2-2"
    for key, right, down in (("ArrowRight", 1, 0), ("ArrowDown", 0, 1), ("ArrowLeft", -1, 0), ("ArrowUp", 0, -1)):
        page.keyboard.press(key)
        settle(page)
        after = re.search(r"head=(\d+-\d+)", page.evaluate("location.hash"))[1]
        if after != at:  # nothing lies beyond the last head
            (x, y), (from_x, from_y) = places[after], places[at]
            assert (x - from_x) * right + (y - from_y) * down > 0
            assert is_chosen(page, after)
        at = after
    assert at != "2-2" or len(places) == 1


def test_each_attention_type_has_a_map_of_its_own(open_page: OpenPage) -> None:
    tables = tabulate("bart")
    described = describe_map(*tables)
    for side, name in enumerate(tables[0]["attention_type"].values):
        part = tables[1]["js_distance"].sel(attention_type=name)
        for layer, head in ((1, 1), (2, 3)):
            wanted = list_nearest(part, layer, head)
            listed = described["neighbours"][side][layer - 1][head - 1]
            assert [f"{other + 1}-{number + 1}" for other, number, _ in listed] == [other for other, _ in wanted]
    page = open_page(render_page(tables[0], figures={}, distances=tables[1]))
    counts = []
    for name in tables[0]["attention_type"].values:
        page.locator("#attention_type").select_option(str(name))
        settle(page)
        counts.append(page.locator("#map-picture .head").count())
    assert counts == tables[0]["head_map_x"].notnull().sum(["layer", "head"]).values.tolist()


def test_without_a_map_the_page_has_no_place_for_it(tables, open_page: OpenPage) -> None:
    bare = tables[0].drop_vars([name for name in tables[0] if str(name).startswith(("head_map", "cluster"))])
    page = open_page(render_page(bare, figures={}, distances=tables[1]))
    assert page.locator("#map").is_hidden()
    assert 'href="#map"' not in page.content()
    assert page.locator("#profile-neighbours").is_hidden()


def test_without_distances_the_map_has_no_lines(tables, open_page: OpenPage) -> None:
    page = open_page(render_page(tables[0], figures={}))
    assert page.locator("#map-picture .head").count() == 10
    assert page.locator("#map-picture line").count() == 0
    assert page.locator("#profile-neighbours").is_hidden()
    assert Page(page.content()).data()["map"]["neighbours"] == []
