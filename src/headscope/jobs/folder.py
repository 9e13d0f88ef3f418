"""The output folder of a job: measuring that can be resumed, and results written all together, with a manifest."""

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from headscope.corpora import CorpusSummary
from headscope.corpora.document import Document
from headscope.errors import HeadscopeError
from headscope.files import (
    atomic_write,
    check_regular,
    is_plain,
    parse_json,
    reading,
    remove_unfinished,
    sha256,
    writable,
    write_text,
)
from headscope.jobs.progress import Progress, ignore_progress
from headscope.runs import Runs

if TYPE_CHECKING:  # jobs that measure nothing do not load torch
    from headscope.capture.model import Model
    from headscope.reducers.reducer import Reducer
    from headscope.runner import Plan

OUTPUT_SUFFIXES = (".nc", ".html", ".csv", ".md", ".png", ".svg")
"""The files that jobs write, beside their manifests."""


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
    progress: Progress = ignore_progress

    def check(self) -> None:
        """Refuse an unusable folder before any work is done.

        Raises:
            HeadscopeError: the folder is a file, cannot be written to, or has a file of the name of the manifest that
                headscope did not write.
        """
        check_regular(self.path)
        if self.path.exists() and not self.path.is_dir():
            wanted = f"a folder for {self.content}, or a place where one can be made"
            raise HeadscopeError(f"{self.path} is a file; name {wanted}.")
        writable(self.path / self.manifest)
        self._read_manifest()

    def measure(
        self,
        table: str,
        model: "Model",
        documents: Iterable[Document],
        reducers: "Sequence[str | Reducer]",
        *,
        label: str = "",
        plan: "Plan | None",
        summary: CorpusSummary,
        runs: Runs | None = None,
        trust_remote_code: bool = False,
    ) -> xr.Dataset:
        """The head table of a model, or of all `runs` that were tuned from it, under its name in `tables`.

        Its checkpoint stays in the folder until everything is written. `label` is the step that progress shows.
        `trust_remote_code` allows the Python code in the folders of the runs.
        """
        from headscope.runner import measure, measure_runs

        settings: dict[str, Any] = {
            "plan": plan, "summary": summary, "checkpoint": self._checkpoint(table), "resume": self.resume,
            "progress": lambda done, total: self.progress(label or f"measuring {table}", done, total),
        }  # fmt: skip
        if runs is None:
            return measure(model, documents, reducers, **settings)
        return measure_runs(model, runs, documents, reducers, **settings, trust_remote_code=trust_remote_code)

    def write(self, fill: Callable[[Path], None], about: Mapping[str, Any]) -> tuple[str, ...]:
        """Write all files, and return their names relative to the folder.

        They are written to a temporary folder first, so that a failure leaves older results as they were. Files that an
        older job listed in the same manifest and this one does not write are removed, and so are leftovers of a killed
        job; no other files are touched. `fill` writes into the folder that it is given, and the manifest records
        `about` beside the hashes.

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
            advice = ", and add --resume to keep what was measured" if self.tables else ""
            raise HeadscopeError(
                f"{self.content} could not be written to {self.path} ({error.strerror or error}); "
                f"free some space or choose another folder{advice}."
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
        paths = sorted(path for path in fresh.rglob("*") if path.is_file())
        hashes = {path.relative_to(fresh).as_posix(): sha256(path) for path in paths}
        content = json.dumps({"about": dict(about), "sha256": hashes}, indent=1, sort_keys=True)
        write_text(f"{content}\n", fresh / self.manifest)

    def _read_manifest(self) -> tuple[str, ...]:
        """The files that the manifest in the folder lists; none if there is no manifest.

        Raises:
            HeadscopeError: it is no manifest that `write` wrote, and would be overwritten.
        """
        path = self.path / self.manifest
        if not path.exists():
            return ()
        with reading(path) as file:
            content = file.read()
        try:
            stored = parse_json(content)
            names, about = stored["sha256"], stored["about"]
            ours = len(stored) == 2 and isinstance(about, dict) and all(map(_is_listed, names.items()))
        except (ValueError, KeyError, TypeError, AttributeError):
            ours = False
        if not ours:
            raise HeadscopeError(
                f"{path} is not a manifest that headscope wrote, and would be overwritten; move it elsewhere, or "
                "choose another folder."
            )
        return tuple(names)

    def _remove_older(self, keep: Sequence[str]) -> None:
        for name in set(self._read_manifest()) - set(keep):
            path = self.path / name
            # It is asked for a file first, since a link that leads to itself leads nowhere.
            if path.suffix in OUTPUT_SUFFIXES and path.is_file() and path.resolve().is_relative_to(self.path.resolve()):
                path.unlink(missing_ok=True)


def _is_listed(entry: tuple[str, object]) -> bool:
    """True for the name of a file in the folder with a SHA-256."""
    name, digest = entry
    parts = PurePosixPath(name).parts
    inside = not PurePosixPath(name).is_absolute() and ".." not in parts and bool(parts)
    fits = is_plain(name) and all(len(part.encode()) < 256 for part in parts)
    return inside and fits and isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) is not None


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a data frame, whole or not at all."""
    with atomic_write(path) as temporary:
        frame.to_csv(temporary, index=False, float_format="%.6g")
