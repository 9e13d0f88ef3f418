"""A study of recorded scores: the paper's tables, tests and figures from scores that were measured elsewhere."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.commands.output import open_folder
from headscope.commands.progress import Progress
from headscope.commands.study.request import StudyRecorded
from headscope.commands.study.study_result import RecordedResult
from headscope.studies import STUDIES, sheet
from headscope.studies.recorded import Recorded, judge_recording, list_figures, list_recordings, render_markdown
from headscope.studies.study import RECORDED, Study


def run(request: StudyRecorded, progress: Progress) -> RecordedResult:
    """Judge the claims of a paper by the recorded scores of each model, and write the results to the folder."""
    name, study = request.name, STUDIES[request.name]
    assert study.recording is not None  # `StudyRecorded.check` makes sure of it
    with open_folder(request, progress) as folder:
        models = []
        for path in list_recordings(Path(request.recorded).expanduser()):
            progress(f"reading {path}", 0, 0)
            models.append(judge_recording(study, study.recording, path))
        call = f"study_recorded({name!r}, {str(request.recorded)!r})"
        about = {"call": call, "recorded": {model.name: _describe_model(model) for model in models}}
        written = folder.write(_list_files(name, study, models, with_figures=request.has_figures), about)
        result = RecordedResult(study, tuple(models), folder.out, written)
        request.hand_over(result)
        drawings = folder.draw(_draw(study, models) if folder.kept and request.has_figures else {}, pdf=request.pdf)
    return replace(result, files=tuple(sorted({*written, *drawings})))


def _list_files(name: str, study: Study, models: Sequence[Recorded], *, with_figures: bool) -> dict[str, Any]:
    findings, files = [], {}
    for model in models:
        for table, (_, frame) in sheet.make_printed_tables(study, model.tables).items():
            files[f"{model.name}/{table}.csv"] = frame
        of_model = sheet.tabulate_findings(model.findings)
        of_model.insert(0, "model", model.name)
        findings.append(of_model)
    sheet_of_all = render_markdown(name, study, models, with_figures=with_figures)
    return files | {f"{name}.csv": pd.concat(findings), f"{name}.md": sheet_of_all}


def _draw(study: Study, models: Sequence[Recorded]) -> dict[str, Figure]:
    figures = {}
    for model in models:
        for figure in list_figures(study, model):
            needed, draw = study.figures[figure]
            figures[f"{model.name}/{figure}"] = draw(*(_drop_documents(model.tables[table]) for table in needed))
    return figures


def _drop_documents(table: xr.Dataset) -> xr.Dataset:
    """Return the table without its attribute ``documents``: figures would print a number that is not the true one."""
    table = table.copy()
    table.attrs.pop("documents")
    return table


def _describe_model(model: Recorded) -> dict[str, Any]:
    """Return the entry of a model in the manifest."""
    files = {table.attrs[RECORDED]: table.attrs["weights_sha256"].rpartition(" ")[2] for table in model.tables.values()}
    return {"files": files, "shape": model.shape, "warnings": model.warnings}
