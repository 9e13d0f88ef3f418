"""The benchmarks run: a script that nobody runs between two releases follows no rename."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import tiny

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


@pytest.mark.full
def test_the_benchmark_of_exactness() -> None:
    assert "| Llama: 4 layers, 8 heads, 2 key-value heads, width 512 | 31 | " in run(
        "exact.py", "--lengths", 31, "--shapes", "llama"
    )


@pytest.mark.full
def test_the_benchmark_of_runs() -> None:
    assert "surface on grammar:5: 1 run " in run("runs.py", "--runs", 2, "--corpus", "grammar:5", "--times", 1)


@pytest.mark.full
def test_the_benchmark_of_kills(tmp_path) -> None:
    report = run("kills.py", "--kills", 3, "--commands", "measure", "--model", tiny.save(tmp_path / "model"))
    command, kills, *_ = report.splitlines()[1].split()
    assert (command, kills) == ("measure", "3")


@pytest.mark.full
def test_the_benchmark_of_damaged_files() -> None:
    report = run("fuzz.py", "--corpora", 20, "--tables", 6, "--lists", 6)
    rows = [line.rsplit(maxsplit=4) for line in report.splitlines()]
    assert {title.strip(): int(number) for title, number, *_ in rows[1:]} == {
        "corpora, all formats": 20, "tables with one bit changed": 3, "tables, crafted": 3, "lists of runs": 3,
        "manifests": 3,
    }  # fmt: skip


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
