"""Commands that are killed at random moments: run again, they must end as if nothing had happened, or this stops.

    python benchmarks/kills.py [--kills 60] [--commands measure atlas study tune compare] [--seed 0]

Each command runs once undisturbed. Then it is killed by SIGKILL, SIGTERM and SIGINT in turn, at a moment of its work
that is drawn at random, and run again, with --resume where there is one. No process may show a traceback, no file may
be left behind, and the tables and weights must be those of the undisturbed run to the last bit. Sums are saved after
every batch instead of every twenty seconds, so that there is something to go on with.
"""

import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.synchronize import Event
from pathlib import Path

import xarray as xr

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import study_corpora
from headscope import cli
from headscope.cli.terminal import prepare_terminal
from headscope.runner import local

FORKING = multiprocessing.get_context("fork")
"""Each command is a process of its own, which begins with all modules loaded: that takes longer than the work."""

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
CODES = {signal.SIGKILL: {-9}, signal.SIGTERM: {130, 143}, signal.SIGINT: {130}}
"""How a killed command may end; SIGTERM counts as an interruption before the command has begun to show its progress."""

SAME = {".nc", ".csv", ".md", ".safetensors"}
"""The files that must have the same content again; the others say when they were written."""

PATIENCE = 600.0
"""Seconds after which a command that does not end is taken to hang."""


@dataclass(frozen=True)
class Command:
    """A command, the file or folder that it writes in a folder of its own, and the option with which it goes on."""

    words: tuple[str, ...]
    out: str
    resume: tuple[str, ...] = ("--resume",)

    def run(self, folder: Path, *options: str, how: signal.Signals | None = None, moment: float = PATIENCE) -> int:
        """The exit code of the command, which is killed after so many seconds unless it has ended.

        Raises:
            SystemExit: it shows a traceback, or hangs.
        """
        ready, log = FORKING.Event(), folder.with_suffix(".log")
        process = FORKING.Process(
            target=_work, args=([*self.words, "-o", str(folder / self.out), *options], log, ready)
        )
        process.start()
        ready.wait()
        process.join(moment)
        if how is not None and process.exitcode is None and process.pid is not None:
            os.kill(process.pid, how)
            process.join(PATIENCE)
        code, errors = process.exitcode, log.read_text(encoding="utf-8")
        expected = {0} if how is None else CODES[how] | {0}
        if code not in expected or "Traceback" in errors:
            process.kill()
            raise SystemExit(
                f"{' '.join(self.words)} {' '.join(options)}: {how} after {moment:.1f} s, {code}\n{errors}"
            )
        return code


def _work(words: list[str], log: Path, ready: Event) -> None:
    """Run a command in a new process."""
    with log.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    local.SAVE_EVERY = 0.0
    sys.argv = ["headscope", *words]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell has us in the background
    prepare_terminal()
    ready.set()
    cli.main()


def main() -> None:
    """Kill each command so many times and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--commands", nargs="+", default=["measure", "atlas", "study", "tune", "compare"])
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for command in given.commands:
        import_module(f"headscope.commands.{command}.run")
    with tempfile.TemporaryDirectory() as name:
        commands = list_commands(Path(name), given.model, "compare" in given.commands)
        print(f"{'command':8} {'kills':>6} {'at work':>8} {'resumed':>8} {'seconds':>8}")
        for number, command in enumerate(given.commands):
            kills = given.kills // len(given.commands) + (number < given.kills % len(given.commands))
            start = time.perf_counter()
            at_work, resumed = kill_often(commands[command], Path(name) / command, kills, given.seed)
            print(f"{command:8} {kills:6} {at_work:8} {resumed:8} {time.perf_counter() - start:8.0f}", flush=True)


def list_commands(folder: Path, model: str, comparing: bool) -> dict[str, Command]:
    """The commands by name, on corpora and tables in the folder; the latter are measured only for `comparing`."""
    corpora = study_corpora.write(folder / "corpora", 101)
    few = ("--permutations", "19", "--batch-tokens", "499")
    tuning = Command(
        ("tune", "negation", model, "--data", "grammar:60", "--seeds", "2", "--epochs", "1", "--max-examples", "24"),
        "runs",
    )
    before, after = (
        ("measure", model, "grammar:60", "-r", "scope", *more) for more in ((), ("--runs", f"{folder}/runs"))
    )
    if comparing:
        tuning.run(folder)
        Command(before, "before.nc").run(folder)
        Command(after, "after.nc").run(folder)
    return {
        "measure": Command(("measure", model, "grammar:60", "-r", "surface", "-r", "relations", *few), "heads.nc"),
        "atlas": Command(("atlas", model, "grammar:60", *few), "atlas"),
        "study": Command(("study", "zhao2020", "--model", model, "--data", str(corpora), *few[2:]), "study"),
        "tune": tuning,
        "compare": Command(("compare", f"{folder}/before.nc", f"{folder}/after.nc"), "changes", resume=()),
    }


def kill_often(command: Command, folder: Path, kills: int, seed: int) -> tuple[int, int]:
    """How many of the kills met the command at work, and after how many there was something to go on with.

    Raises:
        SystemExit: a process shows a traceback or hangs, a file is left behind, or the content of a file is another.
    """
    chance = random.Random(f"{seed} {command.words[0]}")
    whole = folder / "whole"
    whole.mkdir(parents=True)
    start = time.perf_counter()
    command.run(whole)
    seconds, expected = time.perf_counter() - start, read_content(whole)
    at_work = resumed = 0
    for number in range(kills):
        place, how = folder / f"kill-{number}", SIGNALS[number % len(SIGNALS)]
        place.mkdir()
        at_work += command.run(place, how=how, moment=chance.uniform(0.05, seconds)) != 0
        hidden = find_hidden(place)
        resumed += any(name.endswith(".npz") or "unfinished" in name for name in hidden)
        _refuse(how != signal.SIGKILL and [name for name in hidden if name.endswith(".lock")], "left locked", place)
        command.run(place, *command.resume)
        _refuse(find_hidden(place), "left behind", place)
        content = read_content(place)
        differing = [name for name in expected | content if expected.get(name) != content.get(name)]
        _refuse(differing, "other than in an undisturbed run", place)
    return at_work, resumed


def _refuse(names: list[str] | bool, fault: str, folder: Path) -> None:
    if names:
        raise SystemExit(f"{fault} in {folder}: {names}")


def find_hidden(folder: Path) -> list[str]:
    """The files and folders whose name begins with a dot."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob(".*"))


def read_content(folder: Path) -> dict[str, object]:
    """The content of the files that must be the same again, by name; of tables without when they were made."""
    paths = (path for path in folder.rglob("*") if path.suffix in SAME)
    return {path.relative_to(folder).as_posix(): _read_file(path) for path in paths}


def _read_file(path: Path) -> object:
    if path.suffix != ".nc":
        return path.read_bytes()
    with xr.load_dataset(path, engine="h5netcdf") as table:
        return {
            name: (
                values.dims,
                str(values.dtype),
                values.values.tolist() if values.dtype.hasobject else values.values.tobytes(),
            )
            for name, values in table.variables.items()
        }


if __name__ == "__main__":
    main()
