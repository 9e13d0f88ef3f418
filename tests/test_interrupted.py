"""A command that the system ends, or whose terminal shows no more than ASCII."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tiny

pytestmark = pytest.mark.full

INTERRUPTIBLE = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
"""Of a process whose parent runs in the background, where a shell has SIGINT ignored."""

MAIN = "import sys; from headscope.cli import main; sys.argv = ['headscope', *sys.argv[1:]]; main()"


def run(*arguments: str, **variables: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **variables},
    )  # fmt: skip


def test_a_command_that_is_asked_to_end_says_how_to_go_on(tmp_path: Path) -> None:
    model = tiny.save(tmp_path / "model")
    out = tmp_path / "heads.nc"
    process = run("measure", str(model), "grammar:3000", "-r", "relations", "-o", str(out))
    deadline = time.monotonic() + 240
    while b"measuring" not in process.stderr.readline():
        assert time.monotonic() < deadline
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 143
    assert b"headscope: interrupted; add --resume to the same command to continue." in errors
    assert not out.exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_command_that_is_interrupted_before_any_progress_says_so(number: int, code: int) -> None:
    kill = f"listing.run = lambda request, progress: os.kill(os.getpid(), {number})"
    script = f"{INTERRUPTIBLE}; import os; import headscope.commands.list.run as listing; {kill}; {MAIN}"
    process = subprocess.run([sys.executable, "-c", script, "list", "studies"], capture_output=True, timeout=120)
    assert process.returncode == code
    assert process.stderr == b"headscope: interrupted.\n"


@pytest.mark.parametrize(("number", "name"), [(signal.SIGTERM, "Terminated"), (signal.SIGINT, "KeyboardInterrupt")])
def test_an_interruption_that_python_ignores_comes_again(number: int, name: str) -> None:
    script = f"""{INTERRUPTIBLE}
import os, time, weakref
from headscope.cli.terminal import prepare_terminal, repeat_ignored_interruptions
class Part: pass
prepare_terminal()
part = Part()
watch = weakref.ref(part, lambda ended: [os.kill(os.getpid(), {number}), time.sleep(1)])
try:
    with repeat_ignored_interruptions():
        del part
        print("it was ignored")
        time.sleep(5)
except KeyboardInterrupt as interruption:
    print(type(interruption).__name__)
"""
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert process.stdout.split("\n") == ["it was ignored", name, ""]
    assert process.stderr == ""


def test_what_else_python_ignores_goes_to_whom_it_went_before(run, monkeypatch) -> None:
    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", lambda fault: ignored.append(fault.exc_type))

    def list_names(request, progress) -> dict[str, str]:
        part = type("Part", (), {"__del__": lambda part: 1 / 0})()
        del part
        return {}

    before = sys.unraisablehook
    monkeypatch.setattr("headscope.commands.list.run.run", list_names)
    assert run("list", "studies")[0] == 0
    assert ignored == [ZeroDivisionError]
    assert sys.unraisablehook is before


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
