"""Damaged and crafted files by the thousand: each is read as what it says or refused in a sentence, or this stops.

    python benchmarks/fuzz.py [--corpora 2000] [--tables 400] [--lists 100] [--seed 0]

Half of the tables have one bit that changed, the other half is crafted; so for lists of runs and manifests. The
mutations are those of `tests/mutations`.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from analyse.tables import RELATIONS, head_table, texts
from headscope import heads
from mutations import count
from mutations.corpora import SAMPLES, try_corpus
from mutations.lists import try_list, try_manifest
from mutations.tables import flip, try_table


def main() -> None:
    """Count what is read and what is refused, and print a table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--corpora", type=int, default=2000)
    arguments.add_argument("--tables", type=int, default=400)
    arguments.add_argument("--lists", type=int, default=100)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = heads.write_table(head_table(texts(np.random.default_rng(89)), RELATIONS), folder / "heads.nc")

        def try_any_corpus(chance: random.Random) -> str:
            return try_corpus(folder, chance.choice([*SAMPLES]), chance)

        print(f"{'files':32} {'number':>8} {'read':>8} {'refused':>8} {'seconds':>8}")
        attempts: dict[str, tuple[int, Callable[[random.Random], str]]] = {
            "corpora, all formats": (given.corpora, try_any_corpus),
            "tables with one bit changed": (given.tables // 2, partial(flip, table, heads.read_table(table))),
            "tables, crafted": (given.tables - given.tables // 2, partial(try_table, table)),
            "lists of runs": (given.lists // 2, partial(try_list, folder / "runs")),
            "manifests": (given.lists - given.lists // 2, partial(try_manifest, folder / "manifests")),
        }
        for title, (times, attempt) in attempts.items():
            start = time.perf_counter()
            _print_row(title, count(attempt, times, given.seed), time.perf_counter() - start)


def _print_row(title: str, results: Counter[str], seconds: float) -> None:
    print(f"{title:32} {results.total():8,} {results['read']:8,} {results['refused']:8,} {seconds:8.1f}")


if __name__ == "__main__":
    main()
