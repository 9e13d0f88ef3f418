"""A study of recorded scores: NumPy arrays in, the paper's tables and claims out. No weights are needed.

Each file ``NAME.npz`` of the folder holds the scores of one model, before fine-tuning and in each run, in the layout of
`Recording`. If the name is the one of a model of the paper, its figures are compared with the paper's. For other models
the claims are judged in the same way as for models that a user fine-tunes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.corpora.text import format_count
from headscope.errors import CorpusError
from headscope.studies import sheet
from headscope.studies.arrays import find_paper_model, read_recording
from headscope.studies.findings import Finding, derive, judge
from headscope.studies.study import Recording, Study
from headscope.view.lines import print_findings, print_grid, print_more

TUNED = ("tuned_task", "tuned_control")


@dataclass(frozen=True)
class Recorded:
    """One model of a folder of recorded scores.

    Attributes:
        name: the name of the file, without its suffix.
        tables: head tables, and the tables derived from them.
        findings: the verdicts on the paper's claims.
        absent: for each missing table, the reason.
        unread: arrays of the file that the study does not know.
    """

    name: str
    tables: Mapping[str, xr.Dataset]
    findings: tuple[Finding, ...]
    absent: Mapping[str, str]
    unread: tuple[str, ...]

    @property
    def warnings(self) -> list[str]:
        """Sentences about missing tables and about arrays that were not read."""
        missing = [f"{why}: the table {name} is missing." for name, why in self.absent.items() if name not in TUNED]
        return missing + [f"The study does not know the array {name}; it was left out." for name in self.unread]

    @property
    def shape(self) -> str:
        """The number of layers, heads and runs, in words."""
        sizes = next(iter(self.tables.values())).sizes
        parts = [f"{format_count(sizes['layer'], 'layer')} of {format_count(sizes['head'], 'head')}"]
        for name, table in self.tables.items():
            corpus, _, group = name.partition("_")
            if group and "group" not in table.dims:
                parts.append(f"{format_count(table.sizes['run'], 'run')} of the {group} on {corpus}")
        return ", ".join(parts)


def list_recordings(folder: Path) -> list[Path]:
    """Return the files of recorded scores in a folder, sorted by name.

    Raises:
        CorpusError: `folder` is not a folder, or has no ``.npz`` file.
    """
    recordings = sorted(folder.glob("*.npz"))
    if not recordings:
        fault = "has no .npz file" if folder.is_dir() else "is not a folder"
        raise CorpusError(f"{folder} {fault}; give a folder of recorded scores, with one .npz file for each model.")
    return recordings


def judge_recording(study: Study, recording: Recording, path: Path) -> Recorded:
    """Return the tables of the model in one file of recorded scores, and the verdicts on the claims.

    Raises:
        CorpusError: the file does not follow the layout.
    """
    tables, absent, unread = read_recording(study, recording, path)
    return Recorded(path.stem, derive(study, tables)[0], judge(study, tables, absent), absent, unread)


def list_figures(study: Study, model: Recorded) -> list[str]:
    """Return the names of the figures about fine-tuning whose tables the model has."""
    needed = {name: set(tables) for name, (tables, _) in study.figures.items()}
    return [name for name in needed if needed[name] & set(study.derived) and needed[name] <= set(model.tables)]


def render_markdown(name: str, study: Study, models: Sequence[Recorded], *, with_figures: bool = False) -> str:
    """Return the whole page: for each model the paper's tables, its figures if they are drawn, and the claims."""
    lines = [
        f"# {study.title}\n",
        f"`headscope study {name} --recorded`: the paper's tables and tests from recorded scores of heads, without "
        "weights. Shares are in percent; ± is the standard deviation over runs.",
    ]
    for model in models:
        lines += ["", f"## {model.name}", "", f"{model.shape}."]
        lines += ["", *(f"- {warning}" for warning in model.warnings)] if model.warnings else []
        for table, frame in sheet.make_printed_tables(study, model.tables).values():
            lines += ["", f"### {table.title}", "", *sheet.render_grid(sheet.lay_out(table, frame))]
        shown = list_figures(study, model) if with_figures else []
        lines += sheet.render_pictures({figure: f"figures/{model.name}/{figure}.png" for figure in shown})
        beside = study.paper_model(model.tables)
        if find_paper_model(study, model.name):
            basis = f"The name of the file is that of {beside}, so its figures are compared with the paper's."
        else:
            basis = (
                f"The paper has no model of this name; it has {', '.join(study.models)}. The claims are those about "
                f"{beside}. Its figures are next to them, and what the paper says of it in general is judged."
            )
        lines += ["", "### Claims", "", basis, "", *sheet.render_claims(beside, model.name, model.findings)]
    lines += ["", "## Notes", "", *(f"- {_capitalize(misprint)}" for misprint in study.misprints)]
    lines += [f"- {note}" for note in study.recording.notes] if study.recording else []
    return "\n".join(lines) + "\n"


def show(study: Study, models: Sequence[Recorded], console: Console, *, whole: bool) -> None:
    """Print the number of claims with each verdict, and the first of the paper's tables, or all if `whole` is true."""
    for model in models:
        console.print(f"\n[bold]{escape(model.name)}[/]: {escape(model.shape)}", soft_wrap=True)
        for warning in model.warnings:
            console.print(escape(warning), soft_wrap=True)
        beside, verdicts = study.paper_model(model.tables), sheet.count_verdicts(model.findings)
        basis = (
            "by the file's name" if find_paper_model(study, model.name) else "as the paper has no model of this name"
        )
        print_findings([f"{len(model.findings)} claims about {beside}, {basis}: {verdicts}."], console)
        printed = [*sheet.make_printed_tables(study, model.tables).values()]
        for table, frame in printed if whole else printed[:1]:
            console.print(f"\n{escape(table.title)}", soft_wrap=True)
            print_grid(sheet.make_table(sheet.lay_out(table, frame)), console)
    if whole:
        console.print()
        for misprint in study.misprints:
            console.print(escape(_capitalize(misprint)), soft_wrap=True)
    else:
        print_more(["the other tables", "misprints of the paper" if study.misprints else ""], console)


def _capitalize(note: str) -> str:
    return f"{note[:1].upper()}{note[1:]}."
