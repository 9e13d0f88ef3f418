"""The results of a study. No torch here."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr

    from headscope.studies.findings import Finding
    from headscope.studies.recorded import Recorded
    from headscope.studies.study import Study


@dataclass(frozen=True)
class StudyResult:
    """The results of `headscope.study`.

    Attributes:
        study: the study.
        findings: the verdict on each claim.
        tables: the head tables, by the names of the study's measurements.
        folder: the folder; None if nothing was written.
        files: all files, relative to `folder`.
    """

    study: "Study"
    findings: "tuple[Finding, ...]"
    tables: "Mapping[str, xr.Dataset]"
    folder: Path | None
    files: tuple[str, ...]


@dataclass(frozen=True)
class RecordedResult:
    """The results of `headscope.study_recorded`, by model, and the files that were written, relative to the folder."""

    study: "Study"
    models: "tuple[Recorded, ...]"
    folder: Path | None
    files: tuple[str, ...]
