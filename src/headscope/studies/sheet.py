"""Findings as a page of text (Markdown) and as a data frame: the paper's figure, one's own and the difference."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd
import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headscope.studies.study import Finding, Study, Value

MEANING = {
    "agrees": "same model and corpus, same figure to the last printed digit",
    "differs": "same model and corpus, another figure",
    "holds": "what the claim says of any model holds here, beyond the intervals",
    "fails": "it does not hold here, beyond the intervals",
    "unclear": "the intervals overlap",
    "shown": "another model or corpus: side by side, not judged",
    "not measured": "the reason stands in the last column",
}
"""The verdicts, in the order in which they are counted."""


def frame(findings: Sequence[Finding]) -> pd.DataFrame:
    """One row a claim."""
    return pd.DataFrame([_row(finding) for finding in findings])


def summary(findings: Sequence[Finding]) -> str:
    """How many claims stand how."""
    counts = Counter(finding.verdict for finding in findings)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in MEANING if counts[verdict])


def cells(finding: Finding) -> tuple[str, str, str, str, str, str]:
    """Where, what, the paper's figure, one's own, the difference and the verdict, as text."""
    claim, ours, digits = finding.claim, finding.ours, finding.claim.digits
    difference = "" if math.isnan(finding.difference) else f"{finding.difference:+.{digits}f}"
    verdict = f"{finding.verdict}: {claim.pattern.says}" if _judged_by_pattern(finding) else finding.verdict
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
    model = next(iter(tables.values())).attrs["model"]
    beside = study.beside(tables)
    lines = [
        f"# {study.title}",
        "",
        f"`headscope study {name}`: {model}, beside the paper's {beside}. Shares are in percent.",
        "",
        "| | the paper's corpus | this corpus | documents | words | the same |",
        "| --- | --- | --- | ---: | ---: | --- |",
    ]
    for of, table in tables.items():
        about, one = table.attrs, study.measurements[of]
        same = "yes" if about["corpus_sha256"] in one.published else "no"
        lines.append(
            f"| {of} | {one.paper} | {about['corpus']} | {about['documents']:,} | {about.get('words', 0):,} | {same} |"
        )
    lines += ["", f"{len(findings)} claims: {summary(findings)}.", ""]
    verdicts = {finding.verdict for finding in findings}
    lines += [f"- *{verdict}*: {meaning}" for verdict, meaning in MEANING.items() if verdict in verdicts]
    lines += [
        "",
        f"| where | what | {beside} | {model} | difference | held out | verdict | note |",
        "| --- | --- | --- | --- | ---: | --- | --- | --- |",
    ]
    for finding in findings:
        where, what, paper, own, difference, verdict = cells(finding)
        held = finding.ours.held_out if finding.ours else None
        held_out = text(held, finding.claim.digits) if held else ""
        note = "; ".join(filter(None, (finding.why, finding.claim.note)))
        lines.append(f"| {where} | {what} | {paper} | {own} | {difference} | {held_out} | {verdict} | {note} |")
    lines += ["", *(f"- {note}" for note in study.notes)]
    return "\n".join(lines) + "\n"


def show(findings: Sequence[Finding], console: Console) -> None:
    """The findings on the terminal: those that were judged, and how many there are of each kind."""
    grid = Table(box=None, pad_edge=False)
    for column in ("where", "what", "paper", "here", "verdict"):
        grid.add_column(column)
    styles = {"agrees": "green", "holds": "green", "differs": "red", "fails": "red"}
    for finding in findings:
        if finding.verdict not in ("shown", "not measured"):
            where, what, paper, own, _, _ = cells(finding)
            verdict = f"[{styles.get(finding.verdict, 'yellow')}]{finding.verdict}[/]"
            grid.add_row(*map(escape, (where, what, paper, own)), verdict)
    console.print(grid)
    console.print(f"\n{len(findings)} claims: {summary(findings)}.")


def _judged_by_pattern(finding: Finding) -> bool:
    return finding.claim.pattern is not None and finding.verdict in ("holds", "fails", "unclear")


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
        "note": "; ".join(filter(None, (finding.why, claim.note))),
    }
