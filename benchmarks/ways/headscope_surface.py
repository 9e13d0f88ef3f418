"""headscope's reducer `surface`, on one batch of one text."""

from collections import defaultdict
from pathlib import Path

import numpy as np
from batch import batch_of
from clock import run
from shapes import Text

import headscope
from headscope.capture import Capture
from headscope.measure import Surface


def load(folder: Path) -> Capture:
    """The model as headscope loads it, which includes a hash of its weights."""
    return Capture(headscope.load(folder), "interface")


def measure(capture: Capture, text: Text) -> dict[str, np.ndarray]:
    """One forward pass under observation; sums, then values."""
    reducer, batch, sums = Surface(), batch_of(text), defaultdict(dict)

    def see(attention: object) -> None:
        held = sums[attention.layer]
        for name, value in reducer.observe(attention).items():
            held[name] = held[name] + value if name in held else value

    capture.observe(batch, see)
    names = sums[1]
    table = reducer.result(
        {name: np.stack([sums[layer][name].numpy() for layer in sorted(sums)]) for name in names},
        {name: count.numpy() for name, count in reducer.count(batch, "encoder").items()},
    )
    # The axes layer and head come first.
    return {str(name): table.variables[name].values for name in table.data_vars}


if __name__ == "__main__":
    run(load, measure)
