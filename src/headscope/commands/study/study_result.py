"""The results of a study. This module needs no torch."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.results import Facts, Result

if TYPE_CHECKING:
    import xarray as xr

    from headscope.studies.findings import Finding
    from headscope.studies.recorded import Recorded
    from headscope.studies.study import Study


@dataclass(frozen=True, repr=False)
class StudyResult(Result):
    """The results of `headscope.study`.

    Attributes:
        study: The study: the measurements and claims of the paper.
        findings: The verdict on each claim.
        tables: The head tables, by the names of the study's measurements.
        folder: The folder; None if nothing was written.
        files: The names of all files, relative to `folder`.
    """

    study: "Study"
    findings: "tuple[Finding, ...]"
    tables: "Mapping[str, xr.Dataset]"
    folder: Path | None
    files: tuple[str, ...]

    @property
    def facts(self) -> Facts:
        """The paper, the number of findings with each verdict, the tables, and the folder."""
        return {"study": self.study.title, **_count_verdicts(self.findings), "tables": [*self.tables]} | {
            "folder": self.folder
        }


@dataclass(frozen=True, repr=False)
class RecordedResult(Result):
    """The results of `headscope.study_recorded` for each model, and the written files, relative to the folder."""

    study: "Study"
    models: "tuple[Recorded, ...]"
    folder: Path | None
    files: tuple[str, ...]

    @property
    def facts(self) -> Facts:
        """The paper, the models, the number of findings with each verdict, and the folder."""
        findings = [finding for model in self.models for finding in model.findings]
        models = tuple(model.name for model in self.models)
        return {"study": self.study.title, "models": models, **_count_verdicts(findings), "folder": self.folder}


def _count_verdicts(findings: "Iterable[Finding]") -> dict[str, int]:
    return dict(Counter(finding.verdict.replace(" ", "_") for finding in findings))
