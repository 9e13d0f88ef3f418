"""The output of `headscope study`."""

from rich.console import Console

from headscope.commands.sentences import print_written
from headscope.commands.study.request import TypedStudy
from headscope.commands.study.study_result import RecordedResult, StudyResult
from headscope.studies import recorded, sheet


def show(request: TypedStudy, result: StudyResult | RecordedResult, console: Console) -> None:
    """Print the verdicts on the claims, and the file to read."""
    if isinstance(result, RecordedResult):
        recorded.show(result.study, result.models, console, whole=request.whole)
    else:
        sheet.show(result.study, result.findings, result.tables, console, whole=request.whole)
    if result.folder is not None:
        print_written(
            "Read", result.folder / f"{request.name}.md", len(result.files), console, figures=request.has_figures
        )
