"""headscope's reducer `surface`: a batch for each text, and a table at the end."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from batch import batch_of
from clock import run
from shapes import Text

import headscope
from headscope.capture import Capture
from headscope.reducers import Surface


def load(folder: Path) -> Capture:
    """The model as headscope loads it, which includes a hash of its weights."""
    return Capture(headscope.load(folder), "interface")


def measure(capture: Capture, texts: Sequence[Text]) -> dict[str, np.ndarray]:
    """One forward pass under observation for each text; sums, then values."""
    reducer, sums, counts = Surface(), defaultdict(dict), {}

    def see(attention: object) -> None:
        held = sums[attention.layer]
        for name, value in reducer.observe(attention).items():
            held[name] = held[name] + value if name in held else value

    for text in texts:
        batch = batch_of(text)
        capture.run(batch, see)
        for name, count in reducer.count(batch, "encoder").items():
            counts[name] = counts[name] + count if name in counts else count
    names = sums[1]
    table = reducer.result(
        {name: np.stack([sums[layer][name].numpy() for layer in sorted(sums)]) for name in names},
        {name: count.numpy() for name, count in counts.items()},
    )
    # The axes layer and head come first.
    return {str(name): table.variables[name].values for name in table.data_vars}


if __name__ == "__main__":
    run(load, measure)
