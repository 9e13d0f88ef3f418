"""Statistics from a sample of query rows: their cost beside the bare model's, and how often their intervals are right.

    python benchmarks/sampling.py [--lengths 8192 32768] [--rows 256] [--rounds 3] [--exact-to 8192]
    python benchmarks/sampling.py --cover TEXT [--model smollm2] [--lengths 8192] [--rows 256] [--repetitions 200]

The cost is that of `surface`. Each text of random tokens is read by the bare model, then measured from a sample, then
exactly, in this one process, so that all share what else the machine does; the first text, on which the capture is
verified, is left out. The model has random weights and the shape of a Llama.

With `--cover`, the beginning of a text is measured exactly once, sample by sample; from these sums the values and
intervals of any choice of samples follow without the model.
"""

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

import headscope
from headscope.capture.model.model import Model
from headscope.capture.passes.stream import Plan, Stream
from headscope.corpora import Document
from headscope.reducers import Surface
from headscope.runner.accumulate import accumulate
from headscope.runner.local import open_stream
from headscope.runner.row_sample import FIRST_ROWS, SAMPLES, RowSample, find_result
from ways.shapes import SHAPES, save_model

REDUCER = Surface()


def main() -> None:
    """Print the ratios of each length, or the shares of the values that their intervals cover."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--lengths", type=int, nargs="+", default=[8192, 32768])
    arguments.add_argument("--rows", type=int, default=256)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--exact-to", type=int, default=8192, help="longer texts are not measured exactly")
    arguments.add_argument("--cover", type=Path, metavar="TEXT")
    arguments.add_argument("--model", default="smollm2", help="with --cover")
    arguments.add_argument("--repetitions", type=int, default=200)
    given = arguments.parse_args()
    for length in given.lengths:
        if given.cover is not None:
            words = tuple(given.cover.read_text(encoding="utf-8").split())
            document = Document(given.cover.name, words)
            for line in report_coverage(given.model, document, length, given.rows, given.repetitions):
                print(line, flush=True)
            continue
        with TemporaryDirectory() as folder:
            save_model(SHAPES["llama"], length, Path(folder))
            model = headscope.load(folder)
        exact = length <= given.exact_to
        print(compare_cost(model, length, given.rows, given.rounds, exact=exact), flush=True)


def compare_cost(model: Model, length: int, rows: int, rounds: int, *, exact: bool) -> str:
    """The cost of a sample, and of all rows, in passes of the bare model."""
    documents = [generate_text(length, seed) for seed in range(rounds + 1)]
    plans = {f"{rows} rows": Plan(sample_queries=rows)} | ({"all rows": Plan()} if exact else {})
    measuring = {
        name: accumulate(open_stream(model, documents, [REDUCER], plan), [REDUCER]) for name, plan in plans.items()
    }
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    for portion in Stream(documents, (model,)):
        start = time.perf_counter()
        with torch.inference_mode():
            model.module(**portion.batches[0].inputs)
        seconds["bare"].append(time.perf_counter() - start)
        for name, sums in measuring.items():
            start = time.perf_counter()
            next(sums)
            seconds[name].append(time.perf_counter() - start)
    bare = seconds.pop("bare")[1:]
    shown = []
    for name, times in seconds.items():
        ratios = [way / alone for way, alone in zip(times[1:], bare, strict=True)]
        shown.append(f"{name} {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    return f"{length:,} tokens, bare {median(bare):.2f} s: {'; '.join(shown)}"


def generate_text(length: int, seed: int) -> Document:
    """A text of random tokens."""
    places = tuple(place / 10**6 for place in Random(seed).choices(range(10**6), k=length))
    return Document(f"text {seed}", tuple(f"t{place}" for place in places), random_tokens=places)


def report_coverage(name: str, document: Document, length: int, rows: int, repetitions: int) -> Iterator[str]:
    """How often the intervals of samples of a text cover the values of all of its rows."""
    model = headscope.load(name)
    portion = next(iter(Stream([document], (model,), Plan(max_tokens=length, cut=True))))
    (batch,), (capture,) = portion.batches, portion.captures
    (attention_type,) = model.layers
    drawn = RowSample.draw(batch, attention_type, rows, seed=0)
    if drawn is None:
        raise SystemExit(f"{rows} rows are all of a text of {batch.encoder.length:,} tokens; give a longer one.")
    every = replace(drawn, starts=range(FIRST_ROWS, FIRST_ROWS + drawn.step))
    facts, observed = REDUCER.prepare(batch, attention_type), defaultdict(list)

    def look(attention: Any) -> None:
        observed[attention.layer].append((attention.rows, REDUCER.observe(facts, attention)))

    capture.run(batch, look, chosen_rows={attention_type: [*every.blocks]})
    counts = {name: count.numpy() for name, count in REDUCER.count(facts).items()}
    exact = estimate(every, observed, counts)
    generator, inside = np.random.default_rng(0), Counter[str]()
    for _ in range(repetitions):
        starts = FIRST_ROWS + generator.choice(every.step, SAMPLES, replace=False)
        table = estimate(replace(every, starts=starts.tolist()), observed, counts)
        for variable in exact.data_vars:
            if f"{variable}_lower" in table:
                lower, upper = (table[f"{variable}_{end}"].values for end in ("lower", "upper"))
                covers = (lower <= exact[variable]) & (exact[variable] <= upper)
                inside[str(variable)] = inside[str(variable)] + covers
        widths = {v: float((table[f"{v}_upper"] - table[f"{v}_lower"]).mean()) / 2 for v in inside}
    covered = {name: (count / repetitions).values[(exact[name] > 0).values] for name, count in inside.items()}
    covered = {name: shares for name, shares in covered.items() if shares.size and (shares < 1).any()}
    shares = np.concatenate([*covered.values()])
    yield (
        f"{model.name}, {batch.encoder.length:,} tokens, {rows} rows, {repetitions} repetitions: intervals cover "
        f"{shares.mean():.3f} of {shares.size:,} values; {(shares >= 0.9).mean():.3f} of the values in 90 % or more"
    )
    for variable, of_variable in covered.items():
        yield (
            f"{variable}: {of_variable.mean():.3f} (least {of_variable.min():.2f}); mean value "
            f"{float(exact[variable].mean()):.3f} ± {widths[variable]:.4f}"
        )


def estimate(sample: RowSample, observed: dict[int, list[Any]], counts: dict[str, np.ndarray]) -> Any:
    """The table of some samples, given the sums of the blocks of all."""
    wanted = {start % sample.step for start in sample.starts}

    def keep(blocks: Sequence[Any]) -> list[Any]:
        return [block for block in blocks if block[0].step is None or block[0].start % sample.step in wanted]

    layers = [sample.estimate(keep(observed[layer])) for layer in sorted(observed)]
    return find_result(REDUCER, {name: np.stack([sums[name].numpy() for sums in layers]) for name in layers[0]}, counts)


if __name__ == "__main__":
    main()
