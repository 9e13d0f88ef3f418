"""An atlas in a notebook: the whole page in a frame, which follows its own links and saves its files."""

import html
import re
from pathlib import Path

import pytest

from headscope.jobs.atlas import AtlasResult
from headscope.view.notebook import frame_page
from headscope.view.page import render_page, write_page
from view.conftest import settle
from view.parsed import OpenPage
from view.tables import head_table
from view.test_sentences import ROW, draw


def show(open_page: OpenPage, text: str):
    page = open_page(f"<!doctype html><h1>Notebook</h1>{frame_page(text, 'Head atlas')}")
    frame = page.frames[1]
    frame.locator("#answer-name").wait_for()
    return page, frame


def test_an_atlas_shows_its_page(tmp_path: Path) -> None:
    table = head_table()
    page = write_page(table, tmp_path / "atlas.html")
    shown = AtlasResult(table, tmp_path, ("atlas.html",))._repr_html_()
    assert shown.startswith("<iframe title='Head atlas of tiny/bert' sandbox='allow-scripts allow-downloads'")
    (content,) = re.findall(r"srcdoc='([^']*)'", shown)
    assert html.unescape(content) == page.read_text(encoding="utf-8")


def test_the_page_works_in_a_frame(open_page: OpenPage) -> None:
    page, frame = show(open_page, draw())
    address = page.url
    frame.locator("#search").fill("obj")
    frame.locator("#search").press("Enter")
    settle(page)
    assert frame.locator("#answer-name").inner_text().endswith(": obj")
    frame.locator("#text").select_option("2")
    frame.locator("#sentence-picture svg text").first.wait_for()
    frame.locator("nav a").nth(1).click()
    assert frame.locator("#answer-name").inner_text().endswith(": obj"), "the frame still has the page"
    frame.locator("#reported-rows tbody a").nth(2).click()
    assert frame.locator("#answer-name").inner_text().endswith(": det")
    with page.expect_download() as download:
        frame.locator("#export-grid-csv").click()
    assert download.value.suggested_filename.endswith(".csv")
    assert page.url == address


@pytest.mark.parametrize("hostile", ["'><script>alert(1)</script>", "&#39;><img src=x onerror=alert(1)>"])
def test_no_name_gets_out_of_the_frame(open_page: OpenPage, hostile: str) -> None:
    text = render_page(head_table(relations=("nsubj", hostile, "nsubj:pass"), model=hostile), figures={})
    page = open_page(f"<!doctype html>{frame_page(text, hostile)}")
    assert page.locator("script, img").count() == 0
    assert page.locator("iframe").get_attribute("title") == hostile
    page.frames[1].locator("#variable").select_option(f"relation:{hostile}")
    assert page.frames[1].locator("#answer-name").inner_text().endswith(f": {hostile}")


def test_the_row_of_the_answer_can_be_followed(open_page: OpenPage) -> None:
    page, frame = show(open_page, draw())
    frame.locator("#variable").select_option(ROW)
    frame.locator("#grid button").nth(3).click()
    frame.locator("#answer-link").click()
    settle(page)
    assert frame.locator("#answer-row").inner_text().startswith("For obj, head")
