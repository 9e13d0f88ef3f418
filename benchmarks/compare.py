"""The time of `relations` and `surface` in this source tree, as a ratio to another one, such as an older commit.

    python benchmarks/compare.py TREEBANK --against PATH/src [--rounds 5] [--sentences 500] [--texts 96] [--cpu]

Each tree runs in a process of its own, which loads everything once. In a round both measure the same reducer, one
after the other and in alternating order, so that a machine that gets slower gets slower for both. A ratio is taken
within a round; the report has the median over the rounds. Both trees must give the same scores.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parents[1] / "src"
CASES = {
    # reducer: (model, corpus, a variable that both trees must agree on)
    "relations": ("minilm", "treebank", "relation_accuracy"),
    "surface": ("BERT-base shape", "texts of 128 tokens", "mass_previous"),
}
WORDS = ("the", "dog", "house", "was", "red", "and", "old", "by", "in", "of", "water", "day", "said", "people", ".")


def main() -> None:
    """Time both trees in turn and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("treebank", type=Path)
    parser.add_argument("--against", type=Path, help="the folder `src` of the other tree")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=500, help="the first so many of the treebank")
    parser.add_argument("--texts", type=int, default=96, help="for `surface`, of 128 tokens each")
    parser.add_argument("--cpu", action="store_true", help="seconds of the processor, for a machine that others use")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        clock = time.process_time if arguments.cpu else time.perf_counter
        _work(arguments.treebank, arguments.sentences, arguments.worker, clock)
        return
    if arguments.against is None:
        parser.error("name the other tree: --against PATH/src")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as processes:
        _save_model(Path(folder), arguments.texts)
        trees = {"this": HERE, "other": arguments.against.resolve()}
        workers = {name: processes.enter_context(_start(source, arguments, folder)) for name, source in trees.items()}
        for line in _report(workers, arguments.rounds):
            print(line, flush=True)


def _report(workers: dict[str, subprocess.Popen[str]], rounds: int) -> Iterator[str]:
    yield "| reducer | model and corpus | this tree, s | other tree, s | ratio (least to most) |"
    yield "| --- | --- | ---: | ---: | ---: |"
    for reducer, (model, corpus, variable) in CASES.items():
        seconds: dict[str, list[float]] = {name: [] for name in workers}
        for number in range(rounds + 1):
            order = list(workers) if number % 2 else list(workers)[::-1]
            answers = {name: _ask(workers[name], reducer) for name in order}
            if answers["this"]["mean"] != answers["other"]["mean"]:
                raise SystemExit(f"the two trees differ in {variable}: {answers}")
            for name, answer in answers.items():
                if number:  # the first round warms up
                    seconds[name].append(answer["seconds"])
        ratios = [this / other for this, other in zip(seconds["this"], seconds["other"], strict=True)]
        yield (
            f"| `{reducer}` | {model}, {corpus} | {median(seconds['this']):.2f} | {median(seconds['other']):.2f} | "
            f"**{median(ratios):.2f}** ({min(ratios):.2f} to {max(ratios):.2f}) |"
        )


@contextmanager
def _start(source: Path, arguments: argparse.Namespace, folder: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, __file__, str(arguments.treebank), "--sentences", str(arguments.sentences)]
    command += ["--cpu"] if arguments.cpu else []
    environment = {**os.environ, "PYTHONPATH": str(source)}
    with subprocess.Popen(
        [*command, "--worker", folder], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as worker:
        home = Path(_read(worker)["home"])
        if source not in home.parents:
            raise SystemExit(f"{source} holds no headscope: {home} was imported in its place.")
        yield worker
        assert worker.stdin is not None
        worker.stdin.close()


def _ask(worker: subprocess.Popen[str], reducer: str) -> dict[str, Any]:
    assert worker.stdin is not None
    print(reducer, file=worker.stdin, flush=True)
    return _read(worker)


def _read(worker: subprocess.Popen[str]) -> dict[str, Any]:
    """The next line of JSON that a worker prints."""
    assert worker.stdout is not None
    for line in worker.stdout:
        if line.startswith("{"):
            return json.loads(line)
    raise SystemExit("a worker ended before it answered.")


def _work(treebank: Path, sentences: int, folder: Path, clock: Callable[[], float]) -> None:
    """Measure what each line of the standard input asks for; both trees are asked by names that they have."""
    from itertools import islice

    import headscope
    from headscope.corpora import Document

    try:  # the fold alone: `headscope.measure` also analyses the table
        from headscope.runner import measure
    except ImportError:  # as older versions have it
        from headscope.measure.run import measure

    texts = json.loads((folder / "texts.json").read_text())
    inputs = {
        "relations": (headscope.load("minilm"), list(islice(headscope.read(treebank), sentences))),
        "surface": (headscope.load(folder), [Document(str(i), tuple(words)) for i, words in enumerate(texts)]),
    }
    print(json.dumps({"home": headscope.__file__}), flush=True)
    for line in sys.stdin:
        reducer = line.strip()
        model, documents = inputs[reducer]
        start = clock()
        table = measure(model, documents, [reducer])
        seconds = clock() - start
        print(json.dumps({"seconds": seconds, "mean": float(table[CASES[reducer][2]].mean())}), flush=True)


def _save_model(folder: Path, count: int) -> None:
    """A model of BERT-base's shape with random weights, and texts for it."""
    import numpy as np
    import torch
    from transformers import AutoTokenizer, BertConfig, BertModel

    from headscope.capture.open.loading import source

    torch.manual_seed(0)
    BertModel(BertConfig()).save_pretrained(folder)
    AutoTokenizer.from_pretrained(source("minilm")).save_pretrained(folder)
    rng = np.random.default_rng(0)
    texts = [rng.choice(WORDS, size=126).tolist() for _ in range(count)]
    (folder / "texts.json").write_text(json.dumps(texts))


if __name__ == "__main__":
    main()
