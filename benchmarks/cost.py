"""What a billion words cost: words a second and bytes of sums, by shape of model; the billion is on paper.

    python benchmarks/cost.py en_ewt-ud-dev.conllu [--limit 1000] [--reducers surface relations] [--rounds 3]

MiniLM and SmolLM2 have real weights; BERT-base has random ones and MiniLM's tokenizer. Each round measures all models,
one after the other, in this one process. Loading is left out: with a billion words it is nothing.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator
from statistics import median

import torch
from transformers import AutoModel, BertConfig

import headscope
from headscope.capture.model.model import Model
from headscope.corpora import Corpus
from headscope.runner.local import Run

WORDS, MACHINES = 10**9, (1, 8, 64)
SECONDS_A_DAY = 86_400


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("corpus")
    arguments.add_argument("--limit", type=int, default=1000)
    arguments.add_argument("--reducers", nargs="+", default=["surface", "relations"])
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    corpus = headscope.read(given.corpus, limit=given.limit)
    models = list(load_models())
    rounds: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
    for _ in range(given.rounds):
        for name, model in models:
            rounds[name].append(measure(model, corpus, given.reducers))
    days = " | ".join(f"days on {machines}" for machines in MACHINES)
    print(f"| model | layers x heads | parameters | words a second | GFLOP/s | bytes of sums a head | {days} |")
    print(f"| --- | ---: | ---: | ---: | ---: | ---: |{' ---: |' * len(MACHINES)}")
    for name, model in models:
        print(make_row(name, model, rounds[name], corpus), flush=True)


def load_models() -> Iterator[tuple[str, Model]]:
    """The models by name."""
    minilm = headscope.load("minilm")
    yield "MiniLM", minilm
    torch.manual_seed(0)
    module = AutoModel.from_config(BertConfig(vocab_size=len(minilm.tokenizer)))
    yield "BERT-base", headscope.load(module, minilm.tokenizer)
    yield "SmolLM2-135M", headscope.load("smollm2")


def measure(model: Model, corpus: Corpus, reducers: list[str]) -> tuple[float, int]:
    """The seconds that all sums of a corpus take, and the bytes that they are."""
    run = Run.open(model, corpus, reducers)
    start = time.perf_counter()
    sums = run.add_up()
    return time.perf_counter() - start, sum(value.nbytes for value in sums.values.values())


def make_row(name: str, model: Model, rounds: list[tuple[float, int]], corpus: Corpus) -> str:
    """A line of the table."""
    documents = list(corpus)
    words = sum(len(document.words) for document in documents)
    tokens = sum(
        len(ids) for ids in model.tokenizer([list(d.words) for d in documents], is_split_into_words=True).input_ids
    )
    seconds, size = median(each for each, _ in rounds), float(rounds[0][1])
    shape, parameters = model.shape, sum(each.numel() for each in model.module.parameters())
    embedded = model.module.get_input_embeddings().weight.numel()
    (attention_type,) = shape.layers
    speed = words / seconds
    days = " | ".join(f"{WORDS / speed / SECONDS_A_DAY / machines:,.2g}" for machines in MACHINES)
    rate = 2 * (parameters - embedded) * tokens / seconds / 1e9
    heads = f"{shape.layers[attention_type]} x {shape.heads[attention_type]}"
    size /= shape.together
    return f"| {name} | {heads} | {parameters / 1e6:.0f} M | {speed:,.0f} | {rate:.0f} | {size:,.0f} | {days} |"


if __name__ == "__main__":
    main()
