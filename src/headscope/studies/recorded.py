"""A study of scores that were recorded elsewhere: NumPy arrays in, the paper's tables and claims out. No weights.

A file of the folder, ``NAME.npz``, is a model: its scores before fine-tuning and in each run, as `Recording` lays them
out. Where the name is that of a model of the paper, its figures stand beside the paper's; of other models there are
the tables alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.errors import CorpusError, HeadscopeError
from headscope.files import atomic_write
from headscope.jobs.folder import Job, Progress
from headscope.studies import STUDIES, sheet
from headscope.studies.arrays import named, read
from headscope.studies.study import (
    RECORDED,
    Finding,
    Recording,
    Study,
    derive,
    judge,
)
from headscope.view import figures

TUNED = ("tuned_task", "tuned_control")


@dataclass(frozen=True)
class Recorded:
    """One model of a folder of recorded scores.

    Attributes:
        name: of the file, without its ending.
        tables: head tables, and what follows from them.
        findings: how the paper's claims stand; none of a model that the paper does not have.
        absent: why tables are missing.
        unread: arrays of the file that the study does not know.
    """

    name: str
    tables: Mapping[str, xr.Dataset]
    findings: tuple[Finding, ...]
    absent: Mapping[str, str]
    unread: tuple[str, ...]

    @property
    def told(self) -> list[str]:
        """What is not there, and what was not read."""
        missing = [f"{why}: there is no table of {name}." for name, why in self.absent.items() if name not in TUNED]
        return missing + [f"The array {name} is none that the study knows; it was left out." for name in self.unread]

    @property
    def shape(self) -> str:
        """Layers, heads and runs in words."""
        sizes = next(iter(self.tables.values())).sizes
        told = [f"{_counted(sizes['layer'], 'layer')} of {_counted(sizes['head'], 'head')}"]
        for name, table in self.tables.items():
            corpus, _, group = name.partition("_")
            if group and "group" not in table.dims:
                told.append(f"{_counted(table.sizes['run'], 'run')} of the {group} on {corpus}")
        return ", ".join(told)


def recorded(
    name: str,
    folder: str | Path,
    out: str | Path = "headscope-study",
    *,
    progress: Progress | None = None,
) -> tuple[tuple[Recorded, ...], tuple[str, ...]]:
    """Make the paper's tables, tests and figures of scores that were recorded elsewhere.

    Args:
        name: of `STUDIES`.
        folder: holds a ``.npz`` for each model.
        out: the folder for ``NAME.md``, ``NAME.csv``, and for each model a folder of tables and figures.
        progress: is told of the progress.

    Returns:
        The models, by name, and what was written.

    Raises:
        HeadscopeError: there is no such study, it has no recorded scores, or a file is refused.
    """
    if name not in STUDIES:
        raise HeadscopeError(f"there is no study {name!r}; there are {', '.join(STUDIES)}.")
    study, progress = STUDIES[name], progress or (lambda stage, done, total: None)
    if study.recording is None:
        known = ", ".join(other for other, one in STUDIES.items() if one.recording is not None)
        raise HeadscopeError(f"there is no layout of recorded scores for the study {name}; there is one for {known}.")
    job = Job("the study", Path(out), f"{name}.json", (), False, progress)
    job.check()
    models = []
    for path in files(Path(folder).expanduser()):
        progress(f"reading {path}", 0, 0)
        models.append(judged(study, study.recording, path))
    call = f"recorded({name!r}, {str(folder)!r})"
    about = {"call": call, "recorded": {model.name: dict(_about(model)) for model in models}}
    written = job.write(lambda fresh: _fill(fresh, name, study, models), about)
    return tuple(models), written


def files(folder: Path) -> list[Path]:
    """The files of recorded scores of a folder, by name.

    Raises:
        CorpusError: it is no folder, or has none.
    """
    if not folder.is_dir():
        raise CorpusError(f"{folder} is no folder; give one that holds recorded scores, a .npz for each model.")
    found = sorted(folder.glob("*.npz"))
    if not found:
        raise CorpusError(f"{folder} holds no .npz; give a folder of recorded scores, a .npz for each model.")
    return found


def judged(study: Study, recording: Recording, path: Path) -> Recorded:
    """The tables of one model, and how the claims stand on them if the paper has this model.

    Raises:
        CorpusError: the file is not as the layout has it.
    """
    tables, absent, unread = read(study, recording, path)
    whose = named(study, path.stem)
    findings = judge(study, tables, absent) if whose else ()
    return Recorded(path.stem, derive(study, tables)[0], findings, absent, unread)


def _fill(folder: Path, name: str, study: Study, models: Sequence[Recorded]) -> None:
    rows = []
    for model in models:
        place = folder / model.name
        for which, (_, frame) in sheet.printed(study, model.tables).items():
            with atomic_write(place / f"{which}.csv") as temporary:
                frame.to_csv(temporary, index=False, float_format="%.6g")
        for figure in _drawn(study, model):
            on, draw = study.figures[figure]
            figures.save(draw(*(_of_unknown_texts(model.tables[one]) for one in on)), place, figure)
        found = sheet.frame(model.findings)
        found.insert(0, "model", model.name)
        rows.append(found)
    with atomic_write(folder / f"{name}.csv") as temporary:
        pd.concat(rows).to_csv(temporary, index=False, float_format="%.6g")
    with atomic_write(folder / f"{name}.md") as temporary:
        temporary.write_text(markdown(name, study, models), encoding="utf-8")


def _drawn(study: Study, model: Recorded) -> list[str]:
    """The figures of what fine-tuning changes, as far as there are tables for them."""
    return [
        name
        for name, (on, _) in study.figures.items()
        if any(one in study.derived for one in on) and all(one in model.tables for one in on)
    ]


def markdown(name: str, study: Study, models: Sequence[Recorded]) -> str:
    """The whole sheet: for each model the paper's tables, and its claims where the paper has the model."""
    lines = [
        f"# {study.title}",
        "",
        f"`headscope study {name} --recorded`: the paper's tables and tests from recorded scores of heads, without "
        "weights. Shares are in percent; ± is the standard deviation over runs.",
    ]
    for model in models:
        lines += ["", f"## {model.name}", "", f"{model.shape}."]
        lines += ["", *(f"- {told}" for told in model.told)] if model.told else []
        for table, frame in sheet.printed(study, model.tables).values():
            lines += ["", f"### {table.title}", "", *sheet.grid(sheet.laid_out(table, frame))]
        lines += sheet.pictures({figure: f"{model.name}/{figure}.png" for figure in _drawn(study, model)})
        lines += ["", "### Claims", ""]
        if model.findings:
            beside = study.beside(model.tables)
            lines += [
                f"By its name the file is of {beside}: its figures are held against those that the paper has.",
                "",
            ]
            lines += sheet.table_of(beside, model.name, model.findings)
        else:
            lines.append(f"The paper has no model of this name; it has {', '.join(study.models)}.")
    lines += ["", "## Notes", ""]
    lines += [f"- {_sentence(misprint)}" for misprint in study.misprints]
    lines += [f"- {note}" for note in study.recording.notes] if study.recording else []
    return "\n".join(lines) + "\n"


def show(study: Study, models: Sequence[Recorded], console: Console) -> None:
    """The tables on the terminal, and how many claims stand how."""
    for model in models:
        console.print(f"\n[bold]{escape(model.name)}[/]: {escape(model.shape)}", soft_wrap=True)
        for told in model.told:
            console.print(escape(told), soft_wrap=True)
        for table, frame in sheet.printed(study, model.tables).values():
            console.print(f"\n{escape(table.title)}", soft_wrap=True)
            console.print(sheet.terminal(sheet.laid_out(table, frame), console.width))
        if model.findings:
            beside = study.beside(model.tables)
            claims = (
                f"{len(model.findings)} claims about {beside}, by the file's name: {sheet.summary(model.findings)}."
            )
            console.print(f"\n{escape(claims)}", soft_wrap=True)
        else:
            console.print("\nThe paper has no model of this name, so no claims about it.", soft_wrap=True)
    console.print()
    for misprint in study.misprints:
        console.print(escape(_sentence(misprint)), soft_wrap=True)


def _of_unknown_texts(table: xr.Dataset) -> xr.Dataset:
    """A figure would say of how many texts it is."""
    table = table.copy()
    table.attrs.pop("documents")
    return table


def _about(model: Recorded) -> dict[str, Any]:
    files = {table.attrs[RECORDED]: table.attrs["weights_sha256"].rpartition(" ")[2] for table in model.tables.values()}
    return {"files": files, "shape": model.shape, "told": model.told}


def _sentence(note: str) -> str:
    return f"{note[:1].upper()}{note[1:]}."


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
