"""The output of a job, a folder or a file, which one command writes at a time and a killed one can go on with."""

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeAlias

from headscope.commands.output import FIGURES, Contents, Drawing
from headscope.commands.progress import Progress, ignore_progress
from headscope.commands.record import Request
from headscope.commands.recorded_request import record_request
from headscope.corpora import CorpusSummary
from headscope.corpora.document import Document
from headscope.errors import HeadscopeError
from headscope.files import (
    LOCK,
    atomic_write,
    check_regular,
    is_plain,
    parse_json,
    remove_unfinished,
    reserve,
    sha256,
    writable,
    write_text,
)
from headscope.guards.formats import MANIFEST, read_bytes
from headscope.own_files import describe_foreign
from headscope.runs import Runs

if TYPE_CHECKING:  # a folder is checked before anything is imported that takes time
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from headscope.capture.model.model import Model
    from headscope.reducers.reducer import Reducer
    from headscope.runner import Plan

    Content: TypeAlias = xr.Dataset | pd.DataFrame | str | Callable[[Path], object]
    """The content of a file, or a function that writes it to a path."""

OUTPUT_SUFFIXES = (".nc", ".html", ".csv", ".md", ".png", ".svg", ".pdf", ".json")
"""The files that commands write, besides their manifests."""


@dataclass(frozen=True)
class OutputFolder:
    """The folder that a job fills, in a ``with`` block: no other command writes to it meanwhile.

    When the block ends well, the sums that were kept for resuming are removed; after an error they stay for --resume.

    Attributes:
        contents: what is written to it.
        path: the folder.
        resume: continue what a killed job left there.
        progress: called as the work advances.
        kept: False for a folder of sums alone, to which no results are written.
    """

    contents: Contents
    path: Path
    resume: bool = False
    progress: Progress = ignore_progress
    kept: bool = True
    _reserved: ExitStack = field(default_factory=ExitStack, init=False, repr=False, compare=False)

    def __enter__(self) -> "OutputFolder":
        """Check the folder and reserve it.

        Raises:
            HeadscopeError: it is refused (`check`), or another command is writing to it.
        """
        self.check()
        self._reserved.enter_context(reserve(self.path, self.path / LOCK))
        return self

    def __exit__(self, error: type[BaseException] | None, *details: object) -> None:
        with self._reserved:
            for table in self.contents.tables if error is None else ():
                remove_sums(self.sums(table))

    def check(self) -> None:
        """Raise an error for an unusable folder before any work is done.

        Raises:
            HeadscopeError: the folder is a file, cannot be written to, or has a table or a manifest that headscope did
                not write.
        """
        check_regular(self.path)
        if self.path.exists() and not self.path.is_dir():
            wanted = f"a folder for {self.contents.name}, or a place where one can be made"
            raise HeadscopeError(f"{self.path} is a file; name {wanted}.")
        writable(self.path / self.contents.manifest)
        self._refuse_foreign((*(f"{table}.nc" for table in self.contents.tables), *self.contents.others))

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
    ) -> "xr.Dataset":
        """Measure a model, or all `runs` tuned from it, as the table of a name in `Contents.tables`.

        Its sums stay in the folder until everything is written. `label` is the step that progress shows.
        `trust_remote_code` allows the Python code in the folders of the runs.
        """
        from headscope.runner import measure, measure_runs

        settings: dict[str, Any] = {
            "plan": plan, "summary": summary, "checkpoint": self.sums(table), "resume": self.resume,
            "progress": lambda done, total: self.progress(label or f"measuring {table}", done, total),
        }  # fmt: skip
        if runs is None:
            return measure(model, documents, reducers, **settings)
        return measure_runs(model, runs, documents, reducers, **settings, trust_remote_code=trust_remote_code)

    @property
    def out(self) -> Path | None:
        """The folder; None for one that is not kept."""
        return self.path if self.kept else None

    @property
    def listed(self) -> frozenset[str]:
        """The files that the manifest lists."""
        return frozenset(self._read_manifest()[1])

    def finish(
        self,
        request: Request[Any],
        names: Mapping[str, str],
        tables: "Mapping[str, xr.Dataset]",
        files: "Mapping[str, Content] | None" = None,
        draw: "Callable[[], Mapping[str, Figure]]" = dict,
    ) -> "xr.Dataset":
        """Write head tables with their request, and other files; return the first of the tables.

        Args:
            request: that was run.
            names: of the inputs that it was run on, by field.
            tables: without the request, by name.
            files: by name, as `write` takes them.
            draw: returns figures by name; called where they are asked for, once the table is shown.
        """
        recorded = record_request(request, **names)
        tables = {name: table.assign_attrs(recorded) for name, table in tables.items()}
        of_tables: dict[str, Content] = {f"{name}.nc": table for name, table in tables.items()}
        about = {**names, **{key: recorded[key] for key in ("call", "created")}}
        self.write({**of_tables, **(files or {})}, about)
        table = next(iter(tables.values()))
        if isinstance(request, Drawing):
            request.hand_over(table)
            self.draw(draw() if request.has_figures and self.kept else {}, pdf=request.pdf)
        return table

    def write(self, files: "Mapping[str, Content]", about: Mapping[str, Any]) -> tuple[str, ...]:
        """Write all files, and return their names relative to the folder; none to a folder that is not kept.

        They are written to a temporary folder first, so that a failure leaves older results as they were. Files that an
        older job listed in the same manifest and this one does not write are removed, and so is what a job left that
        was killed while it wrote; no other files are touched.

        Args:
            files: by their names in the folder, written in this order.
            about: what the manifest records beside the hashes.

        Raises:
            HeadscopeError: the disk refuses a file.
        """
        if not self.kept:
            return ()
        self.progress("writing", 0, 0)
        with self._fill(self.contents.name) as fresh:
            for name, content in files.items():
                write_content(content, fresh / name)
            written = self._list_hashes(fresh)
            self._write_manifest(fresh, about, written)
            self._remove_older(keep=[*written])
        return tuple(sorted([*written, self.contents.manifest]))

    def draw(
        self,
        figures: "Mapping[str, Figure | Callable[[], Figure]]",
        files: "Mapping[str, Content] | None" = None,
        *,
        pdf: bool = False,
        bare: bool = False,
    ) -> tuple[str, ...]:
        """Add figures to the folder, and return the names of the files; a folder that is not kept gets none.

        Args:
            figures: or functions that draw them, by their names in ``figures/`` without suffix.
            files: that change with the figures, as `write` takes them: written once these are drawn.
            pdf: write figures as PDF too.
            bare: leave out the titles of the figures, and the lines below them.

        Raises:
            HeadscopeError: the disk refuses a file.
        """
        if not (self.kept and figures):
            return ()
        from headscope.view.figures import save

        with self._fill(f"the figures of {self.contents.name}") as fresh:
            for done, (name, figure) in enumerate(figures.items()):
                self.progress(f"drawing {len(figures)} figure{'s' * (len(figures) != 1)}", done, len(figures))
                folder, _, stem = f"{FIGURES}/{name}".rpartition("/")
                save(figure() if callable(figure) else figure, fresh / folder, stem, pdf=pdf, bare=bare)
            for name, content in (files or {}).items():
                write_content(content, fresh / name)
            written = self._list_hashes(fresh)
            about, listed = self._read_manifest()
            self._write_manifest(fresh, about, {**listed, **written})
        return tuple(sorted(written))

    @contextmanager
    def _fill(self, what: str) -> Iterator[Path]:
        """Yield a temporary folder, whose files take the place of those of the folder when the block ends well."""
        fresh = self._make_fresh()
        try:
            yield fresh
            # A page comes after what it is of, and the manifest last: what stops in between does not look complete.
            manifest, names = self.contents.manifest, self._list_files(fresh)
            self._refuse_foreign(names)
            write_text(json.dumps(names), self._pending)
            for name in sorted(names, key=lambda name: (name == manifest, name.endswith(".html"))):
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                (fresh / name).replace(self.path / name)
            self._pending.unlink()
        except OSError as error:
            advice = ", and add --resume to keep what was measured" if self.contents.tables else ""
            raise HeadscopeError(
                f"{what} could not be written to {self.path} ({error.strerror or error}); "
                f"free some space or choose another folder{advice}."
            ) from error
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def _make_fresh(self) -> Path:
        """Open the temporary folder."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for unfinished in self.path.glob(f".{self.contents.manifest}.new-*"):
                shutil.rmtree(unfinished, ignore_errors=True)
            return Path(tempfile.mkdtemp(prefix=f".{self.contents.manifest}.new-", dir=self.path))
        except OSError as error:
            raise HeadscopeError(
                f"{self.path} cannot be written to ({error.strerror or error}); choose another folder."
            ) from error

    def sums(self, table: str) -> Path:
        """Return the file with the sums that a killed run has measured so far."""
        return self.path / f".{table}.partial.npz"

    @property
    def _pending(self) -> Path:
        """The list of files that are being moved to the folder, and that no manifest lists yet."""
        return self.path / f".{self.contents.manifest}.pending"

    def _read_pending(self) -> list[str]:
        """Return the files that a killed command was about to move to the folder; none if their list is damaged."""
        try:
            names = parse_json(read_bytes(self._pending, MANIFEST))
        except (HeadscopeError, ValueError):
            return []
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []

    def _refuse_foreign(self, names: Iterable[str]) -> None:
        """Raise an error for a file of one of these names that headscope did not write."""
        own = {self.contents.manifest, *self._read_manifest()[1], *self._read_pending()}
        if foreign := [name for name in names if name not in own and (self.path / name).exists()]:
            raise describe_foreign(self.path / foreign[0], "move it, or choose another folder")

    def _list_files(self, folder: Path) -> list[str]:
        return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())

    def _list_hashes(self, folder: Path) -> dict[str, str]:
        return {name: sha256(folder / name) for name in self._list_files(folder)}

    def _write_manifest(self, fresh: Path, about: Mapping[str, Any], hashes: Mapping[str, str]) -> None:
        content = json.dumps({"about": dict(about), "sha256": dict(hashes)}, indent=1, sort_keys=True)
        write_text(f"{content}\n", fresh / self.contents.manifest)

    def _read_manifest(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Read the manifest in the folder with the hashes of the files that it lists; empty without a manifest.

        Raises:
            HeadscopeError: it is no manifest that `write` wrote, and would be overwritten.
        """
        path = self.path / self.contents.manifest
        if not path.exists():
            return {}, {}
        content = read_bytes(path, MANIFEST)
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
        return about, names

    def _remove_older(self, keep: Sequence[str]) -> None:
        for name in self._read_manifest()[1].keys() - set(keep):
            path = self.path / name
            # It is asked for a file first, since a link that leads to itself leads nowhere.
            if path.suffix in OUTPUT_SUFFIXES and path.is_file() and path.resolve().is_relative_to(self.path.resolve()):
                path.unlink(missing_ok=True)


@contextmanager
def reserve_file(path: Path) -> Iterator[Path]:
    """Where the sums of the table in the file `path` are kept for resuming, while no other command writes the file.

    When the block ends well, they are removed, and so is what a killed process left of the file; after an error they
    stay for --resume.

    Raises:
        HeadscopeError: the file cannot be written, or another command is writing it.
    """
    writable(path)
    sums = path.with_name(f".{path.name}.partial.npz")
    with reserve(path, path.with_name(f".{path.name}.lock")):
        yield sums
        remove_unfinished(path)
        remove_sums(sums)


def remove_sums(sums: Path) -> None:
    """Remove the sums of a table and of its parts, and the temporary files of a killed process."""
    parts = f"{escape(sums.stem)}.*{escape(sums.suffix)}"
    for pattern in (escape(sums.name), parts, f".{parts}"):
        for path in sums.parent.glob(pattern):
            path.unlink(missing_ok=True)


def _is_listed(entry: tuple[str, object]) -> bool:
    """Return True for the name of a file in the folder with a SHA-256."""
    name, digest = entry
    parts = PurePosixPath(name).parts
    inside = not PurePosixPath(name).is_absolute() and ".." not in parts and bool(parts)
    fits = is_plain(name) and all(len(part.encode()) < 256 for part in parts)
    return inside and fits and isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) is not None


def write_content(content: "Content", path: Path) -> None:
    """Write a head table, a data frame as CSV or a text, whole or not at all; or call a function that writes."""
    from xarray import Dataset

    from headscope.heads import write_table

    if isinstance(content, str):
        write_text(content, path)
    elif isinstance(content, Dataset):
        write_table(content, path)
    elif callable(content):
        content(path)
    else:
        with atomic_write(path) as temporary:
            content.to_csv(temporary, index=False, float_format="%.6g")
