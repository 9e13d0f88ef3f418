"""Take the pictures of the documentation: ``python docs/make_pictures.py ATLAS DECODER``.

ATLAS is the folder that the tutorial's first command writes with ``--figures all``, DECODER an atlas of a causal
model. Chromium opens their pages, clicks where a picture says so, and takes the pictures.
"""

import base64
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

IMAGES = Path(__file__).parent / "images"
HEIGHT = 6000
"""Of the window, so that it holds whatever a picture shows."""
COLOURS = 256


@dataclass(frozen=True)
class Picture:
    """A part of a page.

    Attributes:
        name: of the file.
        first, last: elements, as CSS selectors; the picture reaches from the top of one to the bottom of the other.
        address: what follows the name of the page.
        click: the element to click first, if any.
        decoder: of the second atlas.
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
    width: int = 1300
    dark: bool = False
    tallest: int = 1700


OBJECTS = "#variable=relation:obj&direction=dependent_to_head&head=3-1"
PICTURES = (
    Picture("atlas", address=OBJECTS, tallest=1500),
    Picture("tutorial-heads", last="header + main > section", address=OBJECTS),
    Picture("tutorial-reported", first="#reported-rows", address=OBJECTS, tallest=900),
    Picture("page-row-click", click="#reported-rows tbody tr:nth-child(3)", tallest=1560),
    Picture("page-sentence", "#sentences", "#sentence-picture", OBJECTS, tallest=1200),
    Picture("page-colours", last="header + main > section", address="#variable=entropy&head=2-4"),
    Picture("page-decoder", decoder=True, tallest=1500),
    Picture("page-dark", address=OBJECTS, dark=True, tallest=1500),
    Picture("page-420", address=OBJECTS, width=420, tallest=2600),
)


def main(atlas: Path, decoder: Path) -> None:
    """Write all pictures of pages, and the figure of the objects."""
    for picture in PICTURES:
        page = (decoder if picture.decoder else atlas) / "atlas.html"
        with tempfile.TemporaryDirectory() as folder:
            take(picture, page.read_text(encoding="utf-8"), Path(folder))
    shutil.copy(atlas / "figures" / "relation-obj.png", IMAGES / "tutorial-objects.png")


def take(picture: Picture, page: str, folder: Path) -> None:
    """Open a page in the folder, and write the picture of its part."""
    script = f"""
        {f"document.querySelector({picture.click!r}).click();" if picture.click else ""}
        scrollTo(0, 0);
        setTimeout(() => {{ // the weights of a sentence are unpacked first
        const box = (selector) => document.querySelector(selector).getBoundingClientRect();
        const place = [box({picture.first!r}).top, box({picture.last!r}).bottom].map(Math.round).join(" ");
        document.body.dataset.place = place;
        parent.postMessage(place, "*");
        }}, 500);"""
    # The page's policy runs its own script alone; ours is added to it.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = page.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    (folder / "atlas.html").write_text(page.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    # A window cannot be as narrow as a telephone, a frame can; the page tells it where its parts are.
    (folder / "frame.html").write_text(
        f"""<body style="margin: 0"><script>
        addEventListener("message", (event) => document.body.dataset.place = event.data)</script>
        <iframe src="atlas.html{picture.address}" width="{picture.width}" height="{HEIGHT}" style="border: 0">
        </iframe>"""
    )
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += ["--virtual-time-budget=3000", f"--window-size={max(500, picture.width)},{HEIGHT}"]
    command += ["--blink-settings=preferredColorScheme=0"] * picture.dark
    address, shot = f"file://{folder}/frame.html", folder / "shot.png"
    dom = subprocess.run([*command, "--dump-dom", address], capture_output=True, text=True, check=True)
    top, bottom = map(int, re.search(r'data-place="(-?\d+) (\d+)"', dom.stdout).groups())
    subprocess.run([*command, f"--screenshot={shot}", address], check=True, capture_output=True)
    box = (0, max(0, top - 8), picture.width, min(bottom + 8, top + picture.tallest, HEIGHT))
    part = Image.open(shot).convert("RGB").crop(box)
    part.quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(IMAGES / f"{picture.name}.png", optimize=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
