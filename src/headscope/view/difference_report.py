"""The heads that surely differ between two tables, in words: a sentence, and the lines of a page (Markdown)."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from headscope.analyse.paired import HIGHER, LOWER, NOT_SHOWN
from headscope.view.headings import name_row
from headscope.view.wording import format_interval, format_number, format_p, name_variable

SHOWN = 10
"""The number of scores that a page lists, the largest difference first."""

HEADING = "Heads that surely differ on these texts"


def select_sure(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `headscope.difference` with the verdict higher or lower, the largest difference first."""
    sure = frame[frame["verdict"].isin([HIGHER, LOWER])]
    return sure.loc[sure["difference"].abs().sort_values(ascending=False, kind="stable").index]


def summarize_sure(frame: pd.DataFrame) -> str:
    """Return a sentence on the number of scores that surely differ, and the largest difference.

    It is empty if no score has the verdict higher, lower, or not shown to differ.

    Args:
        frame: The data frame of `headscope.difference`.
    """
    decided = int(frame["verdict"].isin([HIGHER, LOWER, NOT_SHOWN]).sum())
    if not decided:
        return ""
    sure = select_sure(frame).to_dict("records")
    if not sure:
        return f"On these texts none of {decided:,} scores of heads surely differs."
    ends = (format_number(100 * sure[0][side], 1) for side in "ab")
    return (
        f"On these texts {len(sure):,} of {decided:,} scores of heads surely differ; most, "
        f"{_name_score(sure[0])} of {name_row(sure[0])}, from {' to '.join(ends)} %."
    )


def list_sure(frame: pd.DataFrame) -> Iterator[str]:
    """Yield the lines of a section about the scores that surely differ; nothing if `summarize_sure` is empty.

    Args:
        frame: The data frame of `headscope.difference`.
    """
    if not (sentence := summarize_sure(frame)):
        return
    yield from (f"## {HEADING}", "", sentence, "")
    if rows := select_sure(frame)[:SHOWN].to_dict("records"):
        yield "| | head | before | after | difference [95 %] | p, corrected | items |"
        yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for row in rows:
        before, after = (format_number(100 * row[side], 1) for side in "ab")
        ends = (100 * row[f"difference{end}"] for end in ("", "_lower", "_upper"))
        interval = format_interval(*ends, digits=1, sign=True)
        name, p = _name_score(row).replace("|", r"\|"), format_p(row["p_corrected"])
        yield f"| {name} (%) | {name_row(row)} | {before} | {after} | {interval} | {p} | {int(row['count']):,} |"
    yield from [""] if rows else []
    yield (
        "Paired by text; p is corrected for all heads, directions and rows of a score. This is about these two models "
        "and texts like these; several runs tell what fine-tuning does with other seeds. `differences.csv` lists all."
    )
    yield ""


def _name_score(row: dict[Any, Any]) -> str:
    """Return the name of a score with its row and its direction."""
    parts = [name_variable(row["score"]), str(row.get("row", "")), str(row.get("direction", "")).replace("_", " ")]
    return ", ".join(filter(None, parts))
