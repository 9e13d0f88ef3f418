"""The output folder of a job: measuring that can be resumed, and results written all together, with a manifest."""

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

if TYPE_CHECKING:  # jobs that measure nothing do not load torch
    from headscope.capture.model import Model
    from headscope.reducers.reducer import Reducer
    from headscope.runner import Plan

OUTPUT_SUFFIXES = (".nc", ".html", ".csv", ".md", ".png", ".svg")
"""The files that jobs write, beside their manifests."""

Progress = Callable[[str, int, int], None]
"""Called with the name of a step, how much of it is done and how much there is (0 if not known)."""


@dataclass(frozen=True)
class OutputFolder:
    """The folder that a job fills.

    Attributes:
        content: what is written to it, for messages: ``the atlas``.
        path: the folder.
        manifest: name of the file that lists the others, with a hash of each.
        tables: names of the head tables that are measured for it.
        resume: continue what a killed job left there.
        progress: called as the work advances.
    """

    content: str
    path: Path
    manifest: str
    tables: Sequence[str]
    resume: bool = False
    progress: Progress = lambda step, done, total: None

    def check(self) -> None:
        """Refuse an unusable folder before any work is done.

        Raises:
            HeadscopeError: the folder is a file, or cannot be written to.
        """
        if self.path.exists() and not self.path.is_dir():
            raise HeadscopeError(
                f"{self.path} is a file; name a folder for {self.content}, or a place where one can be made."
            )
        writable(self.path / self.manifest)

    def measure(
        self,
        table: str,
        model: "Model",
        documents: Iterable[Document],
        reducers: "Sequence[str | Reducer]",
        *,
        label: str,
        plan: "Plan | None",
        summary: CorpusSummary,
    ) -> xr.Dataset:
        """The head table of a model; its checkpoint stays in the folder until everything is written.

        Args:
            table: the name of the table, one of `tables`.
            model: the model.
            documents: the corpus.
            reducers: what to measure.
            label: the name of this step in the progress display.
            plan: how to batch.
            summary: what the corpus holds.
        """
        from headscope.runner.local import measure

        return measure(
            model, documents, reducers, plan=plan, summary=summary, checkpoint=self._checkpoint(table),
            resume=self.resume, progress=lambda done, total: self.progress(label, done, total),
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
        """The head table of all runs of a folder; arguments as for `measure`."""
        from headscope.runner.runs import measure_runs

        return measure_runs(
            model, runs, documents, reducers, plan=plan, summary=summary, checkpoint=self._checkpoint(table),
            resume=self.resume, progress=lambda done, total: self.progress(f"measuring {table}", done, total),
        )  # fmt: skip

    def write(self, fill: Callable[[Path], None], about: Mapping[str, Any]) -> tuple[str, ...]:
        """Write all files, and return their names relative to the folder.

        They are written to a temporary folder first, so that a failure leaves older results as they were. Files that an
        older job listed in the same manifest and this one does not write are removed, and so are leftovers of a killed
        job; no other files are touched.

        Args:
            fill: writes all files into the folder that it is given.
            about: what the manifest records beside the hashes.

        Raises:
            HeadscopeError: the disk refuses a file.
        """
        self.progress("writing", 0, 0)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for unfinished in self.path.glob(f".{self.manifest}.new-*"):
                shutil.rmtree(unfinished, ignore_errors=True)
            fresh = Path(tempfile.mkdtemp(prefix=f".{self.manifest}.new-", dir=self.path))
        except OSError as error:
            raise HeadscopeError(
                f"{self.path} cannot be written to ({error.strerror or error}); choose another folder."
            ) from error
        try:
            fill(fresh)
            self._write_manifest(fresh, about)
            written = tuple(sorted(path.relative_to(fresh).as_posix() for path in fresh.rglob("*") if path.is_file()))
            self._remove_older(keep=written)
            for name in written:
                (self.path / name).parent.mkdir(exist_ok=True)
                (fresh / name).replace(self.path / name)
        except OSError as error:
            raise HeadscopeError(
                f"{self.content} could not be written to {self.path} ({error.strerror or error}); "
                "free some space or choose another folder, and add --resume to keep what was measured."
            ) from error
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        for of_table in map(self._checkpoint, self.tables):
            for checkpoint in (of_table, *self.path.glob(f"{escape(of_table.stem)}.*{of_table.suffix}")):
                checkpoint.unlink(missing_ok=True)
                remove_unfinished(checkpoint)
        return written

    def _checkpoint(self, table: str) -> Path:
        return self.path / f".{table}.partial.npz"

    def _write_manifest(self, fresh: Path, about: Mapping[str, Any]) -> None:
        files = {}
        for path in sorted(p for p in fresh.rglob("*") if p.is_file()):
            files[path.relative_to(fresh).as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
        with atomic_write(fresh / self.manifest) as temporary:
            temporary.write_text(json.dumps({"about": dict(about), "sha256": files}, indent=1, sort_keys=True) + "\n")

    def _remove_older(self, keep: Sequence[str]) -> None:
        try:
            names = json.loads((self.path / self.manifest).read_text())["sha256"]
        except (OSError, ValueError, KeyError, TypeError):
            return
        for name in set(names) - set(keep):
            path = self.path / name
            if path.suffix in OUTPUT_SUFFIXES and path.resolve().is_relative_to(self.path.resolve()):
                path.unlink(missing_ok=True)
