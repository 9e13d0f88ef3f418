"""The table of reported heads on the page: a heading for each score, its rows, and below them the rows without heads.

The table is HTML that can be read without a script; ``scripts/tables.js`` sorts the rows, and shows the head of a row
in the grid.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import urlencode

from headscope.analyse.replicate import SURVIVES
from headscope.analyse.report import MINIMUM, UNDECIDED
from headscope.analyse.rivals import UNTRAINED
from headscope.heads import head_name
from headscope.view.lengths import Part
from headscope.view.offsets import format_offset
from headscope.view.reports import Interval, Replicated, Report, Reported, list_rows
from headscope.view.verdicts import describe_rare
from headscope.view.wording import format_ends, format_number

NONE = "–"
"""The content of a cell without a value."""

HELD_OUT, ALL_TEXTS = "held out", "all texts"
"""The two kinds of texts on which the numbers of a column are measured."""

FARTHEST, BAR = 6, 8
"""The link length of the outermost bar, which includes all longer links, and the width of a bar."""

_SCORES = '<svg class="scores" viewBox="-4 0 108 16" width="112" height="17" aria-hidden="true">'
_SCALE = f'{_SCORES}<text x="0" y="13">0</text><text x="100" y="13">1</text></svg>'


@dataclass(frozen=True)
class Column:
    """A column of the table of reported heads.

    Attributes:
        heading: The name of the column.
        about: The meaning of the column, in one sentence, with its source.
        content: A function that returns the content of a row's cell, as HTML.
        value: A function that returns the value by which rows are sorted, as HTML if it is text; None for a picture.
        has_content: A function that returns True for a row with content; a column without such a row is left out.
        right: True for numbers that readers compare; they are right-aligned.
        picture: HTML that is shown in place of the name.
        texts: `HELD_OUT` or `ALL_TEXTS`, the texts on which its numbers are measured; empty if this needs no mention.
    """

    heading: str
    about: str
    content: Callable[[Reported], str]
    value: Callable[[Reported], float | str] | None
    has_content: Callable[[Reported], bool] = lambda row: True
    right: bool = False
    picture: str = ""
    texts: str = ""

    @property
    def title(self) -> str:
        """The name of the column, followed by the texts on which its numbers are measured."""
        return ", ".join(filter(None, (self.heading, self.texts)))


def render_interval(interval: Interval, digits: int = 2, *, sign: bool = False) -> str:
    """Return a number with its interval in small type, as HTML."""
    value, *ends = interval
    small = format_ends(*ends, digits=digits, sign=sign)
    return (format_number(value, digits, sign=sign) or NONE) + (f" <small>{small}</small>" if small else "")


def _optional(
    heading: str, about: str, template: str, value: Callable[[Reported], float], texts: str = ALL_TEXTS
) -> Column:
    """Return a column of numbers that is left out if no row has a number."""

    def content(row: Reported) -> str:
        return template.format(value(row)) if math.isfinite(value(row)) else NONE

    return Column(heading, about, content, value, lambda row: math.isfinite(value(row)), right=True, texts=texts)


def format_address(row: Reported) -> str:
    """Return the address (the part after #) at which the grid of the page shows a row and its head."""
    places = {
        "variable": row.key,
        "direction": row.direction,
        "attention_type": row.attention_type,
        "head": head_name(row.layer, row.head) if row.layer else "",
    }
    return urlencode({name: value for name, value in places.items() if value}, errors="replace")


def _head(row: Reported) -> str:
    """Return the name of a row's head as a link to the grid, followed by its mark."""
    link = f'<a href="#{escape(format_address(row))}">{escape(row.where)}</a>{row.mark}'
    return f"<strong>{link}</strong>" if row.stands_out else link


def _name(row: Reported) -> str:
    """Return the plain name of a row, if it has one, followed by its code and the folded codes in small type."""
    title, code = (row.name, "") if row.plain.title == row.label else (row.plain.title, f" {row.name}")
    return escape(title) + (f"<small>{escape(code + row.pooled)}</small>" if code + row.pooled else "")


COLUMNS = (
    Column(
        "head",
        "The layer and head, both counted from 1, with the best score on the even folds, and a mark that is "
        "explained below the table (headscope).",
        _head,
        lambda row: escape(f"{row.attention_type} {row.layer:04d}-{row.head:04d}".strip()),
    ),
    Column(
        "from",
        "The word whose attention is looked at; where it can be either end of a link, chosen like the head (Clark "
        "et al. 2019, section 4.2).",
        lambda row: escape(row.attends),
        lambda row: escape(row.attends),
    ),
    Column(
        "score",
        "The score of the head on the odd folds, on which it was not chosen, and its 95 % interval, clustered by fold "
        "(Wilson 1927; Cochran 1977, section 6.3).",
        lambda row: render_interval(row.score),
        lambda row: row.score.value,
        texts=HELD_OUT,
    ),
    Column(
        "lift",
        "The score of the head less that of its strongest rival on the same items, and its 95 % interval, paired and "
        "clustered by fold (Cochran 1977, section 6.3).",
        lambda row: render_interval(row.lift, sign=True),
        lambda row: row.lift.value,
        has_content=lambda row: math.isfinite(row.lift.value),
        texts=HELD_OUT,
    ),
    Column(
        "rivals",
        "Rules that need no model, and the best head of the same model untrained, chosen and scored like the head; the "
        "strongest in bold (offsets: Clark et al. 2019, section 4.2).",
        lambda row: _list_rivals(row),
        lambda row: escape(row.strongest),
        has_content=lambda row: bool(row.rivals),
        texts=HELD_OUT,
    ),
    Column(
        "picture",
        "From 0 to 1: dot and line, the score and its interval; bars, the rivals, the strongest one thick; ring, "
        "untrained; cross, permuted (headscope).",
        lambda row: _scores(row),
        None,
        picture=_SCALE,
    ),
    Column(
        "by length",
        f"The score of the head on links of each length, from {FARTHEST} words or more back to {FARTHEST} or more "
        f"ahead, on all documents, pale for fewer than {MINIMUM} links; the mark below is the best offset, always "
        "right at its own length and never elsewhere (offsets: Clark et al. 2019, section 4.2).",
        lambda row: draw_parts(row.parts, row.offset),
        None,
        has_content=lambda row: bool(row.parts),
        texts=ALL_TEXTS,
    ),
    Column(
        "count",
        "Number of items on which the held-out score was computed; for an F1, those annotated and those found, "
        "together (headscope).",
        lambda row: f"{row.scored:,}",
        lambda row: row.scored,
        right=True,
        texts=HELD_OUT,
    ),
    _optional(
        "permuted",
        "The mean score of the head, on all documents, after the annotation is permuted within its text, as the text "
        "below each heading says (Westfall and Young 1993).",
        "{:.2f}",
        lambda row: row.permuted,
    ),
    _optional(
        "p",
        "The p-value of no lift over at least one rival (t-test on texts; intersection-union test of Berger 1982) or, "
        "if it is larger, that of the permutations, corrected for the heads (Westfall and Young 1993); corrected for "
        "the rows below the heading (Holm 1979).",
        "{:.3f}",
        lambda row: row.p,
    ),
    Column(
        "replicated",
        "The lift of the same head over its strongest rival on the corpus to replicate on, and its 95 % interval, with "
        "the verdict: the head was chosen here, and there the options of its rivals are chosen on all texts, which "
        "favours the rivals (headscope).",
        lambda row: _format_replication(row.replication),
        lambda row: row.replication.lift.value if row.replication else math.nan,
        has_content=lambda row: row.replication is not None,
    ),
    _optional(
        "detectable",
        "Smallest lift over the strongest rival that this sample would find in four of five cases (headscope).",
        "+{:.2f}",
        lambda row: row.detectable,
        HELD_OUT,
    ),
    _optional(
        "selection frequency",
        "Share of 100 random halves of the corpus on which the same head is the best (headscope).",
        "{:.0%}",
        lambda row: row.selection_frequency,
        "",
    ),
)
"""The columns from left to right, after the name of the row."""

NAME = Column(
    "row",
    "The row of the score in plain words, such as a relation or a class of mentions; after it its code and, after =, "
    "one that pools others and has the same items here (headscope).",
    _name,
    lambda row: escape(row.plain.title),
)
"""The column to the left of `COLUMNS`."""


def render_rows(reports: Sequence[Report]) -> str:
    """Return the content of the table of reported heads as HTML; an empty string if no row has a head."""
    columns = list_columns(reports)
    if not columns:
        return ""
    lines = [f"<thead><tr>{''.join(map(_heading, columns))}</tr></thead>"]
    for report in reports:
        if rows := report.rows_with_heads:
            lines += ["<tbody>", _group(report, len(columns)), *(_row(row, columns) for row in rows), "</tbody>"]
    return "\n".join(lines)


def render_rare_rows(reports: Sequence[Report]) -> str:
    """Return the rows without heads as HTML, hidden until a reader opens them; an empty string without such rows."""
    return "\n".join(
        f'<details class="rare"><summary>{escape(describe_rare(report))}</summary><div class="scroll"><table>'
        f'<thead><tr><th scope="col">{NAME.heading}</th><th scope="col">{escape(report.score.items)} in all</th></tr>'
        f"</thead><tbody>{''.join(map(_rare_row, report.rare_rows))}</tbody></table></div></details>"
        for report in reports
        if report.rare_rows
    )


def list_columns(reports: Sequence[Report]) -> list[Column]:
    """Return the columns in which at least one row has something to show."""
    return [column for column in (NAME, *COLUMNS) if any(map(column.has_content, list_rows(reports)))]


def draw_parts(parts: Sequence[Part], offset: int) -> str:
    """Return an SVG with a bar for each length of link, as high as the head's score, and a mark at the best offset."""
    if not parts:
        return NONE
    marks, lines = [f'<path class="axis" d="M0 18.5H{_place(FARTHEST) + BAR}"/>'], []
    for length, count, value in parts:
        few = " few" if count < MINIMUM else ""
        # Without its ground, a length at which the head is always wrong would look like a length without links.
        for kind, high in (("ground", 16.0), (f"bar{few}", 16 * value)):
            where = f'x="{_place(length)}" y="{18 - high:.1f}"'
            marks.append(f'<rect class="{kind}" {where} width="{BAR - 1}" height="{high:.1f}"/>')
        further = " and further" if abs(length) == FARTHEST else ""
        lines.append(f"{format_offset(length)}{further}: {value:.2f} of {count:,}")
    marks.append(f'<rect class="offset" x="{_place(offset)}" y="20" width="{BAR - 1}" height="3"/>')
    return (
        f'<svg class="lengths" role="img" viewBox="0 0 {_place(FARTHEST) + BAR} 24" width="94" height="24">'
        f"<title>{chr(10).join(lines)}</title>{''.join(marks)}</svg>"
    )


def _place(length: int) -> int:
    """Return the left edge of the bar of a length; a gap divides negative lengths from positive lengths."""
    return BAR * (length + FARTHEST) if length < 0 else BAR * (length + FARTHEST - 1) + 4


def _heading(column: Column) -> str:
    kinds = " ".join(["right"] * column.right + ["picture"] * (column.value is None))
    texts = f", <small>{column.texts}</small>" if column.texts else ""
    heading = f"{column.heading}{texts}"
    content = f'{column.picture}<span class="unseen">{heading}</span>' if column.picture else heading
    return f'<th scope="col" class="{kinds}" title="{escape(column.about)}">{content}</th>'


def _group(report: Report, columns: int) -> str:
    """Return the heading row of a score: its title, definition, permutation of the gold, and baselines."""
    definition = f"Score: {report.score.definition} ({report.source}). {report.permuted}".strip()
    notes = "".join(f"<p>{escape(note)}</p>" for note in (definition, report.comparison, report.remark) if note)
    details = f"<details><summary>How it is scored</summary>{notes}</details>"
    content = f"<div><h3>{escape(report.score.title)}</h3>{details}</div>"
    return f'<tr class="group"><th scope="rowgroup" colspan="{columns}">{content}</th></tr>'


def _row(row: Reported, columns: Sequence[Column]) -> str:
    """Return the HTML of a row with a head, with the value of each cell for sorting."""
    cells = [f'<th scope="row" data-code="{escape(row.name + row.pooled)}">{NAME.content(row)}</th>']
    for column in columns[1:]:
        value = column.value(row) if column.value else ""
        if isinstance(value, float) and math.isnan(value):
            value = ""  # sorts last
        kind = ' class="right"' if column.right else ""
        cells.append(f'<td{kind} data-value="{value}">{column.content(row)}</td>')
    kind = "undecided" if row.verdict == UNDECIDED else "stands-out" * row.stands_out
    return f'<tr class="{kind}">{"".join(cells)}</tr>'


def _rare_row(row: Reported) -> str:
    """Return the HTML of a row without a head: its name (a link to the grid if it has items) and number of items."""
    name = f'<a href="#{escape(format_address(row))}">{_name(row)}</a>' if row.count else _name(row)
    return f'<tr><th scope="row">{name}</th><td>{row.count:,}</td></tr>'


def _format_replication(there: Replicated | None) -> str:
    """Return the lift on another corpus with the verdict; the score, the items and the rival are in a tooltip."""
    if there is None:
        return NONE
    about = [f"{there.score.value:.2f} of {there.scored:,} there"] if math.isfinite(there.score.value) else []
    about += [f"strongest rival: {there.rival}"] if there.rival else []
    verdict = f"<strong>{there.verdict}</strong>" if there.verdict == SURVIVES else there.verdict
    title = escape("; ".join(about) or "nothing of this row there")
    return f'<span title="{title}">{render_interval(there.lift, sign=True)}<br><small>{verdict}</small></span>'


def _list_rivals(row: Reported) -> str:
    """Return the rivals of a head with their scores, the strongest in bold."""
    lines = []
    for rival in row.rivals:
        text = f'{rival.score.value:.2f} <span title="{escape(rival.label)}">{escape(rival.plain)}</span>'
        lines.append(f"<strong>{text}</strong>" if rival.name == row.strongest else text)
    return f'<small class="rivals">{"<br>".join(lines)}</small>' if lines else NONE


def _scores(row: Reported) -> str:
    """Return an SVG line from 0 to 1 with score (dot), interval, rivals (bars), untrained (ring), permuted (cross)."""
    score, permuted = row.score, row.permuted
    marks = ['<line class="axis" x1="0" x2="100" y1="8" y2="8"/>']
    for rival in row.rivals:
        x = f"{100 * rival.score.value:.1f}"
        if rival.name == UNTRAINED:
            marks.append(f'<circle class="untrained" cx="{x}" cy="8" r="3"/>')
        else:
            kind = "rival strongest" if rival.name == row.strongest else "rival"
            marks.append(f'<line class="{kind}" x1="{x}" x2="{x}" y1="2" y2="14"/>')
    if math.isfinite(permuted):
        marks.append(f'<path class="permuted" d="M{100 * permuted - 3:.1f} 5l6 6m0 -6l-6 6"/>')
    if math.isfinite(score.lower) and math.isfinite(score.upper):
        ends = f'x1="{100 * score.lower:.1f}" x2="{100 * score.upper:.1f}"'
        marks.append(f'<line class="interval" {ends} y1="8" y2="8"/>')
    if math.isfinite(score.value):
        marks.append(f'<circle class="score" cx="{100 * score.value:.1f}" cy="8" r="3.2"/>')
    return f"{_SCORES}{''.join(marks)}</svg>"
