"""The common parts of the processes of all ways: their arguments, the texts, the clock and the peak of its memory.

arguments --> model, texts --warm-up, timed passes--> numbers (a file) and one line of JSON on the standard output
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from shapes import SHAPES, Text

WARM_UP = 512
"""Tokens of the pass that is not timed; shorter where the text is."""

Numbers = Mapping[str, np.ndarray]
"""A statistic's name -> its values; axes layer and head, then its own."""

M = TypeVar("M")


def mean_of(numbers_of_texts: Iterable[Numbers]) -> dict[str, np.ndarray]:
    """The mean over texts of each statistic."""
    texts = list(numbers_of_texts)
    return {name: np.mean([text[name] for text in texts], axis=0) for name in texts[0]}


def run(load: Callable[[Path], M], measure: Callable[[M, Sequence[Text]], Numbers]) -> None:
    """Time passes of `measure`, save what it found, and tell seconds and memory.

    Args:
        load: makes the model from the folder of its weights.
        measure: one pass over some texts, from token ids to the statistics of all; nothing for a bare model.
    """
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--model", type=Path, required=True, help="the folder that `shapes.save_model` wrote")
    arguments.add_argument("--shape", choices=SHAPES, required=True)
    arguments.add_argument("--length", type=int, required=True)
    arguments.add_argument("--texts", type=int, default=1)
    arguments.add_argument("--passes", type=int, default=1)
    arguments.add_argument("--out", type=Path, required=True, help="the statistics, as .npz")
    given = arguments.parse_args()
    shape = SHAPES[given.shape]
    model, seconds = load(given.model), []
    with torch.inference_mode():
        measure(model, [Text.with_length(shape, min(WARM_UP, given.length))])
        texts = [Text.with_length(shape, given.length, number) for number in range(1, given.texts + 1)]
        for _ in range(given.passes):
            start = time.perf_counter()
            numbers = measure(model, texts)
            seconds.append(time.perf_counter() - start)
    if numbers:
        np.savez(given.out, **numbers)
    print(json.dumps({"seconds": seconds, "peak_mib": _peak_mib()}))


def _peak_mib() -> float:
    # Not `ru_maxrss`: a new process inherits that from the one that started it.
    (peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024
