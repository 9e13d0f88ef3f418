"""The table of reported heads on the page: a row for all that is looked for, a heading for each hypothesis.

It is HTML that needs no script; ``page.js`` only sorts it.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from headscope.analyse.report import MINIMUM
from headscope.view.offset import signed
from headscope.view.reported import Interval, Length, Report, Reported

NONE = "–"
"""What stands where nothing was measured."""

FARTHEST, BAR = 6, 8
"""The longest length of a link that is told from longer ones, and the width of its bar."""

_SCALE = (
    '<svg class="scores" viewBox="-4 0 108 16" width="112" height="17" aria-hidden="true">'
    '<text x="0" y="13">0</text><text x="100" y="13">1</text></svg>'
)


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        heading: its name.
        about: what it says, in one sentence, with its source.
        content: of the cell of a row; HTML.
        value: by which rows are sorted, HTML if it is text; None for a picture, by which they cannot be.
        there: whether a row has something to show in it; a column in which none has is left out.
        right: whether it is set to the right, as numbers are that one compares.
        drawn: HTML that is shown for its name.
    """

    heading: str
    about: str
    content: Callable[[Reported], str]
    value: Callable[[Reported], float | str] | None
    there: Callable[[Reported], bool] = lambda row: True
    right: bool = False
    drawn: str = ""


def _shared(interval: Interval) -> str:
    """A score with its interval."""
    small = f" <small>[{interval.lower:.2f}, {interval.upper:.2f}]</small>" if math.isfinite(interval.lower) else ""
    return f"{interval.value:.2f}{small}" if math.isfinite(interval.value) else NONE


def _number(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else NONE


def _head(row: Reported) -> str:
    name = escape(row.where)
    return f"<strong>{name}</strong>" if row.stands_out else name


COLUMNS = (
    Column(
        "head",
        "The head, as layer and head, both counted from 1, that is best on the even folds of the corpus (headscope).",
        _head,
        lambda row: escape(f"{row.attention_type} {row.layer:04d}-{row.head:04d}".strip()),
    ),
    Column(
        "from",
        "The word whose attention is looked at, which is chosen like the head where it can be either end of a link "
        "(Clark et al. 2019, section 4.2).",
        lambda row: escape(row.attends),
        lambda row: escape(row.attends),
    ),
    Column(
        "score, held out",
        "The score of the head on the odd folds, on which it was not chosen, and its 95 % interval, clustered by fold "
        "(Wilson 1927; Cochran 1977, section 6.3).",
        lambda row: _shared(row.score),
        lambda row: row.score.value,
    ),
    Column(
        "picture",
        "From 0 to 1: dot and line, the score and its interval; bar, best offset; ring, untrained model; cross, "
        "permuted, the columns of these names (headscope).",
        lambda row: _scores(row),
        None,
        drawn=_SCALE,
    ),
    Column(
        "by length",
        f"The share of the links of each length that the head gets right, from {FARTHEST} words or more back to "
        f"{FARTHEST} or more ahead, on all documents, pale for fewer than {MINIMUM} links; the mark below is the best "
        "offset, always right at its own length and never elsewhere (offsets: Clark et al. 2019, section 4.2).",
        lambda row: by_length(row.lengths, row.offset),
        None,
        there=lambda row: bool(row.lengths),
    ),
    Column(
        "count",
        "How many links, mentions or pairs the score is of; for a scope, the words that are in it and those said to be "
        "(headscope).",
        lambda row: f"{row.scored:,}",
        lambda row: row.scored,
        right=True,
    ),
    Column(
        "best offset",
        "The score of the fixed offset in words that is best on the even folds, on the odd ones (Clark et al. 2019, "
        "section 4.2).",
        lambda row: f"{row.at_offset.value:.2f} <small>at {signed(row.offset)}</small>",
        lambda row: row.at_offset.value,
        there=lambda row: math.isfinite(row.at_offset.value),
    ),
    Column(
        "untrained model",
        "The score of the best head of a model of the same shape with random weights, chosen and scored likewise, and "
        "its 95 % interval (headscope).",
        lambda row: _shared(row.untrained),
        lambda row: row.untrained.value,
        there=lambda row: math.isfinite(row.untrained.value),
    ),
    Column(
        "permuted",
        "The score of the head, on all documents, where the gold stands elsewhere in its text, which keeps some habits "
        "(Westfall and Young 1993).",
        lambda row: _number(row.permuted),
        lambda row: row.permuted,
        there=lambda row: math.isfinite(row.permuted),
        right=True,
    ),
    Column(
        "q",
        "How likely a head of so many is to score as much where the gold is permuted, corrected for all heads "
        "(Westfall and Young 1993), as a false discovery rate over the rows below the heading (Benjamini and "
        "Hochberg 1995).",
        lambda row: _number(row.q, 3),
        lambda row: row.q,
        there=lambda row: math.isfinite(row.q),
        right=True,
    ),
    Column(
        "detectable",
        "The smallest rise above the best offset that so many would show, at the level 0.05 with the power 0.8 (Cohen "
        "1988, section 6).",
        lambda row: f"+{row.detectable:.2f}" if math.isfinite(row.detectable) else NONE,
        lambda row: row.detectable,
        there=lambda row: math.isfinite(row.detectable),
        right=True,
    ),
    Column(
        "chosen again",
        "The share of 100 random halves of the corpus on which the same head is the best (headscope).",
        lambda row: f"{row.selection_frequency:.0%}" if math.isfinite(row.selection_frequency) else NONE,
        lambda row: row.selection_frequency,
        there=lambda row: math.isfinite(row.selection_frequency),
        right=True,
    ),
)
"""From left to right, after the name of what is looked for."""

NAME = Column(
    "relation",
    "What is looked for: a relation, a class of mentions, the scope of a negation, a target (headscope).",
    lambda row: escape(row.name),
    lambda row: escape(row.name),
)
"""On the left of `COLUMNS`."""


def table_of(reports: Sequence[Report]) -> str:
    """The table, HTML; empty where nothing is reported."""
    columns = columns_of(reports)
    if not columns:
        return ""
    bodies = (
        f"<tbody>\n{_group(report, len(columns))}\n{_lines(_row(row, columns) for row in report.rows)}\n</tbody>"
        for report in reports
    )
    return f"<thead><tr>{''.join(map(_heading, columns))}</tr></thead>\n{_lines(bodies)}"


def columns_of(reports: Sequence[Report]) -> list[Column]:
    """The columns in which some row has something to show."""
    rows = [row for report in reports for row in report.rows]
    return [column for column in (NAME, *COLUMNS) if any(column.there(row) for row in rows)]


def by_length(lengths: Sequence[Length], offset: int) -> str:
    """A bar for each length of link, as high as the head's accuracy; below, a mark where the best offset is."""
    if not lengths:
        return NONE
    marks, told = [f'<path class="axis" d="M0 18.5H{_place(FARTHEST) + BAR}"/>'], []
    for length, links, accuracy in lengths:
        few = " few" if links < MINIMUM else ""
        # Without its ground, a length at which the head is always wrong would look like one of which there are none.
        for kind, high in (("ground", 16.0), (f"bar{few}", 16 * accuracy)):
            marks.append(
                f'<rect class="{kind}" x="{_place(length)}" y="{18 - high:.1f}" width="{BAR - 1}" height="{high:.1f}"/>'
            )
        further = " and further" if abs(length) == FARTHEST else ""
        told.append(f"{signed(length)}{further}: {accuracy:.2f} of {links:,}")
    marks.append(f'<rect class="offset" x="{_place(offset)}" y="20" width="{BAR - 1}" height="3"/>')
    return (
        f'<svg class="lengths" role="img" viewBox="0 0 {_place(FARTHEST) + BAR} 24" width="94" height="24">'
        f"<title>{_lines(told)}</title>{''.join(marks)}</svg>"
    )


def _place(length: int) -> int:
    """Where the bar of a length begins; between back and ahead there is room."""
    return BAR * (length + FARTHEST) if length < 0 else BAR * (length + FARTHEST - 1) + 4


def _lines(parts: Iterable[str]) -> str:
    return "\n".join(parts)


def _heading(column: Column) -> str:
    kinds = " ".join(["right"] * column.right + ["picture"] * (column.value is None))
    return f'<th scope="col" class="{kinds}" title="{escape(column.about)}">{column.drawn or column.heading}</th>'


def _group(report: Report, columns: int) -> str:
    """The heading of a hypothesis: what its score is, where the gold is permuted to, and what to compare with."""
    hypothesis = report.hypothesis
    drawn = hypothesis.permuted and any(row.permuted >= 0 for row in report.rows)
    permuted = f" Permuted: {hypothesis.permuted}." if drawn else ""
    notes = (f"Score: {hypothesis.score} ({report.source}).{permuted}", report.comparison, report.remark)
    told = "".join(f"<p>{escape(note)}</p>" for note in notes if note)
    return (
        f'<tr class="group"><th scope="rowgroup" colspan="{columns}"><div><h3>{escape(hypothesis.title)}</h3>{told}'
        "</div></th></tr>"
    )


def _row(row: Reported, columns: Sequence[Column]) -> str:
    """A row; of what is too rare to report a head for, how many there are."""
    cells = [f'<th scope="row">{escape(row.name)}</th>']
    for column in columns[1:]:
        content, value = NONE, ""
        if row.layer > 0:
            content, value = column.content(row), _sorted_by(column, row)
        elif column.heading == "head":
            content = "too rare"
        elif column.heading == "count":
            content = f"{row.count:,} <small>in all</small>"
        kind = ' class="right"' if column.right else ""
        cells.append(f'<td{kind} data-value="{value}">{content}</td>')
    kind = "rare" if row.layer == 0 else "stands-out" if row.stands_out else ""
    return f'<tr class="{kind}">{"".join(cells)}</tr>'


def _sorted_by(column: Column, row: Reported) -> str:
    """What a cell is sorted by; nothing where there is no number, which then comes last."""
    value = column.value(row) if column.value else ""
    return "" if isinstance(value, float) and math.isnan(value) else str(value)


def _scores(row: Reported) -> str:
    """A line from 0 to 1: score (dot), interval, best offset (bar), untrained model (ring), permuted (cross)."""
    score, offset, untrained, permuted = row.score, row.at_offset.value, row.untrained.value, row.permuted
    marks = ['<line class="axis" x1="0" x2="100" y1="8" y2="8"/>']
    if math.isfinite(offset):
        marks.append(f'<line class="offset" x1="{100 * offset:.1f}" x2="{100 * offset:.1f}" y1="2" y2="14"/>')
    if math.isfinite(untrained):
        marks.append(f'<circle class="untrained model" cx="{100 * untrained:.1f}" cy="8" r="3"/>')
    if math.isfinite(permuted):
        marks.append(f'<path class="permuted" d="M{100 * permuted - 3:.1f} 5l6 6m0 -6l-6 6"/>')
    if math.isfinite(score.lower) and math.isfinite(score.upper):
        marks.append(
            f'<line class="interval" x1="{100 * score.lower:.1f}" x2="{100 * score.upper:.1f}" y1="8" y2="8"/>'
        )
    if math.isfinite(score.value):
        marks.append(f'<circle class="score" cx="{100 * score.value:.1f}" cy="8" r="3.2"/>')
    return (
        f'<svg class="scores" viewBox="-4 0 108 16" width="112" height="17" aria-hidden="true">{"".join(marks)}</svg>'
    )
