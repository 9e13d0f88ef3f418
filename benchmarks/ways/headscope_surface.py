"""headscope's reducer `surface`: a batch for each text, and a table at the end."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from batch import batch_of
from clock import run
from shapes import Text
from torch import Tensor

import headscope
from headscope.capture import Capture
from headscope.reducers import Surface


def load(folder: Path) -> Capture:
    """The model as headscope loads it, which includes a hash of its weights."""
    return Capture(headscope.load(folder), "interface")


def measure(capture: Capture, texts: Sequence[Text]) -> dict[str, np.ndarray]:
    """One forward pass under observation for each text; sums, then values."""
    reducer, sums, counts = Surface(), defaultdict(dict), {}
    (attention_type,) = capture.model.layers

    def add(total: dict[str, Tensor], values: dict[str, Tensor]) -> None:
        for name, value in values.items():
            total[name] = total[name] + value if name in total else value

    for text in texts:
        batch = batch_of(text)
        facts = reducer.prepare(batch, attention_type)
        add(counts, reducer.count(facts))
        capture.run(batch, lambda attention, facts=facts: add(sums[attention.layer], reducer.observe(facts, attention)))
    names = sums[1]
    table = reducer.result(
        {name: np.stack([sums[layer][name].numpy() for layer in sorted(sums)]) for name in names},
        {name: count.numpy() for name, count in counts.items()},
    )
    # The axes layer and head come first.
    return {str(name): table.variables[name].values for name in table.data_vars}


if __name__ == "__main__":
    run(load, measure)
