"""A study of scores that were recorded elsewhere: the paper's tables, tests and figures, without any weights."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from headscope.commands.folder import write_csv
from headscope.commands.output import open_folder
from headscope.commands.progress import Progress
from headscope.commands.study.request import StudyRecorded
from headscope.commands.study.result import RecordedResult
from headscope.files import write_text
from headscope.studies import STUDIES, sheet
from headscope.studies.recorded import Recorded, judge_recording, list_figures, list_recordings, render_markdown
from headscope.studies.study import RECORDED, Study
from headscope.view import figures


def run(request: StudyRecorded, progress: Progress) -> RecordedResult:
    """Judge the claims of a paper by the recorded scores of each model, and write the folder."""
    name, study = request.name, STUDIES[request.name]
    assert study.recording is not None  # checked
    with open_folder(request, progress) as folder:
        models = []
        for path in list_recordings(Path(request.recorded).expanduser()):
            progress(f"reading {path}", 0, 0)
            models.append(judge_recording(study, study.recording, path))
        call = f"study_recorded({name!r}, {str(request.recorded)!r})"
        about = {"call": call, "recorded": {model.name: _describe_model(model) for model in models}}
        files = folder.write(lambda fresh: _fill(fresh, name, study, models), about)
    return RecordedResult(study, tuple(models), folder.path if folder.kept else None, files)


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
