"""The cost of measuring a folder of runs: one run against ten of them, in turn, each a whole call.

    python benchmarks/runs.py [--corpus grammar:400] [--runs 10] [--times 3] [-r surface]

The runs are minilm with a little noise on its weights. A call loads everything, summarizes the corpus and writes no
file.
"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch

import headscope
from headscope.capture import Model
from headscope.runs import Run, Runs, write


def main() -> None:
    """Time both in turn and print the ratio."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--corpus", default="grammar:400")
    arguments.add_argument("--runs", type=int, default=10)
    arguments.add_argument("--times", type=int, default=3)
    arguments.add_argument("-r", "--reducer", nargs="+", default=["surface"])
    given = arguments.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        many = _save_runs(Path(folder), given.runs)
        single = replace(many, runs=many.runs[:1])
        seconds: dict[int, list[float]] = {1: [], given.runs: []}
        for _ in range(given.times):
            for runs in (single, many):
                start = time.perf_counter()
                headscope.runner.measure_runs("minilm", runs, headscope.read(given.corpus), given.reducer)
                seconds[len(runs.runs)].append(time.perf_counter() - start)
    first, last = (median(seconds[count]) for count in (1, given.runs))
    print(f"{'+'.join(given.reducer)} on {given.corpus}: 1 run {first:.2f} s, {given.runs} runs {last:.2f} s: ", end="")
    print(f"{last / first:.2f} times one run")


def _save_runs(folder: Path, count: int) -> Runs:
    model = headscope.load("minilm")
    runs = [_save_run(model, folder, seed) for seed in range(1, count + 1)]
    saved = Runs(
        folder, "noise", False, "minilm", model.weights_sha256, "validation", "none", {}, tuple(runs),
    )  # fmt: skip
    write(saved)
    return saved


def _save_run(model: Model, folder: Path, seed: int) -> Run:
    generator = torch.Generator().manual_seed(seed)
    place = folder / f"seed-{seed}"
    with torch.no_grad():
        for weights in model.module.parameters():
            weights.add_(1e-3 * torch.randn(weights.shape, generator=generator))
    for part in (model.module, model.tokenizer):
        part.save_pretrained(place)
    return Run(place.name, seed, 1, ({},), headscope.load(place).weights_sha256)


if __name__ == "__main__":
    main()
