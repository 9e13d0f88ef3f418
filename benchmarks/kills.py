"""Commands that are killed at random moments: run again, they must end as if nothing had happened, or this stops.

    python benchmarks/kills.py [--kills 40] [--commands measure atlas study tune compare] [--seed 0]

Without --commands, they are all that write files. Each command runs once undisturbed. Then it is killed by SIGKILL,
SIGTERM and SIGINT in turn, at a moment of its work that is drawn at random, and run again, with --resume where there is
one. No process may show a traceback, no file may be left behind, and the tables, weights and figures must be those of
the undisturbed run to the last bit. Sums are saved after every batch instead of every twenty seconds, so that there is
something to go on with.
"""

import argparse
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import planted_decoder
import planted_task
import planted_translator
import study_corpora
import tiny
from headscope import cli
from headscope.cli.terminal import prepare_terminal
from headscope.runner import local

FORKING = multiprocessing.get_context("fork")
"""Each command is a process of its own, which begins with all modules loaded: that takes longer than the work."""

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
CODES = {signal.SIGKILL: {-9}, signal.SIGTERM: {130, 143}, signal.SIGINT: {130}}
"""How a killed command may end; SIGTERM counts as an interruption before the command has begun to show its progress."""

SAME = {".nc", ".npz", ".csv", ".md", ".json", ".safetensors", ".png", ".svg"}
"""The files that must have the same content again; the others say when they were written."""

TIMES = {"created", "call", "request", "paths", "sha256"}
"""What JSON says of when and where a table was written, and of the bytes of tables that say so."""

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
        ready, log, scratch = FORKING.Event(), folder.with_suffix(".log"), folder.with_suffix(".tmp")
        scratch.mkdir(exist_ok=True)
        process = FORKING.Process(
            target=_work, args=([*self.words, "-o", str(folder / self.out), *options], log, scratch, ready)
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
            killed = "not killed" if how is None else f"{how.name} after {moment:.2f} s"
            raise SystemExit(f"{' '.join((*self.words, *options))}: {killed}, exit code {code}\n{errors}")
        _refuse(how != signal.SIGKILL and [*map(str, scratch.iterdir())], "left behind", scratch)
        return code


def _work(words: list[str], log: Path, scratch: Path, ready: Event) -> None:
    """Run a command in a new process, with a folder of its own for temporary files."""
    with log.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    tempfile.tempdir = str(scratch)
    sys.argv = ["headscope", *words]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell has us in the background
    prepare_terminal()
    ready.set()
    cli.main()


class Inputs:
    """What commands read, in a folder: each input is written when a command first asks for it."""

    def __init__(self, folder: Path, model: str | None) -> None:
        self.folder, self._model = folder, model
        folder.mkdir()

    def _write(self, name: str, write: Callable[[Path], object]) -> str:
        """The path of what is written by a process of its own: a process in which torch has worked must not fork."""
        process = FORKING.Process(target=write, args=(self.folder / name,))
        process.start()
        process.join()
        if process.exitcode != 0:
            raise SystemExit(f"{name} was not written: {process.exitcode}")
        return str(self.folder / name)

    def _make(self, name: str, *words: str) -> str:
        """The path of what a command writes, undisturbed."""
        (self.folder / f"{name}-folder").mkdir()
        Command(words, name).run(self.folder / f"{name}-folder")
        return str(self.folder / f"{name}-folder" / name)

    @cached_property
    def model(self) -> str:
        """An encoder."""
        return self._model or self._write("encoder", tiny.save)

    @cached_property
    def decoder(self) -> str:
        """A decoder."""
        return self._write("decoder", lambda path: tiny.save(path, "gpt2"))

    @cached_property
    def corpora(self) -> str:
        """A corpus for each measurement of each study."""
        return str(study_corpora.write(self.folder / "corpora", 101))

    @cached_property
    def writer(self) -> str:
        """A decoder that writes a text."""
        return self._write("writer", lambda path: [part.save_pretrained(path) for part in planted_decoder.plant()])

    @cached_property
    def prompts(self) -> str:
        """Prompts for the writer."""
        lines = "".join(f"{json.dumps(prompt)}\n" for prompt in planted_decoder.prompts())
        return self._write("prompts.jsonl", lambda path: path.write_text(lines, encoding="utf-8"))

    @cached_property
    def translator(self) -> str:
        """An encoder-decoder."""
        plant = planted_translator.plant
        return self._write("translator", lambda path: [part.save_pretrained(path) for part in plant()])

    @cached_property
    def pairs(self) -> str:
        """Word-aligned pairs for the translator."""
        lines = planted_translator.write(planted_translator.pairs(61))
        return self._write("pairs.txt", lambda path: path.write_text(lines, encoding="utf-8"))

    @cached_property
    def task(self) -> str:
        """A folder with a model that needs three heads, and the task that it needs them for."""

        def write(path: Path) -> None:
            path.mkdir()
            planted_task.save_task(path, [(1, 4), (2, 3), (3, 2)])

        return self._write("task", write)

    @cached_property
    def task_heads(self) -> str:
        """The head table of the model of the task."""
        return self._make("task-heads.nc", "measure", f"{self.task}/model", "grammar:60", "-r", "relations", *FEW)

    @cached_property
    def runs(self) -> str:
        """Runs that were tuned from the encoder."""
        return self._make("runs", *_list_tuning(self))

    @cached_property
    def before(self) -> str:
        """The head table of the encoder."""
        return self._make("before.nc", "measure", self.model, "grammar:60", "-r", "scope")

    @cached_property
    def after(self) -> str:
        """The head table of the runs."""
        return self._make("after.nc", "measure", self.model, "grammar:60", "-r", "scope", "--runs", self.runs)

    @cached_property
    def shards(self) -> tuple[str, str]:
        """The sums of both shards of a corpus."""
        words = ("measure", self.model, "grammar:60", "-r", "surface", *FEW, "--shard")
        return self._make("first.npz", *words, "1/2"), self._make("second.npz", *words, "2/2")

    @cached_property
    def heads(self) -> str:
        """A head table with all that is drawn."""
        return self._make("heads.nc", "measure", self.model, "grammar:60", "-r", "surface", "-r", "relations", *FEW)


FEW = ("--permutations", "19", "--batch-tokens", "499")


def _list_tuning(inputs: Inputs) -> tuple[str, ...]:
    return ("tune", "negation", inputs.model, "--data", "grammar:60", "--seeds", "2", "--epochs", "1",
            "--max-examples", "24")  # fmt: skip


COMMANDS: Mapping[str, Callable[[Inputs], Command]] = {
    "measure": lambda inputs: Command(
        ("measure", inputs.model, "grammar:60", "-r", "surface", "-r", "relations", *FEW), "heads.nc"
    ),
    "shard": lambda inputs: Command(
        ("measure", inputs.model, "grammar:60", "-r", "relations", *FEW, "--shard", "2/2"), "second.npz"
    ),
    "merge": lambda inputs: Command(("merge", *inputs.shards), "heads.nc", resume=()),
    "atlas": lambda inputs: Command(("atlas", inputs.model, "grammar:60", *FEW), "atlas"),
    "draw": lambda inputs: Command(("draw", inputs.heads), "paper", resume=()),
    "study": lambda inputs: Command(
        ("study", "zhao2020", "--model", inputs.model, "--data", inputs.corpora, *FEW[2:]), "study"
    ),
    "tune": lambda inputs: Command(_list_tuning(inputs), "runs"),
    "compare": lambda inputs: Command(("compare", inputs.before, inputs.after), "changes", resume=()),
    "profile": lambda inputs: Command(
        ("profile", inputs.decoder, "--repeats", "7", "--needles", "7", *FEW[2:]), "profile"
    ),
    "disable": lambda inputs: Command(
        ("disable", f"{inputs.task}/model", f"{inputs.task}/nouns", "--placebos", "2", "--pairs", "2"), "effects"
    ),
    "lesions": lambda inputs: Command(
        ("lesions", f"{inputs.task}/model", f"{inputs.task}/nouns", "--atlas", inputs.task_heads, "--random", "4"),
        "lesions",
    ),
    "ledger": lambda inputs: Command(("ledger", inputs.writer, inputs.prompts, "--tokens", "3"), "ledger"),
    "align": lambda inputs: Command(("align", inputs.translator, inputs.pairs, *FEW), "aligned"),
    "probe": lambda inputs: Command(
        ("probe", inputs.model, "grammar:30", "--seeds", "1", "--without", "code-length", "--rank", "5"), "probe"
    ),
    "patterns": lambda inputs: Command(("patterns", inputs.model, "grammar:60", *FEW[2:]), "patterns"),
    "check": lambda inputs: Command(("check", inputs.model, "--against", inputs.heads, "--all"), "checked", resume=()),
    "export": lambda inputs: Command(("export", inputs.heads), "heads.json", resume=()),
}
"""Each command that writes files, and `measure` of a shard, by the name that the table shows."""


def main() -> None:
    """Kill each command so many times and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--commands", nargs="+", default=list(COMMANDS), choices=COMMANDS, metavar="COMMAND")
    parser.add_argument("--model", help="an encoder, such as minilm; a tiny one by default")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    local.SAVE_EVERY = 0.0  # before the modules are imported that take it from there
    with tempfile.TemporaryDirectory() as name:
        inputs = Inputs(Path(name) / "inputs", given.model)
        print(f"{'command':8} {'kills':>6} {'at work':>8} {'resumed':>8} {'seconds':>8}")
        done = 0
        for number, command in enumerate(given.commands):
            kills = given.kills // len(given.commands) + (number < given.kills % len(given.commands))
            start = time.perf_counter()
            at_work, resumed = kill_often(COMMANDS[command](inputs), Path(name) / command, kills, given.seed, done)
            done += kills
            print(f"{command:8} {kills:6} {at_work:8} {resumed:8} {time.perf_counter() - start:8.0f}", flush=True)


def kill_often(command: Command, folder: Path, kills: int, seed: int, first: int) -> tuple[int, int]:
    """How many of the kills met the command at work, and after how many there was something to go on with.

    Signals take turns over the kills of all commands, of which `first` came before.

    Raises:
        SystemExit: a process shows a traceback or hangs, a file is left behind, or the content of a file is another.
    """
    import_module(f"headscope.commands.{command.words[0]}.run")
    chance = random.Random(f"{seed} {folder.name}")
    whole = folder / "whole"
    whole.mkdir(parents=True)
    start = time.perf_counter()
    command.run(whole)
    seconds, expected, names = time.perf_counter() - start, read_content(whole), list_files(whole)
    at_work = resumed = 0
    for number in range(kills):
        place, how = folder / f"kill-{number}", SIGNALS[(first + number) % len(SIGNALS)]
        place.mkdir()
        at_work += command.run(place, how=how, moment=chance.uniform(0, seconds)) != 0
        hidden = find_hidden(place)
        resumed += any(name.endswith(".npz") or "unfinished" in name for name in hidden)
        _refuse(how != signal.SIGKILL and [name for name in hidden if name.endswith(".lock")], "left locked", place)
        command.run(place, *command.resume)
        _refuse(sorted({*find_hidden(place)} | (list_files(place) ^ names)), "left behind or missing", place)
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


def list_files(folder: Path) -> set[str]:
    """The names of all files."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def read_content(folder: Path) -> dict[str, object]:
    """The content of the files that must be the same again, by name; of tables without when they were made."""
    paths = (path for path in folder.rglob("*") if path.suffix in SAME)
    return {path.relative_to(folder).as_posix(): _read_file(path) for path in paths}


def _read_file(path: Path) -> object:
    if path.suffix == ".json":
        return _drop_times(json.loads(path.read_text(encoding="utf-8")))
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return {name: (arrays[name].dtype.str, arrays[name].shape, arrays[name].tobytes()) for name in arrays}
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


def _drop_times(value: Any) -> Any:
    """JSON without what differs between two runs that are the same."""
    if isinstance(value, dict):
        return {name: _drop_times(each) for name, each in value.items() if name not in TIMES}
    return [_drop_times(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
