"""The cost of all head types of a decoder, or of other reducers, as a ratio to the bare model's forward passes.

    python benchmarks/decoders.py [--model smollm2] [--texts 200] [--tokens 512] [--apart]
    python benchmarks/decoders.py --corpus en_ewt-ud-dev.conllu --reducers surface relations

Every batch is run bare and then measured, in this one process, so that both sides share what else the machine does.
The first batch, on which the capture is verified, is told apart.
"""

import argparse
import time
from collections.abc import Iterator
from random import Random
from statistics import quantiles

import torch

import headscope
from headscope.capture.passes.stream import Plan, Stream
from headscope.corpora import Document, Span, summarize
from headscope.runner import resolve_reducers
from headscope.runner.accumulate import accumulate
from headscope.runner.local import open_stream

HEAD_TYPES = ("nearby_tokens", "sinks", "induction", "retrieval", "streaming", "copying")


def main() -> None:
    """Print the ratio of all head types together, or of each of them alone."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--model", default="smollm2")
    arguments.add_argument("--texts", type=int, default=200)
    arguments.add_argument("--tokens", type=int, default=512)
    arguments.add_argument("--corpus", help="in place of generated texts")
    arguments.add_argument("--reducers", nargs="+", default=HEAD_TYPES)
    arguments.add_argument("--apart", action="store_true", help="each of them alone as well, which takes longer")
    given = arguments.parse_args()
    model = headscope.load(given.model, task="causal-lm")  # whose logits `copying` reads
    generated = generate_texts(given.texts, given.tokens)
    documents, plan = list(headscope.read(given.corpus) if given.corpus else generated), Plan(cut=False)
    summary = summarize(documents)
    chosen = {"all of them": resolve_reducers(given.reducers, summary)}
    chosen |= {name: resolve_reducers([name], summary) for name in (given.reducers if given.apart else ())}
    measuring = {
        name: accumulate(open_stream(model, documents, reducers, plan), reducers) for name, reducers in chosen.items()
    }
    bare: list[float] = []
    tokens = 0
    seconds: dict[str, list[float]] = {name: [] for name in chosen}
    for portion in Stream(documents, (model,)):
        start = time.perf_counter()
        with torch.inference_mode():
            model.module(**portion.batches[0].inputs)
        bare.append(time.perf_counter() - start)
        tokens += int(portion.batches[0].encoder.real.sum())
        for name, sums in measuring.items():
            start = time.perf_counter()
            next(sums)
            seconds[name].append(time.perf_counter() - start)
    print(f"{given.model}, {len(documents):,} texts, {tokens:,} tokens in {len(bare)} batches; bare: {sum(bare):.1f} s")
    for name, of_batches in seconds.items():
        ratios = [measured / alone for measured, alone in zip(of_batches, bare, strict=True)]
        low, median, high = quantiles(ratios[1:], n=4)
        print(
            f"{name}: {sum(of_batches) / sum(bare):.2f} in all; the first batch {ratios[0]:.2f}, the others "
            f"{median:.2f} (half of them {low:.2f} to {high:.2f})",
            flush=True,
        )


def generate_texts(count: int, tokens: int) -> Iterator[Document]:
    """Random tokens that are repeated, of which four are a needle and, where they come again, its answer."""
    half = tokens // 2 - 1
    for number in range(count):
        places = [place / 10**6 for place in Random(number).sample(range(10**6), half)] * 2
        spans = (Span(9, 13, "needle", "needle"), Span(half + 9, half + 13, "answer", "answer"))
        words = tuple(f"t{place}" for place in places)
        yield Document(f"text {number}", words, spans=spans, random_tokens=tuple(places))


if __name__ == "__main__":
    main()
