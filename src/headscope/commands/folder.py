"""The output folder or file of a command. Only one command writes to it at a time; a killed command can be resumed."""

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

if TYPE_CHECKING:  # a folder is checked before slow imports
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from headscope.capture.model.model import Model
    from headscope.reducers.reducer import Reducer
    from headscope.runner import Plan

    Content: TypeAlias = xr.Dataset | pd.DataFrame | str | Callable[[Path], object]
    """The content of a file, or a function that writes it to a path."""

OUTPUT_SUFFIXES = (".nc", ".html", ".csv", ".md", ".png", ".svg", ".pdf", ".json")
"""The suffixes of the files that commands write, besides their manifests."""


@dataclass(frozen=True)
class OutputFolder:
    """The output folder of a command. In its ``with`` block no other command can write to the folder.

    If the block ends without an error, the sums for resuming are removed; after an error they stay for --resume.

    Attributes:
        contents: The files of the folder.
        path: The folder.
        resume: Whether to continue from the sums of a killed command.
        progress: A function that is called as the work advances.
        kept: False for a temporary folder that holds only sums, and no results.
    """

    contents: Contents
    path: Path
    resume: bool = False
    progress: Progress = ignore_progress
    kept: bool = True
    _reserved: ExitStack = field(default_factory=ExitStack, init=False, repr=False, compare=False)

    def __enter__(self) -> "OutputFolder":
        """Check and reserve the folder, and return it.

        Raises:
            HeadscopeError: The folder cannot be used (`check`), or another command is writing to it.
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
            HeadscopeError: The folder is a file, cannot be written to, or has a table, a manifest or another output
                file that headscope did not write.
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
        """Measure a model, or all `runs` tuned from it, as one of the tables in `Contents.tables`.

        The sums stay in the folder until everything is written.

        Args:
            table: The name of the table.
            model: The model.
            documents: The documents to measure on.
            reducers: The reducers.
            label: The name of this step in the progress.
            plan: How the model reads the texts.
            summary: The summary of the documents.
            runs: The runs to measure in place of the model.
            trust_remote_code: Whether Python code in the folders of the runs may be executed.
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
        """The folder; None for a temporary folder."""
        return self.path if self.kept else None

    @property
    def listed(self) -> frozenset[str]:
        """The names of the files that the manifest lists."""
        return frozenset(self._read_manifest()[1])

    def finish(
        self,
        request: Request[Any],
        names: Mapping[str, str],
        tables: "Mapping[str, xr.Dataset]",
        files: "Mapping[str, Content] | None" = None,
        draw: "Callable[[], Mapping[str, Figure]]" = dict,
    ) -> "xr.Dataset":
        """Write head tables with the request that made them, and other files; return the first table.

        Args:
            request: The request that was run.
            names: The names of the inputs, by field of the request.
            tables: The head tables, by name.
            files: Other files, as for `write`.
            draw: A function that returns figures by name. It is called only if figures are requested, after the table
                is shown.
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
        """Write all files, and return their names relative to the folder; a temporary folder gets none.

        The files are written to a subfolder first, so that a failure leaves older results as they were. Files that the
        old manifest lists and that are not written again are removed, and so are leftovers of a killed command. No
        other files are touched.

        Args:
            files: The contents of the files by name, written in this order.
            about: The information that the manifest records in addition to the hashes.

        Raises:
            HeadscopeError: The files cannot be written to the disk.
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
        """Add figures to the folder, and return the names of their files; a temporary folder gets none.

        Args:
            figures: The figures, or functions that draw them, by their names in ``figures/`` without suffix.
            files: Files that show the figures, as for `write`; they are written after the figures.
            pdf: Write figures as PDF too.
            bare: Leave out the titles of the figures and the lines below them.

        Raises:
            HeadscopeError: The files cannot be written to the disk.
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
        """Yield a temporary subfolder; if the block ends without an error, move its files to the folder.

        Args:
            what: The name of the files in error messages.
        """
        fresh = self._make_fresh()
        try:
            yield fresh
            # Move pages after the files they show, and the manifest last, so that a half-moved folder looks incomplete.
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
        """Make and return a new temporary subfolder; older ones, which killed commands left, are removed."""
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
        """Return the path of the file of sums from which a killed command resumes the table of this name."""
        return self.path / f".{table}.partial.npz"

    @property
    def _pending(self) -> Path:
        """The file with the names of files that are being moved to the folder and that no manifest lists yet."""
        return self.path / f".{self.contents.manifest}.pending"

    def _read_pending(self) -> list[str]:
        """Return the names of the files that a killed command was moving; empty if their list is missing or damaged."""
        try:
            names = parse_json(read_bytes(self._pending, MANIFEST))
        except (HeadscopeError, ValueError):
            return []
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []

    def _refuse_foreign(self, names: Iterable[str]) -> None:
        """Raise an error if the folder has a file with one of these names that headscope did not write."""
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
        """Read the manifest of the folder; without a manifest, both results are empty.

        Returns:
            What the manifest records, and the hashes of the files by name.

        Raises:
            HeadscopeError: The file of this name is not a manifest that `write` wrote, and would be overwritten.
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
            # Check `is_file` first, since `resolve` fails for a link to itself.
            if path.suffix in OUTPUT_SUFFIXES and path.is_file() and path.resolve().is_relative_to(self.path.resolve()):
                path.unlink(missing_ok=True)


@contextmanager
def reserve_file(path: Path) -> Iterator[Path]:
    """Reserve an output file in the block, and yield the path of its sums for resuming.

    No other command can write the file in the block. If the block ends without an error, the sums and the leftovers of
    killed commands are removed; after an error they stay for --resume.

    Raises:
        HeadscopeError: The file cannot be written, or another command is writing it.
    """
    writable(path)
    sums = path.with_name(f".{path.name}.partial.npz")
    with reserve(path, path.with_name(f".{path.name}.lock")):
        yield sums
        remove_unfinished(path)
        remove_sums(sums)


def remove_sums(sums: Path) -> None:
    """Remove a file of sums, the sums of its parts, and their temporary files."""
    parts = f"{escape(sums.stem)}.*{escape(sums.suffix)}"
    for pattern in (escape(sums.name), parts, f".{parts}"):
        for path in sums.parent.glob(pattern):
            path.unlink(missing_ok=True)


def _is_listed(entry: tuple[str, object]) -> bool:
    """Return True for a file name inside the folder with a valid SHA-256."""
    name, digest = entry
    parts = PurePosixPath(name).parts
    inside = not PurePosixPath(name).is_absolute() and ".." not in parts and bool(parts)
    fits = is_plain(name) and all(len(part.encode()) < 256 for part in parts)
    return inside and fits and isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) is not None


def write_content(content: "Content", path: Path) -> None:
    """Write a head table, a data frame (as CSV) or a text to a file in one step; a function writes the file itself."""
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
