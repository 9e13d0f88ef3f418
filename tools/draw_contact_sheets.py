"""Draw contact sheets of maps that are to be labelled: ``python tools/draw_contact_sheets.py my-maps``.

`headscope patterns --annotate my-maps` makes the folder of maps. A sheet shows images of maps side by side, with the
numbers that they have in ``labels.csv``. From such sheets the maps of MiniLM were labelled (`minilm_maps`).
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import matplotlib as mpl
import torch
from matplotlib.figure import Figure

from headscope.learn.map_labels import read_maps_to_label
from headscope.learn.map_sample import HeadMap
from headscope.reducers.support.pattern_network import make_images
from headscope.view.figures import save
from headscope.view.figures.style import COLOURS, STYLE

COLUMNS, ROWS = 6, 4
"""Of maps on a sheet."""


def draw_contact_sheets(maps: Sequence[HeadMap]) -> Iterator[Figure]:
    """Yield one sheet after the other; maps are numbered from 1, and ticks show where a sentence ends."""
    for start in range(0, len(maps), COLUMNS * ROWS):
        with mpl.rc_context(STYLE | {"figure.constrained_layout.use": False}):
            figure = Figure(figsize=(13.2, 9))
            panels = figure.subplots(ROWS, COLUMNS).flat
            for axes, number in zip(panels, range(start, start + COLUMNS * ROWS), strict=True):
                if number >= len(maps):
                    axes.axis("off")
                    continue
                weights = torch.from_numpy(maps[number].weights)
                image = make_images(weights[None])[0, 0].numpy()
                axes.imshow(image, cmap=COLOURS, vmin=0, vmax=1, interpolation="nearest")
                ends = [(end + 0.5) / len(weights) * len(image) - 0.5 for end in maps[number].separators]
                axes.set(xticks=ends, yticks=ends)
                axes.tick_params(labelbottom=False, labelleft=False, length=4, width=1.5, color="red")
                axes.set_title(str(number + 1), loc="center", pad=2)
            figure.subplots_adjust(0.01, 0.01, 0.99, 0.97, 0.06, 0.14)
        yield figure


def main() -> None:
    """Write the sheets of a folder to its folder ``sheets``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of maps to label")
    folder = parser.parse_args().folder
    for number, figure in enumerate(draw_contact_sheets(read_maps_to_label(folder).maps), 1):
        save(figure, folder / "sheets", f"sheet-{number:02}", pdf=False)


if __name__ == "__main__":
    main()
