"""Pages in a browser that has no network."""

from collections.abc import Iterator
from pathlib import Path

import playwright.sync_api as playwright
import pytest

from view.parsed import Browse, OpenPage, Page
from view.screen import settle

LOCAL = ("file:", "data:", "blob:", "about:")


@pytest.fixture
def complaints() -> list[str]:
    """Errors and warnings of pages, and the addresses that they asked for; a test that expects some clears it."""
    return []


@pytest.fixture
def open_page(browser: playwright.Browser, complaints: list[str], tmp_path: Path) -> Iterator[OpenPage]:
    """Opens a page; an error, a refusal of its policy, or a request that leaves the machine fails the test.

    The script `first` runs before those of the page.
    """
    contexts: list[playwright.BrowserContext] = []

    def opened(
        text: str, *, address: str = "", width: int = 1280, dark: bool = False, first: str = ""
    ) -> playwright.Page:
        scheme = "dark" if dark else "light"
        context = browser.new_context(offline=True, viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        if first:
            page.add_init_script(first)
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: complaints.append(line.text) if line.type in ("error", "warning") else None)
        page.on("request", lambda asked: None if asked.url.startswith(LOCAL) else complaints.append(asked.url))
        path = tmp_path / f"page{len(contexts)}.html"
        path.write_text(text, encoding="utf-8", errors="replace")
        page.goto(f"file://{path}{address}")
        settle(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not complaints


@pytest.fixture
def browse(open_page: OpenPage) -> Browse:
    """Opens a page, runs a script after its own, and returns what then stands there."""

    def opened(text: str, *, address: str = "", script: str = "", width: int = 1280, dark: bool = False) -> Page:
        page = open_page(text, address=address, width=width, dark=dark)
        if script:
            page.evaluate(f"async () => {{ {script} }}")
            settle(page)
        return Page(page.content())

    return opened
