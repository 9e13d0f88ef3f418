"""The cost of all head types of a decoder, as a ratio to the bare model's forward passes.

    python benchmarks/decoders.py [--model smollm2] [--texts 12] [--tokens 512] [--rounds 5] [--together]

Everything runs in this one process and in turn, round after round. A ratio is taken within a round, and the median over
the rounds is reported.
"""

import argparse
import time
from collections.abc import Iterator
from random import Random
from statistics import median

import torch

import headscope
from headscope.capture.stream import Stream
from headscope.corpora import Document, Span, summarize
from headscope.runner import measure, resolve_reducers

HEAD_TYPES = ("nearby_tokens", "sinks", "induction", "retrieval", "streaming", "copying")


def main() -> None:
    """Print the ratio of each head type and of all of them together."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--model", default="smollm2")
    arguments.add_argument("--texts", type=int, default=12)
    arguments.add_argument("--tokens", type=int, default=512)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--together", action="store_true", help="not each of them alone, which takes longer")
    given = arguments.parse_args()
    model = headscope.load(given.model, task="causal-lm")  # whose logits `copying` reads
    documents = list(generate_texts(given.texts, given.tokens))
    prepared = [batch for portion in Stream(documents, (model,)) for batch in portion.batches]
    alone = () if given.together else HEAD_TYPES
    chosen = {name: resolve_reducers([name], summarize(documents)) for name in alone}
    chosen["all of them"] = resolve_reducers(HEAD_TYPES, summarize(documents))
    ratios: dict[str, list[float]] = {name: [] for name in chosen}
    for _ in range(given.rounds):
        start = time.perf_counter()
        with torch.inference_mode():
            for batch in prepared:
                model.module(**batch.inputs)
        bare = time.perf_counter() - start
        for name, reducers in chosen.items():
            start = time.perf_counter()
            measure(model, documents, reducers)
            ratios[name].append((time.perf_counter() - start) / bare)
        print(f"bare: {bare:.1f} s", {name: round(of_rounds[-1], 3) for name, of_rounds in ratios.items()}, flush=True)
    tokens = sum(int(batch.encoder.real.sum()) for batch in prepared)
    print(f"{given.model}, {given.texts} texts, {tokens:,} tokens, {given.rounds} rounds; bare: {bare:.1f} s")
    for name, of_rounds in ratios.items():
        print(f"{name}: {median(of_rounds):.2f} ({min(of_rounds):.2f} to {max(of_rounds):.2f})")


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
