"""A command that the system ends, or whose terminal shows no more than ASCII."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tiny

MAIN = "import sys; from headscope.cli import main; sys.argv = ['headscope', *sys.argv[1:]]; main()"


def run(*arguments: str, **variables: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **variables},
    )  # fmt: skip


def test_a_command_that_is_asked_to_end_says_how_to_go_on(tmp_path: Path) -> None:
    model = tiny.save(tmp_path / "model")
    out = tmp_path / "heads.nc"
    process = run("measure", str(model), "grammar:20000", "-r", "relations", "-o", str(out))
    deadline = time.monotonic() + 240
    while b"measuring" not in process.stderr.readline():
        assert time.monotonic() < deadline
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 143
    assert b"headscope: interrupted; add --resume to the same command to continue." in errors
    assert not out.exists()


@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=["ascii", "latin-1", "C"],
)
def test_a_terminal_without_utf_8_shows_what_it_can(tmp_path: Path, variables: dict[str, str]) -> None:
    model = tiny.save(tmp_path / "model")
    corpus = tmp_path / "own.jsonl"
    corpus.write_text('{"words": ["a", "b"], "links": [[0, 1, "naïve→"]]}\n' * 3, encoding="utf-8")
    out = tmp_path / "heads.nc"
    process = run("measure", str(model), str(corpus), "-r", "relations", "-o", str(out), **variables)
    printed, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    assert out.exists()
    assert b"heads.nc" in printed
