"""A study of scores that were recorded elsewhere: the paper's tables, tests and figures, without any weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from headscope.errors import HeadscopeError
from headscope.files import write_text
from headscope.jobs.folder import OutputFolder, write_csv
from headscope.jobs.progress import Progress, ignore_progress, shows_progress
from headscope.jobs.study_arguments import check_study
from headscope.studies import STUDIES, sheet
from headscope.studies.recorded import Recorded, judge_recording, list_figures, list_recordings, render_markdown
from headscope.studies.study import RECORDED, Study
from headscope.view import figures


@dataclass(frozen=True)
class RecordedResult:
    """What `study_recorded` computed, and the files that it wrote, relative to their folder."""

    study: Study
    models: tuple[Recorded, ...]
    folder: Path
    files: tuple[str, ...]


@shows_progress
def study_recorded(
    name: str, recorded: str | Path, out: str | Path = "headscope-study", *, progress: Progress | bool | None = None
) -> RecordedResult:
    """Make a paper's tables, tests and figures from recorded scores of heads.

    Args:
        name: one of `STUDIES`.
        recorded: a folder with one ``.npz`` file for each model.
        out: the folder for ``NAME.md``, ``NAME.csv``, and for each model a folder of tables and figures.
        progress: True shows it, False does not; a function is called with the step, how much of it is done, and how
            much there is. Default: shown on a terminal and in a notebook.

    Raises:
        HeadscopeError: there is no such study, it has no layout of recorded scores, or a file is refused.
    """
    check_study(name)
    study, progress = STUDIES[name], progress if callable(progress) else ignore_progress
    if study.recording is None:
        known = ", ".join(other for other in STUDIES if STUDIES[other].recording is not None)
        raise HeadscopeError(f"there is no layout of recorded scores for the study {name}; there is one for {known}.")
    with OutputFolder("the study", Path(out), f"{name}.json", (), progress=progress) as folder:
        models = []
        for path in list_recordings(Path(recorded).expanduser()):
            progress(f"reading {path}", 0, 0)
            models.append(judge_recording(study, study.recording, path))
        call = f"study_recorded({name!r}, {str(recorded)!r})"
        facts = {"call": call, "recorded": {model.name: _describe_model(model) for model in models}}
        files = folder.write(lambda fresh: _fill(fresh, name, study, models), facts)
    return RecordedResult(study, tuple(models), folder.path, files)


def _fill(folder: Path, name: str, study: Study, models: Sequence[Recorded]) -> None:
    findings = []
    for model in models:
        for table, (_, frame) in sheet.make_printed_tables(study, model.tables).items():
            write_csv(frame, folder / model.name / f"{table}.csv")
        for figure in list_figures(study, model):
            needed, draw = study.figures[figure]
            figures.save(draw(*(_drop_documents(model.tables[table]) for table in needed)), folder / model.name, figure)
        of_model = sheet.tabulate_findings(model.findings)
        of_model.insert(0, "model", model.name)
        findings.append(of_model)
    write_csv(pd.concat(findings), folder / f"{name}.csv")
    write_text(render_markdown(name, study, models), folder / f"{name}.md")


def _drop_documents(table: xr.Dataset) -> xr.Dataset:
    """The table without the number of documents, which is not known and which a figure would show."""
    table = table.copy()
    table.attrs.pop("documents")
    return table


def _describe_model(model: Recorded) -> dict[str, Any]:
    """What the manifest records of a model."""
    files = {table.attrs[RECORDED]: table.attrs["weights_sha256"].rpartition(" ")[2] for table in model.tables.values()}
    return {"files": files, "shape": model.shape, "warnings": model.warnings}
