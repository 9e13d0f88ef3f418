"""Findings as Markdown, as a data frame and on the terminal: the paper's figure, the measured one, the difference."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

import pandas as pd
import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headscope.analyse.lesions import MATCHES
from headscope.corpora.text import format_count
from headscope.runs import Runs
from headscope.studies.findings import VERDICTS, Finding
from headscope.studies.study import NotMeasuredError, Printed, Study, Value
from headscope.view import tuned_report
from headscope.view.headings import name_model
from headscope.view.lines import make_grid, print_findings, print_grid, print_more

SPLITS = {"task": "of the task's test", "reading": "the task"}
"""The names of splits in texts for readers."""

OF_SEVERAL = {"agrees": "agree", "differs": "differ", "holds": "hold", "fails": "fail"}
"""The plural forms of verdicts that are verbs."""

FALLEN = ("differs", "fails")
"""Verdicts on claims that do not hold here."""

SHOWN = 12
"""The number of claims that the terminal shows at first; claims that do not hold come before the others."""


def tabulate_findings(findings: Sequence[Finding]) -> pd.DataFrame:
    """Return a data frame with one row for each claim."""
    return pd.DataFrame([_describe_finding(finding) for finding in findings])


def count_verdicts(findings: Sequence[Finding]) -> str:
    """Return the number of claims with each verdict, as in ``72 agree, 1 holds, 4 unclear``."""
    counts = Counter(finding.verdict for finding in findings)
    words = {verdict: verdict if count == 1 else OF_SEVERAL.get(verdict, verdict) for verdict, count in counts.items()}
    return ", ".join(f"{counts[verdict]} {words[verdict]}" for verdict in VERDICTS if verdict in counts)


def format_cells(finding: Finding) -> tuple[str, str, str, str, str, str]:
    """Return the cells of a finding: where, what, the paper's figure, the measured one, the difference, the verdict."""
    claim, ours, digits = finding.claim, finding.ours, finding.claim.digits
    # A difference of less than half of the last digit is 0; 0.0 is added to avoid "-0.0".
    known = not (math.isnan(finding.difference) or claim.significant)
    difference = f"{round(finding.difference, digits) + 0.0:+.{digits}f}" if known else ""
    by_pattern = finding.verdict in ("holds", "fails", "unclear")
    verdict = f"{finding.verdict}: {claim.pattern.says}" if claim.pattern and by_pattern else finding.verdict
    paper = format_value(claim.paper, digits, claim.significant)
    own = "" if ours is None else format_value(ours, digits, claim.significant)
    what = claim.what if claim.unit in ("%", "p") else f"{claim.what} ({claim.unit})"
    return claim.where, what, paper, own, difference, verdict


def format_value(value: Value, digits: int, significant: int = 0) -> str:
    """Return a figure with its interval and its label, as text."""
    if math.isnan(value.number):
        return value.detail
    lower, upper = (format_number(end, digits, significant) for end in (value.lower, value.upper))
    interval = "" if math.isnan(value.lower) else f" [{lower}, {upper}]"
    detail = f" ({value.detail})" if value.detail else ""
    return f"{format_number(value.number, digits, significant)}{interval}{detail}"


def format_number(value: float, digits: int, significant: int = 0) -> str:
    """Return a number with `digits` decimals or, as in ``7.578e-05``, a p-value with `significant` digits."""
    if not significant:
        return f"{round(value, digits) + 0.0:.{digits}f}"  # 0.0 is added to avoid "-0.0"
    return f"{value:.{significant - 1}e}" if 0 < abs(value) < 1e-4 else f"{value:#.{significant}g}"


def render_markdown(
    name: str,
    study: Study,
    findings: Sequence[Finding],
    tables: Mapping[str, xr.Dataset],
    runs: Mapping[str, Runs] | None = None,
    printed: Sequence[tuple[Printed, pd.DataFrame]] = (),
    shown: Sequence[str] = (),
) -> str:
    """Return the whole page of a study, in Markdown; `shown` has the names of its figures in the folder ``figures``."""
    model, beside = name_model(next(iter(tables.values())).attrs["model"]), study.paper_model(tables)
    lines = [
        f"# {study.title}\n",
        f"`headscope study {name}`: {model}, next to the paper's {beside}. Shares are in percent.\n",
        _render_row("", "the paper's corpus", "this corpus", "documents", "words", "the same"),
        "| --- | --- | --- | ---: | ---: | --- |",
    ]
    for table, measurement in study.measurements.items():
        if table in tables:
            attrs = tables[table].attrs
            counts = (f"{attrs[unit]:,}" for unit in ("documents", "words"))
            same = "yes" if attrs["corpus_sha256"] in measurement.published else "no"
            path, part = str(attrs["corpus"]), f", {attrs['part']}" if "part" in attrs else ""
            corpus = measurement.corpus if measurement.corpus and path.endswith(measurement.corpus) else path
            lines.append(_render_row(table, measurement.paper, corpus + part, *counts, same))
    lines += _list_examples(study, tables)
    lines += _describe_tuning(study, runs) if runs else []
    for of_paper, frame in printed:
        lines += ["", f"## {of_paper.title}", "", *render_grid(lay_out(of_paper, frame))]
    lines += ["", *(["## Claims", ""] if runs else []), *render_claims(beside, model, findings)]
    if shown:
        lines += ["", "## Figures", *render_pictures({figure: f"figures/{name}-{figure}.png" for figure in shown})]
    lines += ["", *(["## Notes", ""] if runs else []), *(f"- {note}" for note in study.notes)]
    return "\n".join(lines) + "\n"


def _list_examples(study: Study, tables: Mapping[str, xr.Dataset]) -> list[str]:
    """Return a row of the page for each set of examples on which heads are disabled."""
    lines = []
    for name, lesions in study.lesions.items():
        measured = [tables[full] for match in MATCHES if (full := f"{name}_{match}") in tables]
        for table in measured[:1]:
            path = str(table.attrs["corpus"])
            corpus = lesions.corpus if path.endswith(lesions.corpus) else path
            count = f"{int(table['examples'].isel(subset=0)):,} {table.attrs['content']}"
            lines.append(_render_row(name, lesions.paper, corpus, count, "", "no"))
    return lines


def _describe_tuning(study: Study, runs: Mapping[str, Runs]) -> list[str]:
    """Return the section on fine-tuning: settings, best epochs and scores, next to the paper's."""
    lines = ["", "## Fine-tuning", ""]
    lines += [f"The paper: {study.tuning.paper}."] if study.tuning else []
    listed: set[str] = set()
    for group, of_group in runs.items():
        settings = of_group.settings
        best = ", ".join(f"{run.name} {run.best_epoch}" for run in of_group.runs)
        counts = ", ".join(f"{count:,} {SPLITS.get(split, split)}" for split, count in settings["examples"].items())
        name = f"{of_group.task}{' (control)' if group == 'control' else ''}"
        lines += ["", f"{name}: examples {counts}; {format_count(settings['epochs'], 'epoch')} at a learning rate of "
                  f"{settings['learning_rate']:g}; the best epoch by {of_group.metric} on {of_group.select}: {best}.",
                  ""]  # fmt: skip
        for split, split_name in {"test": "the test split", "task": "the task's test split"}.items():
            if scores := tuned_report.format_scores(of_group, split):
                means = ", ".join(f"{name} {text}" for name, text in scores.items())
                lines.append(f"- On {split_name}, mean ± standard deviation over runs: {means}.")
        notes = [f"- {note}." for note in settings.get("notes", ())] + [
            f"- left out of {SPLITS.get(place, place)}: {count:,} {reason}."
            for place, reasons in settings.get("skipped", {}).items()
            for reason, count in reasons.items()
        ]
        lines += [note for note in notes if note not in listed]  # the control has the task's notes and some of its own
        listed |= set(notes)
    return lines


def render_claims(beside: str, model: str, findings: Sequence[Finding]) -> list[str]:
    """Return the number of claims with each verdict, the meanings of the verdicts, and a row for each claim."""
    verdicts = {finding.verdict for finding in findings}
    lines = [f"{len(findings)} claims: {count_verdicts(findings)}.", ""]
    lines += [f"- *{verdict}*: {meaning}" for verdict, meaning in VERDICTS.items() if verdict in verdicts]
    lines += ["", _render_row("where", "what", beside, model, "difference", "held out", "verdict", "note")]
    lines.append("| --- | --- | --- | --- | ---: | --- | --- | --- |")
    for finding in findings:
        where, what, paper, own, difference, verdict = format_cells(finding)
        held = finding.ours.held_out if finding.ours else None
        held_out = format_value(held, finding.claim.digits, finding.claim.significant) if held else ""
        lines.append(_render_row(where, what, paper, own, difference, held_out, verdict, _join_notes(finding)))
    return lines


def make_printed_tables(study: Study, tables: Mapping[str, xr.Dataset]) -> dict[str, tuple[Printed, pd.DataFrame]]:
    """Return the paper's tables on the effects of fine-tuning, by name; leave out tables that were not measured."""
    printed = {}
    for name, table in study.printed.items():
        with suppress(NotMeasuredError):
            printed[name] = (table, table.make(tables))
    return printed


def lay_out(table: Printed, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table as text: rounded, standard deviations next to their means, and no empty columns.

    Counts of runs are written as in the papers: ``0/3`` for positive and negative ones, ``3/10`` for counts of all
    runs.
    """
    cells = {str(name): [_format_cell(value, table) for value in frame[name]] for name in frame.columns}
    text = pd.DataFrame(index=frame.index)
    for name in map(str, frame.dropna(axis="columns", how="all").columns):
        stem, _, kind = name.rpartition(" ")
        if (kind == "sd" and stem in cells) or (kind == "neg" and f"{stem} pos" in cells):
            continue
        joined = {"pos": (f"{stem} pos/neg", "/", f"{stem} neg"), "sig": (name, "/", "runs")}
        title, between, beside = joined.get(kind, (name, " ± ", f"{name} sd"))
        pairs = zip(cells[name], cells.get(beside, [""] * len(frame)), strict=True)
        text[title] = [f"{cell}{between}{other}" if cell and other else cell for cell, other in pairs]
    return text


def _format_cell(value: object, table: Printed) -> str:
    if not isinstance(value, float):
        return str(value)
    return "" if math.isnan(value) else format_number(value, table.digits, table.significant)


def make_table(frame: pd.DataFrame) -> Table:
    """Return a table of text for the terminal, whose cells do not wrap."""
    names = list(map(escape, map(str, frame.columns)))
    grid = make_grid(*names, left=names)
    for row in frame.itertuples(index=False):
        grid.add_row(*(escape(str(cell)) for cell in row))
    return grid


def render_grid(frame: pd.DataFrame) -> list[str]:
    """Return a data frame of text as a table in Markdown."""
    lines = [_render_row(*map(str, frame.columns)), f"| {' | '.join('---' for _ in frame.columns)} |"]
    return lines + [_render_row(*map(str, row)) for row in frame.itertuples(index=False)]


def render_pictures(files: Mapping[str, str]) -> list[str]:
    """Return lines of Markdown that show figures; `files` has the file of each figure by its name (``figure-4``)."""
    return [line for name, file in files.items() for line in ("", f"![{name.replace('-', ' ')}](<{file}>)")]


def _render_row(*cells: str) -> str:
    """Return a row of a table in Markdown."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _join_notes(finding: Finding) -> str:
    return "; ".join(filter(None, (finding.why, finding.claim.note)))


def show(
    study: Study, findings: Sequence[Finding], tables: Mapping[str, xr.Dataset], console: Console, *, whole: bool
) -> None:  # fmt: skip
    """Print the number of claims with each verdict, and all judged claims or, unless `whole`, the first `SHOWN`.

    Claims that do not hold come first if not all are printed.
    """
    model = name_model(next(iter(tables.values())).attrs["model"])
    paper = study.paper_model(tables)
    console.print(f"\n[bold]{escape(model)}[/], compared with the paper's {paper}; shares are in percent")
    judged = [finding for finding in findings if finding.verdict not in ("shown", "not measured")]
    fallen = [finding for finding in judged if finding.verdict in FALLEN]
    most = f"{fallen[0].claim.where}, {fallen[0].claim.what}" if fallen else ""
    first = f"The first that does not: {most}." if fallen else ""
    print_findings([f"{len(findings)} claims: {count_verdicts(findings)}.", first], console)
    columns = ("where", "what", "paper", "here", "verdict")
    grid = make_grid(*columns, left=columns, wraps=columns)
    styles = {"agrees": "green", "holds": "green", "differs": "red", "fails": "red"}
    shown = judged if whole else sorted(judged, key=lambda finding: finding.verdict not in FALLEN)[:SHOWN]
    for finding in shown:
        where, what, paper, own, _, verdict = format_cells(finding)
        styled = f"[{styles.get(finding.verdict, 'yellow')}]{escape(verdict)}[/]"
        grid.add_row(*map(escape, (where, what, paper, own)), styled)
    console.print()
    print_grid(grid, console)
    hidden = len(judged) - len(shown)
    print_more([f"{hidden} more claim{'' if hidden == 1 else 's'}" if hidden else ""], console)


def _describe_finding(finding: Finding) -> dict[str, object]:
    claim, ours = finding.claim, finding.ours or Value(math.nan)
    held = ours.held_out or Value(math.nan)
    return {
        "where": claim.where, "what": claim.what, "unit": claim.unit,
        "paper": claim.paper.number, "paper_of": claim.paper.detail,
        "ours": ours.number, "ours_of": ours.detail, "ours_lower": ours.lower, "ours_upper": ours.upper,
        "difference": finding.difference,
        "held_out": held.number, "held_out_of": held.detail,
        "held_out_lower": held.lower, "held_out_upper": held.upper,
        "same_model_and_corpus": finding.same, "verdict": finding.verdict,
        "pattern": claim.pattern.says if claim.pattern else "", "note": _join_notes(finding),
    }  # fmt: skip
