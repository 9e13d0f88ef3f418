"""The cost of measuring, as ratios to the bare model and to what one would write by hand.

    python benchmarks/speed.py TREEBANK [--coreference ONTOGUM/conll] [--rounds 5] [--write docs/performance.md]

Everything runs in this one process and in turn, round after round, so that a machine that gets
slower gets slower for all. A ratio is taken within a round, and the median over the rounds is reported.
Memory is the peak of a process of its own.
"""

import argparse
import os
import platform
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
import transformers
import xarray as xr
from transformers import BertConfig, BertModel

import headscope
from headscope.capture import Model
from headscope.capture.passes.stream import Stream
from headscope.corpora import Document, summarize
from headscope.reducers import REDUCERS
from headscope.reducers.relations import Relations
from headscope.reducers.support.permutations import PERMUTATIONS, with_permutations
from headscope.runner import measure, resolve_reducers

BEGIN, END = "<!-- benchmarks/speed.py writes from here -->", "<!-- to here -->"
WORDS = ("the", "dog", "house", "was", "red", "and", "old", "by", "in", "of", "water", "day", "said", "people", ".")
MEMORY_SIZES = (2_000, 8_000, 32_000)


@dataclass(frozen=True)
class Row:
    """One line of the table: the ratio of two medians' rounds, and what it should be."""

    what: str
    against: str
    seconds: float
    against_seconds: float
    ratios: Sequence[float]
    goal: str


def main() -> None:
    """Run all comparisons, print a table and, if asked to, put it into a page."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("treebank", type=Path)
    arguments.add_argument("--coreference", type=Path, help="a folder of OntoGUM, for all reducers together")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--write", type=Path)
    arguments.add_argument("--peak-memory-of", type=int, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.peak_memory_of:
        print(_peak_memory_here(given.peak_memory_of))
        return
    rows = [*_relations(given.treebank, given.rounds), *_surface(given.rounds)]
    if given.coreference:
        rows += _together(given.treebank, given.coreference, given.rounds)
    report = "\n".join(_report(rows, given.treebank.name, given.rounds))
    print(report)
    if given.write:
        page = given.write.read_text()
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        given.write.write_text(f"{before}{BEGIN}\n\n{report}\n\n{END}{after}")


def _relations(treebank: Path, rounds: int) -> Iterator[Row]:
    model = headscope.load("minilm")
    documents = list(headscope.read(treebank))
    prepared = [batch for portion in Stream(documents, (model,)) for batch in portion.batches]
    relations = [with_permutations(Relations.for_corpus(summarize(documents)), 0)]
    seconds, results = _in_turn(
        rounds,
        bare=lambda: _bare(model, prepared),
        measured=lambda: measure(model, documents, relations),
        by_hand=lambda: _one_sentence_at_a_time(model, documents),
    )
    _check_same(results["measured"], results["by_hand"])
    what = f"`relations`, minilm, {len(documents):,} sentences"
    yield _row(what, "the bare model's batched forward pass", seconds, "measured", "bare", "at most 1.25")
    yield _row(
        what, "one sentence at a time, `output_attentions=True`, numpy", seconds, "measured", "by_hand", "at most 0.5"
    )


def _surface(rounds: int) -> Iterator[Row]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Model.from_module(BertModel(BertConfig()), headscope.load("minilm").tokenizer, name="BERT-base shape")
    draw = np.random.default_rng(0)
    documents = [Document(f"{i}", tuple(draw.choice(WORDS, size=126))) for i in range(96)]
    prepared = [batch for portion in Stream(documents, (model,)) for batch in portion.batches]
    assert {batch.encoder.length for batch in prepared} == {128}
    seconds, _ = _in_turn(
        rounds, bare=lambda: _bare(model, prepared), measured=lambda: measure(model, documents, ["surface"])
    )
    what = f"`surface`, BERT-base shape, {len(documents)} texts of 128 tokens"
    yield _row(what, "the bare model's batched forward pass", seconds, "measured", "bare", "at most 1.15")


def _together(treebank: Path, coreference: Path, rounds: int) -> Iterator[Row]:
    """All reducers that fit a treebank and texts with coreference, and what the permutations for p-values add to
    them.
    """
    model = headscope.load("minilm")
    documents = [*headscope.read(treebank), *headscope.read(coreference, format="ontogum")]
    summary = summarize(documents)
    names = [name for name, reducer in REDUCERS.items() if reducer.supports(summary)]
    resolved = resolve_reducers(names, summary)
    plain, permuted = ([with_permutations(reducer, count) for reducer in resolved] for count in (0, PERMUTATIONS))
    (alone,) = (reducer for reducer in plain if isinstance(reducer, Relations))
    seconds, _ = _in_turn(
        rounds,
        together=lambda: measure(model, documents, plain),
        alone=lambda: measure(model, documents, [alone]),
        permuted=lambda: measure(model, documents, permuted),
    )
    what = f"{', '.join(f'`{name}`' for name in names)}, minilm, {len(documents):,} sentences and whole texts"
    yield _row(what, "`relations` alone", seconds, "together", "alone", "at most 1.5")
    yield _row(
        f"the same with {PERMUTATIONS} permutations for p-values",
        "without permutations",
        seconds,
        "permuted",
        "together",
        "none set",
    )


def _bare(model: Model, prepared: list) -> None:
    with torch.inference_mode():
        for batch in prepared:
            model.module(**batch.inputs)


def _one_sentence_at_a_time(model: Model, documents: list[Document]) -> dict[str, np.ndarray]:
    """The counts of a careful script: weights to numpy, words by summing and averaging, arg-max over the others."""
    right: defaultdict[str, np.ndarray] = defaultdict(lambda: np.zeros((6, 12, 2)))
    model.module.set_attn_implementation("eager")
    for document in documents:
        encoded = model.tokenizer([list(document.words)], is_split_into_words=True, return_tensors="pt")
        with torch.inference_mode():
            attentions = model.module(**encoded, output_attentions=True).attentions
        weights = torch.cat(attentions).numpy()
        word_of = np.array([-1 if word is None else word for word in encoded.word_ids()])
        member = (word_of[:, None] == np.arange(len(document.words))).astype(np.float32)
        words = (member / member.sum(0).clip(1)).T @ (weights @ member)
        words[..., np.arange(words.shape[-1]), np.arange(words.shape[-1])] = 0
        best = np.stack([words.argmax(-1), words.argmax(-2)], axis=-1)
        for link in document.links:
            right[link.label] += best[:, :, link.source] == link.target
    model.module.set_attn_implementation("sdpa")
    return dict(right)


def _check_same(table: xr.Dataset, right: dict[str, np.ndarray]) -> None:
    """The two must have found the same heads, or a ratio of their times means nothing."""
    for label, hits in right.items():
        row = table.sel(relation=label)
        ours = (row["relation_accuracy"] * row["relation_count"]).transpose("layer", "head", "direction").values
        # A tie to the last bit may fall either way: one link of a thousand.
        assert np.abs(ours - hits).max() <= max(1, 0.001 * float(row["relation_count"])), label


def _in_turn(rounds: int, **ways: Callable[[], object]) -> tuple[dict[str, list[float]], dict[str, Any]]:
    seconds: dict[str, list[float]] = defaultdict(list)
    results = {name: way() for name, way in ways.items()}  # once, not counted
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            seconds[name].append(time.perf_counter() - start)
    return seconds, results


def _row(what: str, against: str, seconds: dict[str, list[float]], name: str, other: str, goal: str) -> Row:
    ratios = [a / b for a, b in zip(seconds[name], seconds[other], strict=True)]
    return Row(what, against, median(seconds[name]), median(seconds[other]), ratios, goal)


def _peak_memory_here(sentences: int) -> float:
    """MiB at the peak of measuring so many generated sentences with a model of two layers."""
    tokenizer = headscope.load("minilm").tokenizer
    config = BertConfig(hidden_size=96, num_hidden_layers=2, num_attention_heads=6, intermediate_size=96)
    measure(
        Model.from_module(BertModel(config), tokenizer),
        headscope.read(f"grammar:{sentences}"),
        ["surface", "relations"],
    )
    # Not `ru_maxrss`: a new process inherits that from the one that started it.
    (peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024


def _peak_memory(treebank: Path, sentences: int) -> float:
    command = [sys.executable, __file__, str(treebank), "--peak-memory-of", str(sentences)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _report(rows: list[Row], corpus: str, rounds: int) -> Iterator[str]:
    yield f"{_processor()}, {torch.get_num_threads()} threads; Python {platform.python_version()}, "
    yield f"torch {torch.__version__}, transformers {transformers.__version__}; {corpus}; medians of {rounds} rounds."
    yield ""
    yield "| what | against | seconds | against | ratio (least to most) | wanted |"
    yield "| --- | --- | ---: | ---: | ---: | --- |"
    for row in rows:
        ratio = f"**{median(row.ratios):.2f}** ({min(row.ratios):.2f} to {max(row.ratios):.2f})"
        yield f"| {row.what} | {row.against} | {row.seconds:.2f} | {row.against_seconds:.2f} | {ratio} | {row.goal} |"
    yield ""
    yield "| generated sentences | peak memory of the process, MiB |"
    yield "| ---: | ---: |"
    for sentences in MEMORY_SIZES:
        yield f"| {sentences:,} | {_peak_memory(Path(corpus), sentences):,.0f} |"


def _processor() -> str:
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return f"{names[0].split(': ')[1] if names else platform.processor()}, {os.cpu_count()} cores"


if __name__ == "__main__":
    main()
