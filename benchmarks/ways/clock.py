"""What every way's process has in common: its arguments, the text, the clock and the peak of its memory.

arguments --> model, text --warm-up, timed passes--> numbers (a file) and one line of JSON on the standard output
"""

import argparse
import json
import time
from collections.abc import Callable, Mapping
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


def run(load: Callable[[Path], M], measure: Callable[[M, Text], Numbers]) -> None:
    """Time passes of `measure`, save what it found, and tell seconds and memory.

    Args:
        load: makes the model from the folder of its weights.
        measure: one pass, from token ids to statistics; nothing for a bare model.
    """
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--model", type=Path, required=True, help="the folder that `shapes.save_model` wrote")
    arguments.add_argument("--shape", choices=SHAPES, required=True)
    arguments.add_argument("--length", type=int, required=True)
    arguments.add_argument("--passes", type=int, default=1)
    arguments.add_argument("--out", type=Path, required=True, help="the statistics, as .npz")
    given = arguments.parse_args()
    shape = SHAPES[given.shape]
    model, seconds = load(given.model), []
    with torch.inference_mode():
        measure(model, Text.of(shape, min(WARM_UP, given.length)))
        text = Text.of(shape, given.length)
        for _ in range(given.passes):
            start = time.perf_counter()
            numbers = measure(model, text)
            seconds.append(time.perf_counter() - start)
    if numbers:
        np.savez(given.out, **numbers)
    print(json.dumps({"seconds": seconds, "peak_mib": _peak_mib()}))


def _peak_mib() -> float:
    # Not `ru_maxrss`: a new process inherits that from the one that started it.
    (peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024
