"""Findings as a page of text (Markdown) and as a data frame: the paper's figure, one's own and the difference."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

import pandas as pd
import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headscope.runs import Runs
from headscope.studies.study import VERDICTS, Finding, NotMeasuredError, Printed, Study, Value
from headscope.view import tuned

SPLITS = {"task": "of the task's test", "reading": "the task"}
"""What is not called as a reader would call it."""


def frame(findings: Sequence[Finding]) -> pd.DataFrame:
    """One row a claim."""
    return pd.DataFrame([_row(finding) for finding in findings])


def summary(findings: Sequence[Finding]) -> str:
    """How many claims stand how."""
    counts = Counter(finding.verdict for finding in findings)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])


def cells(finding: Finding) -> tuple[str, str, str, str, str, str]:
    """Where, what, the paper's figure, one's own, the difference and the verdict, as text."""
    claim, ours, digits = finding.claim, finding.ours, finding.claim.digits
    # Less than half of the last digit is no difference; 0.0 is added so that none is "-0.0".
    known = not (math.isnan(finding.difference) or claim.significant)
    difference = f"{round(finding.difference, digits) + 0.0:+.{digits}f}" if known else ""
    by_pattern = finding.verdict in ("holds", "fails", "unclear")
    verdict = f"{finding.verdict}: {claim.pattern.says}" if claim.pattern and by_pattern else finding.verdict
    paper = text(claim.paper, digits, claim.significant)
    own = "" if ours is None else text(ours, digits, claim.significant)
    what = claim.what if claim.unit in ("%", "p") else f"{claim.what} ({claim.unit})"
    return claim.where, what, paper, own, difference, verdict


def text(value: Value, digits: int, significant: int = 0) -> str:
    """A figure, its interval, and what it is of."""
    if math.isnan(value.number):
        return value.of
    lower, upper = (number(end, digits, significant) for end in (value.lower, value.upper))
    interval = "" if math.isnan(value.lower) else f" [{lower}, {upper}]"
    return f"{number(value.number, digits, significant)}{interval}" + (f" ({value.of})" if value.of else "")


def number(value: float, digits: int, significant: int = 0) -> str:
    """A number with so many decimals; or a p-value with so many digits, as papers print it: ``7.578e-05``."""
    if not significant:
        return f"{round(value, digits) + 0.0:.{digits}f}"  # 0.0 is added so that none is "-0.0"
    return f"{value:.{significant - 1}e}" if 0 < abs(value) < 1e-4 else f"{value:#.{significant}g}"


def markdown(
    name: str,
    study: Study,
    findings: Sequence[Finding],
    tables: Mapping[str, xr.Dataset],
    runs: Mapping[str, Runs] | None = None,
    made: Sequence[tuple[Printed, pd.DataFrame]] = (),
    drawn: Sequence[str] = (),
) -> str:
    """The whole sheet.

    Args:
        name: of the study.
        study: the study.
        findings: how its claims stand.
        tables: on which; those that were measured head the sheet.
        runs: what was fine-tuned, by group.
        made: the paper's tables of that.
        drawn: the figures that were, by name; they are in the folder ``figures``.
    """
    model, beside = str(next(iter(tables.values())).attrs["model"]), study.beside(tables)
    lines = [
        f"# {study.title}",
        "",
        f"`headscope study {name}`: {model}, beside the paper's {beside}. Shares are in percent.",
        "",
        _line("", "the paper's corpus", "this corpus", "documents", "words", "the same"),
        "| --- | --- | --- | ---: | ---: | --- |",
    ]
    for of, one in study.measurements.items():
        if of not in tables:
            continue
        about = tables[of].attrs
        counts = (f"{about[what]:,}" for what in ("documents", "words"))
        same = "yes" if about["corpus_sha256"] in one.published else "no"
        path = str(about["corpus"])
        corpus = one.corpus if one.corpus and path.endswith(one.corpus) else path
        corpus += f", {about['part']}" if "part" in about else ""
        lines.append(_line(of, one.paper, corpus, *counts, same))
    lines += tuned_of(study, runs) if runs else []
    for table, frame in made:
        lines += ["", f"## {table.title}", "", *grid(laid_out(table, frame))]
    lines += ["", *(["## Claims", ""] if runs else []), *table_of(beside, model, findings)]
    if drawn:
        lines += ["", "## Figures", *pictures({figure: f"figures/{name}-{figure}.png" for figure in drawn})]
    lines += ["", *(["## Notes", ""] if runs else []), *(f"- {note}" for note in study.notes)]
    return "\n".join(lines) + "\n"


def tuned_of(study: Study, runs: Mapping[str, Runs]) -> list[str]:
    """What was fine-tuned and how, beside the paper's."""
    lines = ["", "## Fine-tuning", ""]
    lines += [f"The paper: {study.tuning.paper}."] if study.tuning else []
    told: set[str] = set()
    for group, one in runs.items():
        kept = ", ".join(f"{run.name} {run.kept}" for run in one.runs)
        examples, epochs = one.settings["examples"], one.settings["epochs"]
        counts = ", ".join(f"{count:,} {SPLITS.get(split, split)}" for split, count in examples.items())
        lines += ["", f"{one.task}{' (control)' if group == 'control' else ''}: examples {counts}; {epochs} "
                  f"epoch{'' if epochs == 1 else 's'} at a learning rate of {one.settings['learning_rate']:g}; the "
                  f"epoch that is best by {one.metric} on {one.select} is kept: {kept}.", ""]  # fmt: skip
        for split, called in {"test": "the test split", "task": "the task's test split"}.items():
            if scores := tuned.scores(one, split):
                told_so = ", ".join(f"{name} {text}" for name, text in scores.items())
                lines.append(f"- On {called}, mean ± standard deviation over runs: {told_so}.")
        notes = [f"- {note}." for note in one.settings.get("notes", ())] + [
            f"- left out of {SPLITS.get(place, place)}: {count:,} {reason}."
            for place, reasons in one.settings.get("skipped", {}).items()
            for reason, count in reasons.items()
        ]
        lines += [note for note in notes if note not in told]  # those of the control are the task's, and some more
        told |= set(notes)
    return lines


def table_of(beside: str, model: str, findings: Sequence[Finding]) -> list[str]:
    """How many claims stand how, what that means, and a line for each."""
    verdicts = {finding.verdict for finding in findings}
    lines = [f"{len(findings)} claims: {summary(findings)}.", ""]
    lines += [f"- *{verdict}*: {meaning}" for verdict, meaning in VERDICTS.items() if verdict in verdicts]
    lines += ["", _line("where", "what", beside, model, "difference", "held out", "verdict", "note")]
    lines.append("| --- | --- | --- | --- | ---: | --- | --- | --- |")
    for finding in findings:
        where, what, paper, own, difference, verdict = cells(finding)
        held = finding.ours.held_out if finding.ours else None
        held_out = text(held, finding.claim.digits, finding.claim.significant) if held else ""
        lines.append(_line(where, what, paper, own, difference, held_out, verdict, _note(finding)))
    return lines


def printed(study: Study, tables: Mapping[str, xr.Dataset]) -> dict[str, tuple[Printed, pd.DataFrame]]:
    """The paper's tables of what fine-tuning changes, as far as they can be made."""
    made = {}
    for name, table in study.printed.items():
        with suppress(NotMeasuredError):
            made[name] = (table, table.make(tables))
    return made


def laid_out(table: Printed, frame: pd.DataFrame) -> pd.DataFrame:
    """A table as a reader wants it: rounded, a deviation beside its mean, and no column without a value.

    Counts of runs are laid out as papers do: ``0/3`` of those upwards and downwards, ``3/10`` of all.
    """
    text = pd.DataFrame(index=frame.index)
    for name in map(str, frame.dropna(axis="columns", how="all").columns):
        of, _, kind = name.rpartition(" ")
        if (kind == "sd" and of in frame) or (kind == "neg" and f"{of} pos" in frame):
            continue
        if kind == "pos":
            text[f"{of} pos/neg"] = _joined(table, frame, name, "/", f"{of} neg")
        elif kind == "sig":
            text[name] = _joined(table, frame, name, "/", "runs")
        else:
            text[name] = _joined(table, frame, name, " ± ", f"{name} sd")
    return text


def _joined(table: Printed, frame: pd.DataFrame, name: str, between: str, beside: str) -> list[str]:
    """The cells of a column, and those that belong beside them where there are any."""
    cells = [_cell(value, table) for value in frame[name]]
    if beside not in frame:
        return cells
    others = [_cell(value, table) for value in frame[beside]]
    return [f"{one}{between}{other}" if one and other else one for one, other in zip(cells, others, strict=True)]


def _cell(value: object, table: Printed) -> str:
    if not isinstance(value, float):
        return str(value)
    return "" if math.isnan(value) else number(value, table.digits, table.significant)


def terminal(frame: pd.DataFrame, width: int) -> Table:
    """A data frame of text for a terminal so wide: where that is narrow, names of columns break and no cell does."""
    names = list(map(str, frame.columns))
    cells = [max(map(len, map(str, frame[name])), default=0) for name in names]
    whole = [max(cell, len(name)) for cell, name in zip(cells, names, strict=True)]
    widths = [max(cell, *map(len, name.split())) for cell, name in zip(cells, names, strict=True)]
    apart = 2 if sum(whole) + 2 * len(names) <= width else 1
    room = width - apart * len(names)
    while sum(widths) < room and widths != whole:
        narrowest = min((wide, place) for place, wide in enumerate(widths) if wide < whole[place])[1]
        widths[narrowest] += 1
    grid = Table(box=None, pad_edge=False, padding=(0, apart, 0, 0))
    for name, wide in zip(names, widths, strict=True):
        grid.add_column(escape(name), width=wide)
    for row in frame.itertuples(index=False):
        grid.add_row(*(escape(str(cell)) for cell in row))
    return grid


def grid(frame: pd.DataFrame) -> list[str]:
    """A data frame of text in Markdown."""
    lines = [_line(*map(str, frame.columns)), f"| {' | '.join('---' for _ in frame.columns)} |"]
    return lines + [_line(*map(str, row)) for row in frame.itertuples(index=False)]


def pictures(files: Mapping[str, str]) -> list[str]:
    """Figures in Markdown, by what they show: ``figure-4`` -> its file."""
    return [line for name, file in files.items() for line in ("", f"![{name.replace('-', ' ')}](<{file}>)")]


def _line(*cells: str) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _note(finding: Finding) -> str:
    return "; ".join(filter(None, (finding.why, finding.claim.note)))


def show(study: Study, findings: Sequence[Finding], tables: Mapping[str, xr.Dataset], console: Console) -> None:
    """The findings on the terminal: those that were judged, and how many there are of each kind."""
    model = str(next(iter(tables.values())).attrs["model"])
    console.print(f"\n[bold]{escape(model)}[/], beside the paper's {study.beside(tables)}; shares in percent\n")
    grid = Table(box=None, pad_edge=False)
    for column in ("where", "what", "paper", "here", "verdict"):
        grid.add_column(column)
    styles = {"agrees": "green", "holds": "green", "differs": "red", "fails": "red"}
    for finding in findings:
        if finding.verdict not in ("shown", "not measured"):
            where, what, paper, own, _, verdict = cells(finding)
            styled = f"[{styles.get(finding.verdict, 'yellow')}]{escape(verdict)}[/]"
            grid.add_row(*map(escape, (where, what, paper, own)), styled)
    console.print(grid)
    console.print(f"\n{len(findings)} claims: {summary(findings)}.")


def _row(finding: Finding) -> dict[str, object]:
    claim, ours = finding.claim, finding.ours or Value(math.nan)
    held = ours.held_out or Value(math.nan)
    return {
        "where": claim.where,
        "what": claim.what,
        "unit": claim.unit,
        "paper": claim.paper.number,
        "paper_of": claim.paper.of,
        "ours": ours.number,
        "ours_of": ours.of,
        "ours_lower": ours.lower,
        "ours_upper": ours.upper,
        "difference": finding.difference,
        "held_out": held.number,
        "held_out_of": held.of,
        "held_out_lower": held.lower,
        "held_out_upper": held.upper,
        "same_model_and_corpus": finding.same,
        "verdict": finding.verdict,
        "pattern": claim.pattern.says if claim.pattern else "",
        "note": _note(finding),
    }
