"""What `surface` costs against the bare model, from short texts to long ones, in time and memory.

    python benchmarks/length.py [--lengths 128 512 2048 8192] [--rounds 3] [--write docs/performance.md]

A Llama of 4 layers, 8 heads, 2 key-value heads and width 512 with random weights reads one text of random tokens.
Time is taken in one process, the two in turn; memory is the peak of a process of its own for each.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import torch
from transformers import LlamaConfig, LlamaModel

import headscope
from headscope.capture import Batch, Capture, Model, Tokens
from headscope.corpora import Document
from headscope.measure import Surface

BEGIN, END = "<!-- benchmarks/length.py writes from here -->", "<!-- to here, length -->"


def main() -> None:
    """Measure every length, print a table and, if asked to, put it into a page."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--lengths", type=int, nargs="+", default=[128, 512, 2048, 8192])
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--write", type=Path)
    arguments.add_argument("--peak-memory-of", choices=["bare", "surface"], help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.peak_memory_of:
        _ways(given.lengths[0])[given.peak_memory_of]()
        # Not `ru_maxrss`: a new process inherits that from the one that started it.
        (peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
        print(int(peak.split()[1]) / 1024)
        return
    report = "\n".join(_report(given.lengths, given.rounds))
    print(report)
    if given.write:
        page = given.write.read_text()
        given.write.write_text(f"{page.split(BEGIN)[0]}{BEGIN}\n\n{report}\n\n{END}{page.split(END)[1]}")


def _ways(length: int) -> dict[str, Callable[[], object]]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=1000, hidden_size=512, intermediate_size=1376, num_hidden_layers=4, num_attention_heads=8,
            num_key_value_heads=2, max_position_embeddings=length,
        )  # fmt: skip
        model = Model.of(LlamaModel(config), headscope.load("minilm").tokenizer, name="a Llama's shape")
        ids = torch.randint(3, 1000, (1, length))
    real, position = torch.ones_like(ids, dtype=torch.bool), torch.arange(length)[None]
    tokens = Tokens(ids, real, position, position, cls=~real, sep=~real, punctuation=ids % 17 == 0)
    inputs = {"input_ids": ids, "attention_mask": real.long()}
    batch = Batch((Document("text", ("word",)),), tokens, None, 1, inputs)
    capture, reducer = Capture(model, "interface"), Surface()

    def bare() -> None:
        with torch.inference_mode():
            model.module(**inputs, use_cache=False)

    return {"bare": bare, "surface": lambda: capture.observe(batch, reducer.observe)}


def _report(lengths: list[int], rounds: int) -> Iterator[str]:
    yield "| tokens | bare model, s | with `surface`, s | ratio | bare model, MiB | with `surface`, MiB | ratio |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for length in lengths:
        ways = _ways(length)
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for counted in range(-1, rounds):
            for name, way in ways.items():
                start = time.perf_counter()
                way()
                if counted >= 0:
                    seconds[name].append(time.perf_counter() - start)
        bare, surface = median(seconds["bare"]), median(seconds["surface"])
        ratio = median(b / a for a, b in zip(seconds["bare"], seconds["surface"], strict=True))
        memory = {name: _peak_memory(name, length) for name in ways}
        yield (
            f"| {length:,} | {bare:.2f} | {surface:.2f} | **{ratio:.2f}** | "
            f"{memory['bare']:,.0f} | {memory['surface']:,.0f} | **{memory['surface'] / memory['bare']:.2f}** |"
        )


def _peak_memory(way: str, length: int) -> float:
    command = [sys.executable, __file__, "--lengths", str(length), "--peak-memory-of", way]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
