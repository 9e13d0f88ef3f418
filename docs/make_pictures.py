"""Take the pictures of the documentation from an atlas of UD EWT: ``python docs/make_pictures.py ATLAS``.

ATLAS is the folder that the tutorial's first command writes. Chromium takes the pictures of the page.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

IMAGES = Path(__file__).parent / "images"
WIDTH, HEIGHT = 1300, 1900
HEADS = (0, 0, WIDTH, 1005)
REPORTED = (0, 1005, WIDTH, 1900)
"""Of the page: the grid with the profile of a head, and the table of reported heads."""


def main(atlas: Path) -> None:
    """Write ``atlas.png``, its two parts, and the figure of the objects."""
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "page.png"
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--window-size={WIDTH},{HEIGHT}", "--virtual-time-budget=3000", f"--screenshot={shot}"]
        address = "#variable=relation:obj&direction=dependent_to_head&head=3-1"
        subprocess.run([*command, f"file://{(atlas / 'atlas.html').resolve()}{address}"], check=True)
        page = Image.open(shot).convert("RGB")
    for name, box in {"atlas": (0, 0, WIDTH, 1638), "tutorial-heads": HEADS, "tutorial-reported": REPORTED}.items():
        page.crop(box).quantize(256, Image.Quantize.MAXCOVERAGE).save(IMAGES / f"{name}.png", optimize=True)
    shutil.copy(atlas / "figures" / "relation-obj.png", IMAGES / "tutorial-objects.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
