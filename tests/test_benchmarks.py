"""The benchmarks run: a script that nobody runs between two releases follows no rename."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import playwright.sync_api as playwright
import pytest
import torch

import tiny
from headscope.cli.command_list import COMMANDS
from headscope.view.page import write_page
from view.tables import head_table

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(BENCHMARKS.rglob("*.py"))


def imported_names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Each name that a script imports from headscope, and its module; an import that may fail is left out."""
    attempts = [node for node in ast.walk(tree) if isinstance(node, ast.Try)]
    attempted = {id(child) for attempt in attempts for child in ast.walk(attempt)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in attempted:
            yield from ((node.module, alias.name) for alias in node.names if node.module.startswith("headscope"))


def exists(module: str, name: str) -> bool:
    try:
        return hasattr(import_module(module), name) or bool(import_module(f"{module}.{name}"))
    except ImportError:
        return False


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.relative_to(BENCHMARKS).as_posix())
def test_what_a_script_imports_is_there(script: Path) -> None:
    names = list(imported_names(ast.parse(script.read_text(encoding="utf-8"))))
    assert not [f"{module}.{name}" for module, name in names if not exists(module, name)]


def test_a_name_that_is_gone_would_be_noticed() -> None:
    tree = ast.parse("def f():\n    from headscope.runner.local import measure, resolve\n    import headscope")
    assert [name for module, name in imported_names(tree) if not exists(module, name)] == ["resolve"]


def run(script: str, *arguments: object) -> str:
    command = [sys.executable, str(BENCHMARKS / script), *map(str, arguments)]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.full
def test_the_benchmark_of_lengths_finds_the_numbers_of_another_way(tmp_path) -> None:
    report = run("length.py", "--ways", "headscope", "numpy", "--shapes", "llama", "--lengths", 17,
                 "--tokens", 51, "--rounds", 1, "--save", tmp_path / "runs.json")  # fmt: skip
    assert "At 17 tokens the statistics of all ways differ from those of a witness in float64 by" in report


def test_the_benchmark_of_pages(browser: playwright.Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    benchmark = import_module("page")
    monkeypatch.setattr(benchmark, "REPEATS", 1)
    path = write_page(
        benchmark.make_table(3, 5), tmp_path / "atlas.html", figures={}, examples=benchmark.make_texts(3, 5, 11, 7),
        distances=benchmark.make_distances(3, 5),
    )  # fmt: skip
    times = benchmark.measure_page(path, browser.new_context(offline=True, bypass_csp=True).new_page())
    assert {*benchmark.CLICKS, "first drawing", "word that is pointed at"} <= times.keys()
    assert all(0 < each < 60_000 for each in times.values())


@pytest.mark.full
def test_the_benchmark_of_screens(tmp_path: Path) -> None:
    relations = ("nsubj", "obj")
    table = head_table(2, 3, relations=relations)
    write_page(table, tmp_path / "atlas.html", figures={})
    screens = [line for line in run("screens.py", tmp_path).splitlines() if " screens, " in line]
    assert [line.partition(": ")[2].partition(" screens")[2] for line in screens] == [", 0 faults"] * 2


@pytest.mark.full
def test_the_benchmark_of_exactness() -> None:
    assert "| Llama: 4 layers, 8 heads, 2 key-value heads, width 512 | 31 | " in run(
        "exact.py", "--lengths", 31, "--shapes", "llama"
    )


@pytest.mark.full
def test_the_benchmark_of_runs() -> None:
    assert "surface on grammar:5: 1 run " in run("runs.py", "--runs", 2, "--corpus", "grammar:5", "--times", 1)


def test_the_benchmark_of_kills_has_every_command_that_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    writing = {record.command for record in COMMANDS if "out" in record.options}
    assert len(writing) > 10
    assert import_module("kills").COMMANDS.keys() == {*writing, "shard"}


@pytest.mark.full
def test_the_benchmark_of_kills() -> None:
    """A table of two reducers, a file of sums, files of one table and of JSON, folders with sums of each kind, runs."""
    commands = ["measure", "shard", "merge", "export", "disable", "ledger", "align", "tune"]
    rows = [row.split() for row in run("kills.py", "--kills", 8, "--commands", *commands).splitlines()[1:]]
    assert [row[:2] for row in rows] == [[command, "1"] for command in commands]


@pytest.mark.full
def test_the_benchmark_of_damaged_files() -> None:
    *rows, peak = run("fuzz.py", "--cases", 60, "--seeds", 3, 4).splitlines()
    title, *numbers = rows[-1].split()
    cases, refused, same, other, read, tracebacks = map(int, numbers[:6])
    assert (title, cases, tracebacks) == ("all", 60, 0)
    assert refused + same + other + read == cases
    assert peak.startswith("peak ")


@pytest.mark.full
def test_the_benchmark_of_distances_between_heads() -> None:
    report = run("distances.py", "--segments", 1, "--script-segments", 1, "--length", 11, "--rounds", 1)
    assert "144 heads, 1 segments of 11 tokens, 1 rounds, one thread" in report
    assert "script in float64 against the distances: " in report


@pytest.mark.full
def test_the_benchmark_of_verdicts() -> None:
    report = run("verdicts.py", "--worlds", 2, "--verdicts", "stars", "gain")
    assert report.count("| stands out | 39 rows without a lift") == 6
    assert "| the best gain most | no head changes | 2 | " in report


@pytest.mark.full
def test_the_benchmark_of_visitors(tmp_path: Path) -> None:
    report = run("visitors.py", "--rounds", 1, "--requests", 17, "--at-once", 7, "--half-sent", 3, "--model",
                 tiny.save(tmp_path / "model"), "--pages", "explore")  # fmt: skip
    assert "; half-sent 3 408; " in report
    assert report.endswith("  then the page: 200\n")
    assert "silent" not in report


@pytest.mark.full
def test_the_benchmark_of_gpus_runs_tiny_on_a_processor() -> None:
    lines = [line for line in run("gpu.py", "--tiny").splitlines() if line.startswith("| ")]
    assert len({line.count("|") for line in lines}) == 1
    assert len(lines) == 18
    errors = [line.split("|")[2] for line in lines if "largest error" in line]
    assert all(float(error) < 1e-5 for line in errors for error in line.split(","))
    assert not [line for line in lines if "does not fit" in line or "no time" in line]


@pytest.mark.full
def test_the_benchmark_of_gpus_wants_a_gpu() -> None:
    if torch.cuda.is_available():
        pytest.skip("torch finds a GPU here")
    command = [sys.executable, str(BENCHMARKS / "gpu.py")]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.stderr == "torch finds no GPU here; give --tiny to see whether the script works.\n"
    assert process.returncode == 1
