"""Damaged and crafted files of every format by the thousand: each is read as what it says or refused in a sentence.

    python benchmarks/fuzz.py [--cases 5000] [--seeds 0 1 2]

The cases are spread over the seeds and over all formats: corpora, and the samples of `tests/mutations/files.py`. A
traceback is printed with its seed, and the program ends with exit code 1.
"""

import argparse
import random
import resource
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from itertools import cycle, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from mutations.corpora import SAMPLES as CORPORA
from mutations.corpora import try_corpus
from mutations.files import SAMPLES, Samples
from mutations.lists import try_manifest

RESULTS = ("refused", "same", "other", "read", "traceback")
"""What becomes of a file: it is refused, read with equal values, with others, or read as a corpus; or it is a fault."""


def main() -> None:
    """Count what is read and what is refused, and print a table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--cases", type=int, default=5000)
    arguments.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    given = arguments.parse_args()
    results: dict[str, Counter[str]] = defaultdict(Counter)
    longest: dict[str, float] = defaultdict(float)
    with tempfile.TemporaryDirectory() as name:
        attempts = _list_attempts(Path(name))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number, kind in enumerate(islice(cycle(attempts), given.cases)):
            seed = given.seeds[number % len(given.seeds)]
            start = time.perf_counter()
            try:
                result = attempts[kind](random.Random(f"{seed} {number}"))
            except Exception as error:
                result = "traceback"
                print(f"{kind}, seed {seed!r}, case {number}: {type(error).__name__}: {str(error)[:300]}")
            results[kind][result] += 1
            longest[kind] = max(longest[kind], time.perf_counter() - start)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{'files':28} {'cases':>7}", *(f"{result:>9}" for result in RESULTS), f"{'longest':>9}")
    for kind, counts in results.items():
        _print_row(kind, counts, longest[kind])
    together = sum(results.values(), Counter[str]())
    _print_row("all", together, max(longest.values()))
    print(f"peak {peak / 1000:,.0f} MB, of which {before / 1000:,.0f} MB before the first case")
    sys.exit(1 if together["traceback"] else 0)


def _list_attempts(folder: Path) -> dict[str, Callable[[random.Random], str]]:
    """Return what makes and reads a broken file, by its kind."""
    samples = Samples(folder)
    for kind in SAMPLES:
        samples.write(kind)
    corpora = {format: partial(try_corpus, folder, format) for format in CORPORA}
    files = {kind: partial(samples.attempt, kind) for kind in SAMPLES}
    return corpora | files | {"manifest that is written over": partial(try_manifest, folder / "written")}


def _print_row(title: str, counts: Counter[str], longest: float) -> None:
    print(f"{title:28} {counts.total():7,}", *(f"{counts[result]:9,}" for result in RESULTS), f"{longest:7.2f} s")


if __name__ == "__main__":
    main()
