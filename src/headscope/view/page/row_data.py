"""The rows with a head, in numbers and in words: data for ``scripts/search.js`` and ``answer.js``."""

from collections.abc import Iterator, Sequence
from typing import Any

from headscope.analyse.report import DOES_NOT, NOT_YET, STANDS_OUT, UNDECIDED
from headscope.analyse.rivals import UNTRAINED
from headscope.heads import head_name
from headscope.view.answers import describe_row
from headscope.view.page.nested import round_number
from headscope.view.reports import Interval, Report, Reported, format_measure

VERDICTS = {STANDS_OUT: "stands_out", DOES_NOT: "does_not", UNDECIDED: "undecided", NOT_YET: "not_yet"}
"""For each verdict, the key of its explanation in `headscope.view.glosses.TERMS`."""


def describe_rows(reports: Sequence[Report]) -> Iterator[dict[str, Any]]:
    """Yield the data of each row with a head: its numbers, its names, and the sentences on its verdict.

    A score, a rival's score and a lift are a list of a number and the ends of its interval; a missing value is None.
    """
    for report in reports:
        for row in report.rows_with_heads:
            answer, *details = describe_row(report, row)
            yield {
                "key": row.key,
                "name": row.name,
                "label": row.label,
                "title": report.score.title,
                "plain": row.plain._asdict(),
                "direction": row.direction,
                "attention_type": row.attention_type,
                "head": head_name(row.layer, row.head),
                "mark": row.mark,
                "verdict": VERDICTS.get(row.verdict, ""),
                "measure": format_measure(report.score),
                "items": report.score.items,
                "source": report.source,
                "count": row.count,
                "n": row.scored,
                "clusters": row.clusters,
                "score": _list_ends(row.score),
                "lift": _list_ends(row.lift),
                "strongest": row.strongest,
                "rivals": list(_describe_rivals(row)),
                "permuted": round_number(row.permuted),
                "p": round_number(row.p),
                "selection_frequency": round_number(row.selection_frequency),
                "answer": answer,
                "details": " ".join(details),
            }


def _describe_rivals(row: Reported) -> Iterator[dict[str, Any]]:
    for rival in row.rivals:
        yield {
            "name": rival.name,
            "label": rival.label,
            "plain": rival.plain,
            "is_rule": rival.name != UNTRAINED,
            "is_best": rival is row.best_rule,
            "score": _list_ends(rival.score),
            "lift": _list_ends(rival.lift),
        }


def _list_ends(interval: Interval) -> list[float | None]:
    return [round_number(number) for number in interval]
