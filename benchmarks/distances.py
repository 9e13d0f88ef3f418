"""The cost of the distances between all heads, beside the loop of Clark et al. 2019 and the logarithms alone.

    python benchmarks/distances.py [--segments 100] [--script-segments 5] [--length 128] [--rounds 3]

The maps are those of a random model of the shape of BERT-base (12 layers of 12 heads) on segments of random tokens. The
loop goes over the heads as in the paper's released script, which compares each with all 144 at once in numpy and adds
0.001 / n to the weights; it is run on float16 (as the script stores its maps), float32 and float64. The logarithms are
one for each weight of each pair of heads, in float64, of numbers that stay in cache. Each segment is timed in turn, and
ratios are of the sums; what the script would take for all segments follows from those that it is run on.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from statistics import median

import numpy as np
import torch
from transformers import AutoModel

from headscope.reducers.support.divergence import BLOCK_WEIGHTS, compare_rows
from ways.shapes import SHAPES, Text

SMOOTHING = 0.001


def main() -> None:
    """Time the ways segment by segment, and print the ratios."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--segments", type=int, default=100)
    arguments.add_argument("--script-segments", type=int, default=5)
    arguments.add_argument("--length", type=int, default=128)
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    torch.set_num_threads(1)
    model = AutoModel.from_config(SHAPES["bert"].config, attn_implementation="eager").eval()
    scripts = {f"script in {kind}": kind for kind in ("float16", "float32", "float64")}
    ratios = defaultdict(list)
    for _ in range(given.rounds):
        seconds = defaultdict(list)
        for number in range(given.segments):
            start = time.process_time()
            maps = attend(model, Text.with_length(SHAPES["bert"], given.length, number))
            seconds["forward pass"].append(time.process_time() - start)
            seconds["distances"].append(clock(lambda maps=maps: sum(part.sum(-1) for part in compare_rows(maps))))
            seconds["logarithms"].append(clock(lambda maps=maps: take_logarithms(len(maps), given.length)))
            if number < given.script_segments:
                for name, kind in scripts.items():
                    stored = maps.astype(kind)
                    seconds[name].append(clock(lambda stored=stored: run_script(stored)))
        means = {name: sum(times) / len(times) for name, times in seconds.items()}
        ratios["segment"].append(means["distances"])
        ratios["forward pass"].append(means["distances"] / means["forward pass"])
        ratios["logarithms"].append(means["distances"] / means["logarithms"])
        for name in scripts:
            ratios[name].append(means[name] / means["distances"])
    print(f"{len(maps)} heads, {given.segments} segments of {given.length} tokens, {given.rounds} rounds, one thread")
    print(f"distances of a segment: {median(ratios['segment']):.2f} s")
    for name in ("forward pass", "logarithms"):
        print(f"distances against the {name}: {describe(ratios[name])}")
    for name in scripts:
        print(f"{name} against the distances: {describe(ratios[name])}")


def attend(model: torch.nn.Module, text: Text) -> np.ndarray:
    """The maps of all heads on a text, with as much difference between them as peaked attention has."""
    with torch.inference_mode():
        layers = model(input_ids=text.ids, output_attentions=True).attentions
    # A random model attends to all tokens alike; the logarithms of its weights, made larger, do not.
    maps = torch.cat(layers, dim=1)[0]
    return (8 * (maps.log() - maps.log().mean(-1, keepdim=True))).softmax(-1).numpy()


def run_script(maps: np.ndarray) -> np.ndarray:
    """The distances of all heads in the manner of the paper's script."""
    length, distances = maps.shape[1], np.zeros((len(maps), len(maps)))
    for head, single in enumerate(maps):
        single = SMOOTHING / length + (1 - SMOOTHING) * single[None]
        every = SMOOTHING / length + (1 - SMOOTHING) * maps
        middle = (single + every) / 2
        divergence = -single * np.log(middle / single)
        divergence += -every * np.log(middle / every)
        divergence /= 2
        distances[head] = divergence.sum(-1).sum(-1)
    return distances


def take_logarithms(heads: int, length: int) -> None:
    """One logarithm for each weight of each pair of heads."""
    numbers = np.random.default_rng(0).random(BLOCK_WEIGHTS)
    logarithms, count = np.empty_like(numbers), heads * (heads - 1) // 2 * length**2
    for _ in range(-(-count // BLOCK_WEIGHTS)):
        np.log(numbers, out=logarithms)


def clock(run: Callable[[], object]) -> float:
    """The seconds of the processor that something takes."""
    start = time.process_time()
    run()
    return time.process_time() - start


def describe(ratios: list[float]) -> str:
    """The median of some ratios, and the least and the largest."""
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


if __name__ == "__main__":
    main()
