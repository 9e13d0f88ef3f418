"""Take the pictures of the documentation: ``python tools/make_pictures.py ATLAS DECODER``.

ATLAS is the folder that the tutorial's first command writes with ``--figures``, DECODER an atlas of a causal
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
COLOURS = 256
MODEL_LOADS = 120_000
"""Milliseconds that the first answer of the model behind a page may take."""


@dataclass(frozen=True)
class Picture:
    """A part of a page.

    Attributes:
        name: of the file.
        address: what follows the name of the page.
        parts: elements, as CSS selectors; the picture is the smallest that has them.
        click: the element to click first, if any.
        decoder: of the second atlas.
        live: with the model behind the page.
        width, height: of the window in pixels.
        dark: in the dark theme.
    """

    name: str
    address: str = ""
    parts: tuple[str, ...] = ("body",)
    click: str = ""
    decoder: bool = False
    live: bool = False
    width: int = 1280
    height: int = 800
    dark: bool = False


OBJECTS = "#variable=relation:obj&direction=dependent_to_head&head=3-1"
MORE, LINES = ("#more",), ("#sentence-parts > .controls", "#sentence-picture")
PICTURES = (
    Picture("atlas", OBJECTS),
    Picture("tutorial-heads", OBJECTS, ("#overview",)),
    Picture("page-answer", OBJECTS, ("#verdict", "#specimen")),
    Picture("page-search", OBJECTS, click="#search"),
    Picture("page-word", f"{OBJECTS}&word=3"),
    Picture("page-all", f"{OBJECTS}&mode=all"),
    Picture("tutorial-reported", OBJECTS, MORE, height=1300),
    Picture("page-maps", f"{OBJECTS}&tab=maps", ("section:has(> #thumbnails)",), height=2600),
    Picture("page-map", f"{OBJECTS}&tab=maps", ("section:has(> #map)",), height=3800),
    Picture("page-row-click", click="#reported-rows tbody tr:nth-child(3)"),
    Picture("page-guess", f"{OBJECTS}&tab=guess", MORE, click="#guess-next", height=1900),
    Picture("page-sentence", f"{OBJECTS}&tab=sentence", MORE, height=1700),
    Picture("page-beside", f"{OBJECTS}&tab=sentence&beside=2-7,4-9", LINES, height=1900),
    Picture(
        "page-neurons", f"{OBJECTS}&tab=sentence&text=0", ("#neurons",), click="#neurons-run", live=True, height=2400
    ),
    Picture("page-colours", "#variable=entropy&head=2-4", ("#overview",)),
    Picture("page-decoder", decoder=True),
    Picture("page-dark", OBJECTS, dark=True),
    Picture("page-420", OBJECTS, ("header", "#overview"), width=420),
)  # fmt: skip


FILM = (
    Picture("", OBJECTS),
    Picture("", OBJECTS, click="#search"),
    *(Picture("", f"{OBJECTS}&word={word}") for word in (3, 5, 7)),
    Picture("", f"{OBJECTS}&mode=all"),
    Picture("", "#variable=entropy&head=1-3"),
)
"""The scenes of the moving picture, each of the whole window."""
SECONDS, WIDEST = 2, 900
"""Of a scene, and pixels of the film."""


def main(atlas: Path, decoder: Path) -> None:
    """Write all pictures of pages, the film, and the figure of the objects."""
    take_pictures(PICTURES, atlas, decoder, IMAGES)
    take_film(atlas, IMAGES / "page.gif")
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


def take_film(atlas: Path, path: Path) -> None:
    """Write the scenes of the page of an atlas as one picture that moves."""
    page = (atlas / "atlas.html").resolve().as_uri()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        scenes = [take(scene, page, browser).convert("RGB") for scene in FILM]
        browser.close()
    for scene in scenes:
        scene.thumbnail((WIDEST, WIDEST))
    scenes = [scene.quantize(COLOURS // 2) for scene in scenes]
    scenes[0].save(path, save_all=True, append_images=scenes[1:], duration=1000 * SECONDS, loop=0, optimize=True)


def take(picture: Picture, page: str, browser: Browser) -> Image.Image:
    """Return the picture of a part of a page at an address."""
    window = browser.new_page(
        viewport={"width": picture.width, "height": picture.height},
        color_scheme="dark" if picture.dark else "light",
        bypass_csp=True,
    )
    window.goto(f"{page}{picture.address}")
    window.evaluate("Math.random = () => 0.3")  # so that the guess is the same each time
    if picture.click:
        window.locator(picture.click).first.click()
    if picture.live:
        window.locator("#neurons-picture svg").wait_for(timeout=MODEL_LOADS)
    window.locator('[aria-busy="true"]').first.wait_for(state="detached")
    window.evaluate("new Promise((done) => requestIdleCallback(() => requestAnimationFrame(done), { timeout: 2000 }))")
    boxes = [window.locator(part).first.bounding_box() for part in picture.parts]
    left, top = (min(box[side] for box in boxes) for side in ("x", "y"))
    right, bottom = (max(box[side] + box[size] for box in boxes) for side, size in (("x", "width"), ("y", "height")))
    clip = {"x": left, "y": top, "width": right - left, "height": bottom - top}
    shot = Image.open(io.BytesIO(window.screenshot(full_page=True, clip=clip))).convert("RGB")
    window.close()
    return shot.quantize(COLOURS, Image.Quantize.MAXCOVERAGE)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
