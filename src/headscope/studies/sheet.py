"""Findings as a page of text (Markdown) and as a data frame: the paper's figure, one's own and the difference."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd
import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headscope.studies.study import VERDICTS, Finding, Study, Value


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
    difference = "" if math.isnan(finding.difference) else f"{round(finding.difference, digits) + 0.0:+.{digits}f}"
    by_pattern = finding.verdict in ("holds", "fails", "unclear")
    verdict = f"{finding.verdict}: {claim.pattern.says}" if claim.pattern and by_pattern else finding.verdict
    own = "" if ours is None else text(ours, digits)
    if claim.unit != "%":
        return claim.where, f"{claim.what} ({claim.unit})", text(claim.paper, digits), own, difference, verdict
    return claim.where, claim.what, text(claim.paper, digits), own, difference, verdict


def text(value: Value, digits: int) -> str:
    """A figure, its interval, and what it is of."""
    if math.isnan(value.number):
        return value.of
    interval = "" if math.isnan(value.lower) else f" [{value.lower:.{digits}f}, {value.upper:.{digits}f}]"
    return f"{value.number:.{digits}f}{interval}" + (f" ({value.of})" if value.of else "")


def markdown(name: str, study: Study, findings: Sequence[Finding], tables: Mapping[str, xr.Dataset]) -> str:
    """The whole sheet."""
    model, beside = str(next(iter(tables.values())).attrs["model"]), study.beside(tables)
    lines = [
        f"# {study.title}",
        "",
        f"`headscope study {name}`: {model}, beside the paper's {beside}. Shares are in percent.",
        "",
        _line("", "the paper's corpus", "this corpus", "documents", "words", "the same"),
        "| --- | --- | --- | ---: | ---: | --- |",
    ]
    for of, table in tables.items():
        about, one = table.attrs, study.measurements[of]
        counts = (f"{about[what]:,}" for what in ("documents", "words"))
        same = "yes" if about["corpus_sha256"] in one.published else "no"
        corpus = f"{about['corpus']}, {about['part']}" if "part" in about else str(about["corpus"])
        lines.append(_line(of, one.paper, corpus, *counts, same))
    verdicts = {finding.verdict for finding in findings}
    lines += ["", f"{len(findings)} claims: {summary(findings)}.", ""]
    lines += [f"- *{verdict}*: {meaning}" for verdict, meaning in VERDICTS.items() if verdict in verdicts]
    lines += ["", _line("where", "what", beside, model, "difference", "held out", "verdict", "note")]
    lines.append("| --- | --- | --- | --- | ---: | --- | --- | --- |")
    for finding in findings:
        where, what, paper, own, difference, verdict = cells(finding)
        held = finding.ours.held_out if finding.ours else None
        held_out = text(held, finding.claim.digits) if held else ""
        lines.append(_line(where, what, paper, own, difference, held_out, verdict, _note(finding)))
    lines += ["", *(f"- {note}" for note in study.notes)]
    return "\n".join(lines) + "\n"


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
