"""What a head table shows, in sentences: the verdict on all rows, then the clearest yes and the clearest no."""

from collections.abc import Iterator, Sequence

import xarray as xr

from headscope.analyse import top_heads
from headscope.analyse.report import DOES_NOT, STANDS_OUT
from headscope.analyse.rivals import UNTRAINED
from headscope.heads import get_share
from headscope.view.need_report import describe_need, list_needed_heads
from headscope.view.reports import Report, Reported, RivalScore, format_measure
from headscope.view.verdicts import describe_replication, describe_verdicts
from headscope.view.wording import format_number

WORDS = {STANDS_OUT: "Yes", DOES_NOT: "No"}
"""The verdict on a row in a word; any other is undecided."""


def list_findings(table: xr.Dataset, reports: Sequence[Report]) -> Iterator[str]:
    """Yield sentences on what a table shows; of one without reported heads, on what its heads attend to."""
    rows = [(report, row) for report in reports for row in report.rows_with_heads]
    yield ". ".join(_answer(*rows[0])) if len(rows) == 1 else describe_verdicts(reports)
    yield describe_replication(table, reports)
    yield describe_need(table, list_needed_heads(table, reports))
    if not rows:
        yield from _describe_targets(table)
    for verdict, choose in ((STANDS_OUT, max), (DOES_NOT, min)):
        if len(rows) > 1 and (decided := [pair for pair in rows if pair[1].verdict == verdict]):
            report, row = choose(decided, key=lambda pair: pair[1].lift.value)
            yield f"{row.label}: {', '.join(part[0].lower() + part[1:] for part in _answer(report, row))}"


def _answer(report: Report, row: Reported) -> tuple[str, str]:
    """Return the verdict on a row with a head in a word, and what the head and its strongest rival reach."""
    between = "of" if report.score.measure == "accuracy" else "on"
    head = f"head {row.where} {_tell(report, row.score.value)} {between} {row.scored:,} {report.score.items}"
    parts, rival = [head], row.strongest_rival
    if rival is not None:
        beside = f"{_name_rival(report, rival)} {_tell(report, rival.score.value)}"
        is_stronger = rival.score.value >= row.score.value
        parts = [beside, head] if is_stronger else [head, beside]
        if row.verdict == DOES_NOT and not is_stronger:
            parts.append("the difference may be chance")
    if row.verdict not in (STANDS_OUT, DOES_NOT):
        parts.append("there are too few texts to decide")
    rest = "; ".join(parts)
    return WORDS.get(row.verdict, "Undecided"), f"{rest[0].upper()}{rest[1:]}."


def _tell(report: Report, value: float) -> str:
    """Return what a head or a rule reaches: a share of items that it finds, or another measure."""
    if report.score.measure == "accuracy":
        return f"finds {100 * value:.0f} %"
    return f"has {format_measure(report.score)} {format_number(value, 2)}"


def _name_rival(report: Report, rival: RivalScore) -> str:
    if rival.name == UNTRAINED:
        return "the untrained model"
    is_rule = any(each.name == rival.name and each.options for each in report.score.rivals)
    return f"the {'rule' if is_rule else 'rival'} “{rival.label}”"


def _describe_targets(table: xr.Dataset) -> Iterator[str]:
    """Yield the head that attends most to each target, the largest shares first."""
    targets: dict[tuple[float, str], str] = {}
    for name, each in table.data_vars.items():
        if target := each.attrs.get("target"):
            for head, value in top_heads(table, str(name), 1):
                targets.setdefault((value, head), target)  # [CLS] is the first token too
    share = get_share(table).removeprefix("share ")
    for value, head in sorted(targets, reverse=True):
        yield f"Head {head} looks most at {targets[value, head]}: {100 * value:.0f} % {share}."
