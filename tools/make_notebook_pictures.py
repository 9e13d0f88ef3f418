"""Take the pictures of docs/howto/notebook.md: ``python tools/make_notebook_pictures.py CORPUS`` (needs jupyterlab).

CORPUS is a treebank. JupyterLab runs the cells below on MiniLM, and Chromium takes pictures of what it shows.
"""

import io
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from PIL import Image
from playwright.sync_api import Locator, Page, sync_playwright

from make_notebook import make_cell

IMAGES = Path(__file__).parents[1] / "docs" / "images"
PORT = 8931
COLOURS = 128
WAIT = 400_000
"""Milliseconds that a cell may take."""

CELLS = (
    'import headscope\n\natlas = headscope.atlas("minilm", "corpus.conllu", sample=300)',
    "headscope.export(atlas.table)",
    "atlas",
    "headscope.explore(atlas, no_browser=True).widget()",
)


def main() -> None:
    """Run the cells and take the pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(sys.argv[1], folder / "corpus.conllu")
        cells = [make_cell(number, "code", text) for number, text in enumerate(CELLS, start=1)]
        kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
        notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
        (folder / "atlas.ipynb").write_text(json.dumps(notebook))
        with serve(folder) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1200, "height": 1400})
            page.goto(f"{address}/doc/tree/atlas.ipynb")
            take_pictures(page)
            browser.close()


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Yield the address of a JupyterLab in a folder."""
    options = [f"--port={PORT}", "--no-browser", "--allow-root", "--IdentityProvider.token=", "--ip=127.0.0.1"]
    server = subprocess.Popen([sys.executable, "-m", "jupyterlab", *options], cwd=folder)
    address = f"http://127.0.0.1:{PORT}/lab"
    try:
        for _ in range(100):
            try:
                urlopen(address).close()
                break
            except URLError:
                time.sleep(0.3)
        yield f"http://127.0.0.1:{PORT}"
    finally:
        server.terminate()
        server.wait()


def take_pictures(page: Page) -> None:
    """Run the cells one after the other, with a picture of each, and one of the bar while the first one runs."""
    cells = page.locator(".jp-Notebook .jp-CodeCell")
    cells.first.wait_for(timeout=60_000)
    page.locator(".jp-Notebook-ExecutionIndicator[data-status='idle']").wait_for(timeout=60_000)
    page.wait_for_timeout(5000)  # the kernel takes no cell before
    if (refusal := page.get_by_role("button", name="No", exact=True)).is_visible():  # to news
        refusal.click()
    run(page, cells.nth(0))
    page.locator("progress[value]").wait_for(timeout=WAIT)
    page.wait_for_timeout(3000)
    save(cells.nth(0), "notebook-progress")
    wait(page, cells.nth(0))
    if cells.nth(0).locator(".jp-Cell-outputWrapper").evaluate("(outputs) => outputs.offsetHeight"):
        raise RuntimeError("a finished bar leaves a gap")
    run(page, cells.nth(1))
    wait(page, cells.nth(1))
    save(cells.nth(1), "notebook-result")
    run(page, cells.nth(2))
    wait(page, cells.nth(2))
    page.frame_locator("iframe").locator("#answer-name").wait_for()
    page.wait_for_timeout(1000)
    save(cells.nth(2), "notebook-page")
    run(page, cells.nth(3))
    wait(page, cells.nth(3))
    widget = cells.nth(3).frame_locator("iframe")
    widget.locator("#live-text").fill("The dog that barked chased the cats.")
    widget.locator("#live-text").press("Enter")
    widget.locator("#sentence-table tbody th", has_text="barked").first.wait_for(state="attached", timeout=WAIT)
    page.wait_for_timeout(2000)
    save(cells.nth(3), "notebook-widget")


def run(page: Page, cell: Locator) -> None:
    """Run a cell, as Ctrl-Enter does."""
    cell.locator(".jp-InputArea-editor").click()
    page.keyboard.press("Control+Enter")


def wait(page: Page, cell: Locator) -> None:
    """Wait until a cell has a number."""
    cell.locator(".jp-InputPrompt", has_text="]:").filter(has_not_text="*").filter(has_not_text="[ ]").wait_for(
        timeout=WAIT
    )
    page.wait_for_timeout(500)


def save(cell: Locator, name: str) -> None:
    """Save a picture of a cell, in few colours."""
    cell.scroll_into_view_if_needed()
    with Image.open(io.BytesIO(cell.screenshot())) as picture:
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
