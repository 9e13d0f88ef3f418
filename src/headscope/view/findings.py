"""The findings of a head table, in sentences: the verdict on all rows, then the clearest yes and the clearest no."""

from collections.abc import Iterator, Sequence

import xarray as xr

from headscope.analyse import list_highest
from headscope.analyse.report import DOES_NOT, STANDS_OUT
from headscope.heads import get_share
from headscope.view.answers import answer_row
from headscope.view.need_report import describe_need, list_needed_heads
from headscope.view.reports import Report
from headscope.view.verdicts import describe_replication, describe_verdicts


def list_findings(table: xr.Dataset, reports: Sequence[Report]) -> Iterator[str]:
    """Yield sentences on verdicts, replication, need and the clearest rows; without reported heads, on targets."""
    rows = [row for report in reports for row in report.rows_with_heads]
    yield answer_row(rows[0]) if len(rows) == 1 else describe_verdicts(reports)
    yield describe_replication(table, reports)
    yield describe_need(table, list_needed_heads(table, reports))
    if not rows:
        yield from _describe_targets(table)
    for verdict, choose in ((STANDS_OUT, max), (DOES_NOT, min)):
        if len(rows) > 1 and (decided := [row for row in rows if row.verdict == verdict]):
            row = choose(decided, key=lambda each: each.lift.value)
            answer = answer_row(row)
            yield f"{row.label}: {answer[0].lower()}{answer[1:]}"


def _describe_targets(table: xr.Dataset) -> Iterator[str]:
    """Yield a sentence for each target on the head that attends to it most, the largest share first."""
    targets: dict[tuple[float, str], str] = {}
    for name, each in table.data_vars.items():
        if target := each.attrs.get("target"):
            for head, value in list_highest(table, str(name), 1):
                targets.setdefault((value, head), target)  # [CLS] is also the first token
    share = get_share(table).removeprefix("share ")
    for value, head in sorted(targets, reverse=True):
        yield f"Head {head} looks most at {targets[value, head]}: {100 * value:.0f} % {share}."
