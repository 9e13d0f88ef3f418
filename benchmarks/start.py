"""The way to the first result: the seconds of the default atlas by stage, and of what should answer at once.

    python benchmarks/start.py [--against PATH/src] [--corpus CORPUS] [--rounds 3] [--cpu] [--write docs/performance.md]

Each tree runs in a new process in each round, one after the other and in alternating order, so that a machine that
gets slower gets slower for both. The report has the median over the rounds. By default each tree measures the corpus
that its own `atlas` has by default; with --corpus both measure the same.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import wraps
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parents[1] / "src"
BEGIN, END = "<!-- benchmarks/start.py writes from here -->", "<!-- to here, start -->"

STAGES = {
    "imports": "imports",
    "loading": "loading the model",
    "heads": "measuring the model",
    "untrained": "measuring the untrained model",
    "head-distances": "comparing the heads with one another",
    "examples": "choosing examples",
    "analysis": "intervals, reported heads, p-values",
    "figures": "drawing the figures",
    "page": "the page",
    "tables": "head tables and CSV files",
    "rest": "all else",
}
FUNCTIONS = {
    # Functions by the names that the module of the atlas has for them; their stage.
    "untrained_model": "untrained",
    "assess": "analysis",
    "make_examples": "examples",
    "write_page": "page",
    "make_frames": "tables",
}
COMMANDS = ("--help", "list reducers", "list studies", "study clark2018", "measure minilm grammar:300 -r gaze")


def main() -> None:
    """Time both trees in turn, print the tables and, if asked to, put them into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="the folder `src` of the other tree")
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--corpus", help="what both trees measure; by default what each measures by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="seconds of the processor, for a machine that others use")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        _work(arguments.model, arguments.corpus, time.process_time if arguments.cpu else time.perf_counter)
        return
    trees = {"this tree": HERE} | ({"the other tree": arguments.against.resolve()} if arguments.against else {})
    atlases: dict[str, list[dict[str, Any]]] = {name: [] for name in trees}
    answers: dict[str, list[dict[str, float]]] = {name: [] for name in trees}
    for number in range(arguments.rounds):
        for name in list(trees) if number % 2 == 0 else list(trees)[::-1]:
            atlases[name].append(_run_worker(trees[name], arguments))
            answers[name].append({command: _time_command(trees[name], command, arguments.cpu) for command in COMMANDS})
    report = "\n".join([*_report_atlases(atlases), "", *_report_commands(answers)])
    print(report)
    if arguments.write:
        page = arguments.write.read_text()
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        arguments.write.write_text(f"{before}{BEGIN}\n\n{report}\n\n{END}{after}")


def _run_worker(source: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """The seconds of each stage in a process that imports the tree at `source`."""
    command = [sys.executable, __file__, "--worker", "--model", arguments.model]
    command += ["--corpus", arguments.corpus] if arguments.corpus else []
    command += ["--cpu"] if arguments.cpu else []
    environment = {**os.environ, "PYTHONPATH": str(source)}
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    if process.returncode:
        raise SystemExit(process.stderr)
    answer: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    if source not in Path(answer["home"]).parents:
        raise SystemExit(f"{source} holds no headscope: {answer['home']} was imported in its place.")
    return answer


def _time_command(source: Path, command: str, cpu: bool) -> float:
    """The seconds of a whole process with a command that needs no model."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    code = "import sys; from headscope.cli import main; main()"
    start = os.times()
    process = subprocess.run([sys.executable, "-c", code, *command.split()], env=environment, capture_output=True)
    end = os.times()
    spent = end.children_user + end.children_system - start.children_user - start.children_system
    seconds = spent if cpu else end.elapsed - start.elapsed
    if process.returncode not in (0, 2):
        raise SystemExit(process.stderr.decode())
    return seconds


def _work(model: str, corpus: str | None, clock: Callable[[], float]) -> None:
    """Measure an atlas as the command does, and print what each stage of it took, as JSON."""
    start = clock()
    import headscope
    from headscope.capture.open import loading
    from headscope.commands import folder
    from headscope.commands.atlas import run as job
    from headscope.commands.folder import OutputFolder
    from headscope.view import table_report

    seconds = dict.fromkeys(STAGES, 0.0) | {"imports": clock() - start}
    timed = _make_timer(seconds, clock)
    for name, stage in FUNCTIONS.items():
        setattr(job, name, timed(getattr(job, name), lambda arguments, stage=stage: stage))
    loading.load = timed(loading.load, lambda arguments: "loading")
    folder.write_content = timed(folder.write_content, lambda arguments: "tables")
    drawing = "draw" if hasattr(OutputFolder, "draw") else "_draw"  # an older tree draws before it writes
    setattr(OutputFolder, drawing, timed(getattr(OutputFolder, drawing), lambda arguments: "figures"))
    OutputFolder.measure = timed(OutputFolder.measure, lambda arguments: arguments[1])
    start = clock()
    shown: dict[str, float] = {}

    def show(result: Any) -> None:
        from rich.console import Console

        if hasattr(result, "files"):
            shown["page"] = clock() - start
        table_report.print_table(getattr(result, "table", result), Console(file=StringIO()))
        shown["printed"] = clock() - start

    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        inputs = {"corpus": corpus} if corpus else {}
        result = headscope.atlas(model, out=folder, show=show, **inputs)
        if not shown:
            show(result.table)
    total = clock() - start
    seconds["rest"] = total - sum(seconds[stage] for stage in STAGES if stage not in ("imports", "rest"))
    attrs = result.table.attrs
    answer = {
        "home": headscope.__file__, "corpus": attrs["corpus"], "documents": int(attrs["documents"]), "stages": seconds,
        "total": total, "printed": shown["printed"], "page": shown.get("page", total),
        "figures": sum(name.endswith(".svg") for name in result.files),
    }  # fmt: skip
    print(json.dumps(answer))


def _make_timer(seconds: dict[str, float], clock: Callable[[], float]) -> Callable[..., Callable[..., Any]]:
    """A function that makes a function add its seconds to a stage, without those of the timed functions in it."""
    within: list[float] = []

    def timed(function: Callable[..., Any], stage: Callable[[tuple[Any, ...]], str]) -> Callable[..., Any]:
        @wraps(function)
        def timing(*arguments: Any, **options: Any) -> Any:
            within.append(0.0)
            start = clock()
            try:
                return function(*arguments, **options)
            finally:
                spent = clock() - start
                seconds[stage(arguments)] += spent - within.pop()
                if within:
                    within[-1] += spent

        return timing

    return timed


def _report_atlases(atlases: Mapping[str, list[dict[str, Any]]]) -> Iterator[str]:
    """A table with a line for each stage and a column for each tree."""
    firsts = {name: answers[0] for name, answers in atlases.items()}
    about = [f"{answer['corpus']} ({answer['documents']:,} documents)" for answer in firsts.values()]
    yield f"| `headscope atlas`, s | {' | '.join(map(': '.join, zip(firsts, about, strict=True)))} |"
    yield f"| --- |{' ---: |' * len(firsts)}"
    for stage, words in STAGES.items():
        if stage == "figures":
            words += f" ({', '.join(str(answer['figures']) for answer in firsts.values())})"
        yield _row(words, ([answer["stages"][stage] for answer in answers] for answers in atlases.values()))
    printed = ([answer["printed"] for answer in answers] for answers in atlases.values())
    yield _row("after the imports, until the table is on the terminal", printed)
    pages = ([answer["page"] for answer in answers] for answers in atlases.values())
    yield _row("after the imports, until the page can be opened", pages)
    yield _row(
        "**after the imports, in all**", ([answer["total"] for answer in answers] for answers in atlases.values())
    )


def _report_commands(answers: Mapping[str, list[dict[str, float]]]) -> Iterator[str]:
    """A table with a line for each command and a column for each tree."""
    yield f"| a whole process, s | {' | '.join(answers)} |"
    yield f"| --- |{' ---: |' * len(answers)}"
    for command in COMMANDS:
        yield _row(f"`headscope {command}`", ([seconds[command] for seconds in rounds] for rounds in answers.values()))


def _row(words: str, columns: Iterator[list[float]]) -> str:
    return f"| {words} | {' | '.join(f'{median(seconds):.2f}' for seconds in columns)} |"


if __name__ == "__main__":
    main()
