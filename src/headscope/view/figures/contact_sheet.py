"""Contact sheets: images of attention maps side by side, with their numbers, to be labelled by eye."""

from collections.abc import Iterator, Sequence

import matplotlib as mpl
import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from headscope.view.figures.style import COLOURS, STYLE

COLUMNS, ROWS = 6, 4
"""Of maps on a sheet."""


def draw_contact_sheets(
    images: Sequence[Float[np.ndarray, "side side"]], ends: Sequence[Sequence[float]]
) -> Iterator[Figure]:
    """One sheet after the other; maps are numbered from 1.

    Args:
        images: from 0 to 1.
        ends: where the sentences of each map end, as shares of its side; ticks stand there.
    """
    for start in range(0, len(images), COLUMNS * ROWS):
        with mpl.rc_context(STYLE | {"figure.constrained_layout.use": False}):
            figure = Figure(figsize=(13.2, 9))
            panels = figure.subplots(ROWS, COLUMNS).flat
            for axes, number in zip(panels, range(start, start + COLUMNS * ROWS), strict=True):
                if number >= len(images):
                    axes.axis("off")
                    continue
                side = len(images[number])
                axes.imshow(images[number], cmap=COLOURS, vmin=0, vmax=1, interpolation="nearest")
                ticks = [end * side - 0.5 for end in ends[number]]
                axes.set(xticks=ticks, yticks=ticks)
                axes.tick_params(labelbottom=False, labelleft=False, length=4, width=1.5, color="red")
                axes.set_title(str(number + 1), loc="center", pad=2)
            figure.subplots_adjust(0.01, 0.01, 0.99, 0.97, 0.06, 0.14)
        yield figure
