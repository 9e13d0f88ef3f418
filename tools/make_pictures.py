"""Take the pictures of the documentation: ``python tools/make_pictures.py ATLAS DECODER``.

ATLAS is the folder that the tutorial's first command writes with ``--figures all``, DECODER an atlas of a causal
model. Chromium opens their pages, clicks where a picture says so, and takes the pictures.
"""

import io
import shutil
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

import headscope

IMAGES = Path(__file__).parents[1] / "docs" / "images"
HEIGHT = 900
"""Of the window."""
MARGIN = 8
"""Pixels above and below what a picture shows."""
COLOURS = 256
MODEL_LOADS = 120_000
"""Milliseconds that the first answer of the model behind a page may take."""


@dataclass(frozen=True)
class Picture:
    """A part of a page.

    Attributes:
        name: of the file.
        first, last: elements, as CSS selectors; the picture reaches from the top of one to the bottom of the other.
        address: what follows the name of the page.
        click: the element to click first, if any.
        decoder: of the second atlas.
        live: with the model behind the page.
        width: of the window in pixels.
        dark: in the dark theme.
        tallest: the most pixels that it is high.
    """

    name: str
    first: str = "header"
    last: str = "#reported-rows"
    address: str = ""
    click: str = ""
    decoder: bool = False
    live: bool = False
    width: int = 1300
    dark: bool = False
    tallest: int = 1700


OBJECTS = "#variable=relation:obj&direction=dependent_to_head&head=3-1"
PICTURES = (
    Picture("atlas", address=OBJECTS, tallest=1500),
    Picture("tutorial-heads", "section:has(#heads)", ".atlas", address=OBJECTS),
    Picture("page-answer", "search", "#answer-note", OBJECTS, tallest=900),
    Picture("page-search", "search", "#search-panel", OBJECTS, click="#search", tallest=700),
    Picture("tutorial-reported", first="#reported-rows", address=OBJECTS, tallest=900),
    Picture("page-maps", "section:has(#thumbnails)", "#thumbnails-parts", OBJECTS, tallest=700),
    Picture("page-map", "section:has(#map)", "#map-picture", OBJECTS, tallest=1100),
    Picture("page-row-click", click="#reported-rows tbody tr:nth-child(3)", tallest=1560),
    Picture("page-guess", "section:has(#guess)", "#guess-options", OBJECTS, click="#guess-next", tallest=900),
    Picture("page-sentence", "#sentences", "#sentence-picture", OBJECTS, tallest=1200),
    Picture("page-beside", "#sentence-parts > .controls", "#sentence-picture", f"{OBJECTS}&beside=2-7,4-9"),
    Picture("page-neurons", "#neurons", "#neurons-picture svg", f"{OBJECTS}&text=0", click="#neurons-run", live=True),
    Picture("page-colours", first="section:has(#heads)", last="#scale", address="#variable=entropy&head=2-4"),
    Picture("page-decoder", decoder=True, tallest=1500),
    Picture("page-dark", address=OBJECTS, dark=True, tallest=1500),
    Picture("page-420", address=OBJECTS, width=420, tallest=2600),
)


def main(atlas: Path, decoder: Path) -> None:
    """Write all pictures of pages, and the figure of the objects."""
    take_pictures(PICTURES, atlas, decoder, IMAGES)
    shutil.copy(atlas / "figures" / "relation-obj.png", IMAGES / "tutorial-objects.png")


def take_pictures(pictures: Sequence[Picture], atlas: Path, decoder: Path, folder: Path) -> None:
    """Write pictures of the pages of two atlases into a folder."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for picture in pictures:
            opened = headscope.explore(atlas, no_browser=True) if picture.live else nullcontext()
            with opened as explorer:
                page = ((decoder if picture.decoder else atlas) / "atlas.html").resolve().as_uri()
                image = take(picture, page if explorer is None else explorer.address, browser)
            image.save(folder / f"{picture.name}.png", optimize=True)
        browser.close()


def take(picture: Picture, page: str, browser: Browser) -> Image.Image:
    """The picture of a part of a page at an address."""
    window = browser.new_page(
        viewport={"width": picture.width, "height": HEIGHT}, color_scheme="dark" if picture.dark else "light",
        bypass_csp=True,
    )  # fmt: skip
    window.goto(f"{page}{picture.address}")
    window.add_style_tag(content="section { content-visibility: visible !important; }")  # each at its own height
    window.evaluate("Math.random = () => 0.3")  # so that the guess is the same each time
    if picture.click:
        window.locator(picture.click).first.click()
        window.locator(picture.last).first.wait_for(timeout=MODEL_LOADS)
    window.locator('[aria-busy="true"]').first.wait_for(state="detached")
    window.evaluate("scrollTo(0, 0)")
    first, last = (window.locator(selector).first.bounding_box() for selector in (picture.first, picture.last))
    top = max(0, first["y"] - MARGIN)
    height = min(last["y"] + last["height"] + MARGIN - top, picture.tallest)
    clip = {"x": 0, "y": top, "width": picture.width, "height": height}
    shot = Image.open(io.BytesIO(window.screenshot(full_page=True, clip=clip))).convert("RGB")
    window.close()
    return shot.quantize(COLOURS, Image.Quantize.MAXCOVERAGE)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
