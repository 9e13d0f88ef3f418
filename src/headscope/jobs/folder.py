"""What the jobs that fill a folder have in common: tables that go on after a kill, and a folder written whole."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from headscope.corpora import CorpusSummary
from headscope.corpora.document import Document
from headscope.errors import HeadscopeError
from headscope.files import atomic_write, remove_unfinished, writable
from headscope.runs import Runs

if TYPE_CHECKING:  # jobs that measure nothing must not load torch
    from headscope.capture.model import Model
    from headscope.reducers.reducer import Reducer
    from headscope.runner import Plan

WRITTEN = (".nc", ".html", ".csv", ".md", ".png", ".svg")
"""What jobs write, their manifests aside."""

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done and how much there is."""


@dataclass(frozen=True)
class Job:
    """A folder that is being filled.

    Attributes:
        name: what is written to it, with its article: ``the atlas``.
        folder: where.
        manifest: the file that lists the others, with a hash of each.
        tables: the names of the head tables that are measured for it.
        resume: go on from what a killed job left.
        progress: is told of the progress.
    """

    name: str
    folder: Path
    manifest: str
    tables: Sequence[str]
    resume: bool = False
    progress: Progress = lambda stage, done, total: None

    def check(self) -> None:
        """Refuse the folder before any work is done for it.

        Raises:
            HeadscopeError: it is a file, or cannot be written to.
        """
        if self.folder.exists() and not self.folder.is_dir():
            raise HeadscopeError(
                f"{self.folder} is a file; name a folder for {self.name}, or a place where one can be made."
            )
        writable(self.folder / self.manifest)

    def measure(
        self,
        table: str,
        model: "Model",
        documents: Iterable[Document],
        reducers: "Sequence[str | Reducer]",
        *,
        called: str,
        plan: "Plan | None",
        summary: CorpusSummary,
    ) -> xr.Dataset:
        """One of the tables, measured; its sums so far are kept in the folder until everything is written.

        Args:
            table: its name, one of `tables`.
            model: the model.
            documents: the corpus.
            reducers: what to measure.
            called: what the progress is reported as.
            plan: how to batch.
            summary: what the corpus holds.
        """
        from headscope.runner.local import measure

        return measure(
            model, documents, reducers, plan=plan, summary=summary, checkpoint=self._checkpoint(table),
            resume=self.resume, progress=lambda done, total: self.progress(called, done, total),
        )  # fmt: skip

    def measure_runs(
        self,
        table: str,
        model: "Model",
        runs: Runs,
        documents: Iterable[Document],
        reducers: "Sequence[str | Reducer]",
        *,
        plan: "Plan | None",
        summary: CorpusSummary,
    ) -> xr.Dataset:
        """One of the tables, measured of each run of a folder; arguments as for `measure`."""
        from headscope.runner.runs import measure_runs

        return measure_runs(
            model, runs, documents, reducers, plan=plan, summary=summary, checkpoint=self._checkpoint(table),
            resume=self.resume, progress=lambda done, total: self.progress(f"measuring {table}", done, total),
        )  # fmt: skip

    def write(self, fill: Callable[[Path], None], about: Mapping[str, Any]) -> tuple[str, ...]:
        """Everything into a folder of its own first, so that a failure leaves what was there whole.

        What an older job of the same manifest wrote, and this one does not, is removed, and so is what a killed one
        left unfinished; nobody else's files are.

        Args:
            fill: writes all files into the folder that it is given.
            about: what the manifest says beside the hashes.

        Returns:
            What was written, relative to the folder.

        Raises:
            HeadscopeError: the disk refuses a file.
        """
        self.progress("writing", 0, 0)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for unfinished in self.folder.glob(f".{self.manifest}.new-*"):
                shutil.rmtree(unfinished, ignore_errors=True)
            fresh = Path(tempfile.mkdtemp(prefix=f".{self.manifest}.new-", dir=self.folder))
        except OSError as error:
            raise HeadscopeError(
                f"{self.folder} cannot be written to ({error.strerror or error}); choose another folder."
            ) from error
        try:
            fill(fresh)
            self._write_manifest(fresh, about)
            written = tuple(sorted(path.relative_to(fresh).as_posix() for path in fresh.rglob("*") if path.is_file()))
            self._remove_older(keep=written)
            for name in written:
                (self.folder / name).parent.mkdir(exist_ok=True)
                (fresh / name).replace(self.folder / name)
        except OSError as error:
            raise HeadscopeError(
                f"{self.name} could not be written to {self.folder} ({error.strerror or error}); "
                "free some space or choose another folder, and add --resume to keep what was measured."
            ) from error
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        for first in map(self._checkpoint, self.tables):
            for checkpoint in (first, *self.folder.glob(f"{escape(first.stem)}.*{first.suffix}")):
                checkpoint.unlink(missing_ok=True)
                remove_unfinished(checkpoint)
        return written

    def _checkpoint(self, table: str) -> Path:
        return self.folder / f".{table}.partial.npz"

    def _write_manifest(self, fresh: Path, about: Mapping[str, Any]) -> None:
        files = {}
        for path in sorted(p for p in fresh.rglob("*") if p.is_file()):
            files[path.relative_to(fresh).as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
        with atomic_write(fresh / self.manifest) as temporary:
            temporary.write_text(json.dumps({"about": dict(about), "sha256": files}, indent=1, sort_keys=True) + "\n")

    def _remove_older(self, keep: Sequence[str]) -> None:
        try:
            names = json.loads((self.folder / self.manifest).read_text())["sha256"]
        except (OSError, ValueError, KeyError, TypeError):
            return
        for name in set(names) - set(keep):
            path = self.folder / name
            if path.suffix in WRITTEN and path.resolve().is_relative_to(self.folder.resolve()):
                path.unlink(missing_ok=True)
