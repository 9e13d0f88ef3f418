"""The cost of `surface`, from short texts to long ones, beside the bare model and four other ways to the same numbers.

    python benchmarks/length.py [--lengths 128 512 2048 8192 32768] [--rounds 3] [--save runs.jsonl]
        [--write docs/performance.md] [--figure docs/images/length.svg]

Two models with random weights, of the shapes of a Llama and of BERT-base, each read texts of random tokens, one
after the other: as many as make 2,048 tokens, one at least.
Every way (`benchmarks/ways`, a script each) is a process of its own, and computes the same statistics; that they
are the same is checked in the run. In a round all ways take their turn, so that a machine that gets slower gets
slower for all. A way that goes over a limit of time or memory is not tried on longer texts. With `--save` a killed
run goes on where it stopped, and `--from` prints its tables and plots its figure again.

TransformerLens and nnsight belong into headscope's environment, so that all ways start from the same packages:
`pip install -c constraints.txt transformer-lens==4.3.0 nnsight==0.8.1`. Where they cannot be, give their own
interpreter: `--python nnsight=/elsewhere/bin/python`.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from statistics import median

import torch
import transformers
from transformers.utils import logging as transformers_logging

from ways import results
from ways.figure import plot
from ways.process import Limits, watch
from ways.results import VARIABLES, Results, Run
from ways.shapes import SHAPES, save_model

BEGIN, END = "<!-- benchmarks/length.py writes from here -->", "<!-- to here, length -->"

WITNESSED = 2048
"""Up to so many tokens all ways are held to a witness in float64; beyond, to headscope."""

MAX_PASSES, TOKENS_TIMED = 3, 8192
"""A process times so many passes at most, and fewer where they come to more tokens; one at least."""

TOKENS = 2048
"""Of the texts of a pass, by default: statistics are of a corpus, and what is done once for it is not done for each
text."""


@dataclass(frozen=True)
class Way:
    """One of the ways that are compared.

    Attributes:
        label: for the reader.
        script: in `benchmarks/ways`.
        package: what it shows, and needs.
        install: how to get that.
    """

    label: str
    script: str
    package: str
    install: str = "`pip install -c constraints.txt .`"


WAYS = {
    "bare": Way("bare model", "bare.py", "transformers"),
    "headscope": Way("headscope", "headscope_surface.py", "headscope"),
    "output_attentions": Way("`output_attentions`, torch", "output_attentions.py", "transformers"),
    "numpy": Way("`output_attentions`, numpy", "numpy_notebook.py", "numpy"),
    "transformer_lens": Way(
        "TransformerLens",
        "transformer_lens_cache.py",
        "transformer_lens",
        "`pip install -c constraints.txt transformer-lens==4.3.0`",
    ),
    "nnsight": Way("nnsight", "nnsight_trace.py", "nnsight", "`pip install -c constraints.txt nnsight==0.8.1`"),
}
FOLDER = Path(__file__).parent / "ways"


def main() -> None:
    """Measure what is not measured yet, print the tables and, if asked to, put them into a page and plot them."""
    given = _arguments()
    if given.redraw:
        measured = results.read(given.redraw)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            measured = _measured(given, given.save or Path(temporary) / "runs.jsonl")
    report = "\n".join(_report(measured))
    print(report)
    if given.write:
        page = given.write.read_text()
        given.write.write_text(f"{page.split(BEGIN)[0]}{BEGIN}\n\n{report}\n\n{END}{page.split(END)[1]}")
    if given.figure:
        plot(measured, {name: way.label.replace("`", "") for name, way in WAYS.items()}, given.figure)


def _arguments() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--lengths", type=int, nargs="+", default=[128, 512, 2048, 8192, 32768])
    arguments.add_argument("--tokens", type=int, default=TOKENS, help="of the texts of a pass")
    arguments.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    arguments.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument(
        "--python", nargs="+", default=[], metavar="PACKAGE=INTERPRETER", help="for what has its own"
    )
    arguments.add_argument("--limit-seconds", type=float, default=900, help="of a process, loading included")
    arguments.add_argument("--limit-mib", type=float, default=18_000)
    arguments.add_argument("--save", type=Path, help="the file that runs are added to; the statistics go beside it")
    arguments.add_argument("--from", dest="redraw", type=Path, help="measure nothing, take what such a file holds")
    arguments.add_argument("--write", type=Path)
    arguments.add_argument("--figure", type=Path, help=".svg or .png; both are written")
    return arguments.parse_args()


def _measured(given: argparse.Namespace, path: Path) -> Results:
    """Run every way on all texts, `path` growing by a line a process."""
    transformers_logging.disable_progress_bar()
    machine = _machine()
    if not path.exists():
        results.append(path, [machine])
    results_so_far = results.read(path)
    if results_so_far.machine != machine:
        raise SystemExit(
            f"{path} was measured with {results_so_far.machine}, and this is {machine}; give another file."
        )
    interpreters = dict(pair.split("=", 1) for pair in given.python)
    versions = {name: _version(interpreters.get(WAYS[name].package, sys.executable), name) for name in given.ways}
    limits = Limits(given.limit_seconds, given.limit_mib)
    for shape in given.shapes:
        for length in given.lengths:
            with tempfile.TemporaryDirectory() as folder:
                texts = _Texts(
                    shape,
                    length,
                    max(1, given.tokens // length),
                    Path(folder),
                    path.with_name(f"{path.name}.numbers"),
                    limits,
                    interpreters,
                )
                for number in range(given.rounds):
                    for name in (name for name in given.ways if versions[name]):
                        if not results_so_far.done(shape, length, name, number):
                            run = texts.run(name, number, versions[name])
                            results.append(path, [run])
                            results_so_far.runs.append(run)
                            _print_run(run)
    return results_so_far


@dataclass(frozen=True)
class _Texts:
    """All runs on the texts of one length.

    Attributes:
        shape, length, texts: which texts, and their number.
        model: the folder for the weights, which are made when they are first needed.
        numbers: the folder for the statistics of each way.
        limits: of each process.
        interpreters: those that are not this one, by package.
    """

    shape: str
    length: int
    texts: int
    model: Path
    numbers: Path
    limits: Limits
    interpreters: Mapping[str, str]

    def run(self, name: str, number: int, version: str) -> Run:
        """Run a way once more, and compare its statistics."""
        passes = max(1, min(MAX_PASSES, TOKENS_TIMED // (self.length * self.texts)))
        interpreter = self.interpreters.get(WAYS[name].package, sys.executable)
        about = {"shape": self.shape, "length": self.length, "way": name, "round": number, "version": version}
        ended = watch(self._command(interpreter, WAYS[name].script, name, passes), self.limits)
        if ended.failure:
            return Run(**about, failure=ended.failure)
        answer = json.loads(ended.output.splitlines()[-1])
        against = "" if name == "bare" else self._reference(name)
        return Run(
            **about,
            pass_seconds=median(answer["seconds"]),
            process_seconds=ended.seconds - sum(answer["seconds"][1:]),
            peak_mib=answer["peak_mib"],
            against=against,
            differences=results.compare(self._file(name), self._file(against), way=name, against=against)
            if against
            else {},
        )

    def _reference(self, name: str) -> str:
        """Whose statistics those of a way are held to; nobody's where there are none."""
        if self.length > WITNESSED:
            return "headscope" if name != "headscope" and self._file("headscope").exists() else ""
        if not self._file("witness").exists():
            ended = watch(self._command(sys.executable, "witness.py", "witness", 1), self.limits)
            if ended.failure:
                raise SystemExit(f"the witness went {ended.failure} at {self.length:,} tokens; raise the limit.")
        return "witness"

    def _command(self, interpreter: str, script: str, name: str, passes: int) -> list[str]:
        if not (self.model / "config.json").exists():
            save_model(SHAPES[self.shape], self.length, self.model)
        self.numbers.mkdir(parents=True, exist_ok=True)
        options = {"model": self.model, "shape": self.shape, "length": self.length, "passes": passes}
        options["texts"] = self.texts
        options["out"] = self._file(name)
        return [interpreter, str(FOLDER / script), *(f"--{key}={value}" for key, value in options.items())]

    def _file(self, name: str) -> Path:
        return self.numbers / f"{self.shape}-{self.length}-{name}.npz"


def _version(interpreter: str, name: str) -> str:
    """The version of a way's package under an interpreter; empty, with a message, if it is not installed there."""
    package, beside = WAYS[name].package, ("torch", "transformers")
    ask = "import sys; from importlib.metadata import version; print(*(version(name) for name in sys.argv[1:]))"
    answer = subprocess.run([interpreter, "-c", ask, package, *beside], capture_output=True, text=True, check=False)
    if answer.returncode:
        print(f"{name}: left out, not installed for {interpreter}; {WAYS[name].install}", file=sys.stderr)
        return ""
    version, *others = answer.stdout.split()
    same = others == [metadata.version(other) for other in beside]
    return f"{package} {version}" + ("" if same else f" (with torch {others[0]}, transformers {others[1]})")


def _print_run(run: Run) -> None:
    what = run.failure or f"{run.pass_seconds:.3f} s a pass, {run.process_seconds:.1f} s, {run.peak_mib:,.0f} MiB"
    print(f"{run.shape} {run.length:,} {run.way} (round {run.round + 1}): {what}", file=sys.stderr, flush=True)


def _report(measured: Results) -> Iterator[str]:
    versions = {run.version for run in measured.runs if WAYS[run.way].package != "transformers"}
    yield f"{', '.join([*measured.machine.values(), *sorted(versions)])}; medians of {_rounds(measured)}."
    ways = [name for name in WAYS if any(run.way == name for run in measured.runs)]
    for name in (name for name in WAYS if name not in ways):
        yield f"Left out, not installed or not asked for: {WAYS[name].label} ({WAYS[name].install})."
    for shape in SHAPES:
        lengths = sorted({run.length for run in measured.runs if run.shape == shape})
        if lengths:
            yield from ("", f"### {SHAPES[shape].title}", "", *_agreement(measured, shape))
            yield from (
                "",
                "A pass over the texts, from token ids to statistics, as a multiple of the bare model's:",
                "",
            )
            columns = {"bare model, s": "bare"} | {WAYS[name].label: name for name in ways if name != "bare"}
            yield from _table(measured, shape, lengths, columns, _ratio)
            columns = {WAYS[name].label: name for name in ways}
            yield from ("", "The whole process, in seconds: start, loading, a warm-up and one pass:", "")
            yield from _table(measured, shape, lengths, columns, lambda point, _: f"{point.process_seconds:,.1f}")
            yield from ("", "The peak memory of the process, in MiB:", "")
            yield from _table(measured, shape, lengths, columns, lambda point, _: f"{point.peak_mib:,.0f}")


def _rounds(measured: Results) -> str:
    """The numbers of rounds; long texts may have fewer."""
    lengths: dict[int, list[int]] = {}
    for length in sorted({run.length for run in measured.runs}):
        lengths.setdefault(1 + max(run.round for run in measured.runs if run.length == length), []).append(length)
    return ", ".join(
        f"{rounds} round{'s' * (rounds > 1)} at {', '.join(f'{length:,}' for length in same_rounds)} tokens"
        for rounds, same_rounds in lengths.items()
    )


def _ratio(point: results.Point, name: str) -> str:
    return f"{point.pass_seconds:,.3g}" if name == "bare" else f"{point.pass_ratio:.2f}"


def _table(
    measured: Results,
    shape: str,
    lengths: list[int],
    columns: Mapping[str, str],
    cell: Callable[[results.Point, str], str],
) -> Iterator[str]:
    """A row a length, a column a way."""
    yield f"| tokens | {' | '.join(columns)} |"
    yield f"| ---: |{' ---: |' * len(columns)}"
    for length in lengths:
        cells = []
        for name in columns.values():
            point, failed = measured.point(shape, length, name), measured.failure(shape, length, name)
            if point is not None:
                text = cell(point, name)
                cells.append(f"**{text}**" if name == "headscope" else text)
            elif failed is not None:
                cells.append(failed.failure if failed.length == length else "not tried")
            else:
                cells.append("not run")
        yield f"| {length:,} | {' | '.join(cells)} |"


def _agreement(measured: Results, shape: str) -> Iterator[str]:
    """The largest differences between the statistics of all ways, and those that were not compared."""
    for against, whose in (("witness", "those of a witness in float64"), ("headscope", "headscope's")):
        runs = [run for run in measured.runs if run.shape == shape and run.against == against]
        if not runs:
            continue
        distance = max(run.differences.get("mean_distance", 0.0) for run in runs)
        rest = max(value for run in runs for name, value in run.differences.items() if name != "mean_distance")
        at = [f"{length:,}" for length in sorted({run.length for run in runs})]
        yield (
            f"At {', '.join(at)} tokens the statistics of all ways differ from {whose} by {rest:.0e} at most "
            f"(the mean distance by {distance:.0e} tokens)."
        )
        for way in {run.way: None for run in runs}:
            of_way = [run for run in runs if run.way == way]
            lacking = [f"`{name}`" for name in VARIABLES if any(name not in run.differences for run in of_way)]
            if lacking:
                yield f"Not compared for {WAYS[way].label}: {', '.join(lacking)}."


def _machine() -> dict[str, str]:
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "processor": f"{names[0].split(': ')[1] if names else platform.processor()}, {os.cpu_count()} cores",
        "threads": f"{torch.get_num_threads()} threads",
        "python": f"Python {platform.python_version()}",
        "torch": f"torch {metadata.version('torch')}",
        "transformers": f"transformers {transformers.__version__}",
    }


if __name__ == "__main__":
    main()
