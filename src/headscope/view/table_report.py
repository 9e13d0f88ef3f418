"""A head table on the terminal."""

import json
import math
from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from headscope.analyse import list_highest
from headscope.analyse.head_roles import PROFILE
from headscope.analyse.rank import rank_heads, values_of_heads
from headscope.analyse.replicate import SURVIVES
from headscope.analyse.report import UNDECIDED
from headscope.analyse.uncertainty import ALPHA
from headscope.heads import get_share
from headscope.layers import list_ranges
from headscope.score import read_scores
from headscope.view.findings import list_findings
from headscope.view.headings import (
    describe_causality,
    describe_corpus,
    describe_layers,
    describe_measured,
)
from headscope.view.lines import make_grid, mark_source, print_findings, print_grid, print_more, write
from headscope.view.need_report import print_need
from headscope.view.reports import Interval, Report, Reported, describe_regressions, read_reports
from headscope.view.runs_report import print_runs
from headscope.view.verdicts import (
    P,
    describe_choice,
    describe_marks,
    describe_replication,
    has_p_values,
)
from headscope.view.wording import format_number

SHOWN = 12
"""The number of rows of all scores together that are printed by default."""

WIDE = 100
"""The width of a terminal, in columns, from which rows and rules are printed with plain names."""

_SHORT = {"dependent": "dep.", "mention": "ment.", "question": "quest."}


def print_table(table: xr.Dataset, console: Console, *, whole: bool = False) -> None:
    """Print the source, the findings and the first rows of a table; with `whole`, all rows and notes."""
    _print_source(table, console)
    if "run" in table.dims:
        print_runs(table, console, whole=whole)
        return
    reports = read_reports(table)
    print_findings(list_findings(table, reports), console)
    with_heads = any(report.rows_with_heads for report in reports)
    if whole or not with_heads:
        _print_targets(table, console)
        _print_descriptions(table, console)
    hidden = _print_reports(table, reports, console, whole=whole)
    if not whole:
        described = with_heads and any(values.attrs.get("target") for values in table.data_vars.values())
        print_more([hidden, "what heads look at" if described else "", "notes" if with_heads else ""], console)
        return
    print_need(table, reports, console)
    for sentence in describe_regressions(table):
        console.print(f"\n{escape(sentence)}", emoji=False)


def _print_source(table: xr.Dataset, console: Console) -> None:
    """Print model, corpus and their sizes, the skipped documents, and what is unusual about the measurement."""
    about = table.attrs
    write(console, f"\n{mark_source(table)}")
    units = about.get("units", about["words"])
    words = f"{about['words']:,} words" + (f" in {units:,} units" if units != about["words"] else "")
    console.print(
        f"{table.sizes['layer']} layers of {table.sizes['head']} heads; {about['documents']:,} documents, "
        f"{words}, {about['tokens']:,} tokens"
    )
    if sentence := describe_layers(table):
        console.print(sentence, highlight=False)
    skipped = json.loads(about["skipped"])
    reasons = "; ".join(f"{count:,} {reason}" for reason, count in skipped.items())
    if about["tokens_unknown"]:
        console.print(f"Unknown to the tokenizer: {about['tokens_unknown']:,} tokens", style="yellow")
    console.print(f"Skipped: {reasons or 'nothing'}", style="yellow" if skipped else "")
    if sentence := describe_corpus(table):
        console.print(escape(sentence), style="yellow", highlight=False)
    if measured := describe_measured(table):
        console.print(escape(measured), style="bold", highlight=False)


def _print_targets(table: xr.Dataset, console: Console) -> None:
    """Print the heads that attend most to each target that a variable names."""
    lines = Table(box=None, show_header=False, pad_edge=False)
    shown: list[xr.DataArray] = []
    for name, values in table.data_vars.items():
        if not (target := values.attrs.get("target")) or not (values > 0).any():
            continue
        # In a model whose texts begin with [CLS], the first token and [CLS] are the same target.
        if any(np.allclose(values, other, rtol=1e-6, equal_nan=True) for other in shown):
            continue
        shown.append(values)
        lines.add_row(Text(target), _list_top_heads(table, str(name)))
    if lines.row_count:
        console.print(f"\nThe heads that look most at ... (mean {get_share(table)}, all texts)")
        print_grid(lines, console)


def _list_top_heads(table: xr.Dataset, variable: str) -> str:
    """Return the heads with the largest values, each with its interval if the table was estimated from a sample."""
    ends = [f"{variable}_{end}" for end in ("lower", "upper")]
    if ends[0] not in table:
        return "   ".join(f"[bold]{head}[/] {value:.2f}" for head, value in list_highest(table, variable))
    lower, upper = (dict(rank_heads(values_of_heads(table, end))) for end in ends)
    return "  ".join(
        f"[bold]{head}[/] {value:.2f} \\[{_short(lower[head])} {_short(upper[head])}]"
        for head, value in list_highest(table, variable)
    )


def _print_descriptions(table: xr.Dataset, console: Console) -> None:
    """Print the heads with the largest (or lowest) values of each row of a description, next to its baseline."""
    for score in read_scores(table):
        if score.is_ratio or score.variable == PROFILE.variable:  # roles have their own report
            continue
        lines = Table(box=None, show_header=False, pad_edge=False)
        for place in score.places(table):
            values = table[[score.variable]].sel(place)
            if not values[score.variable].notnull().any():
                continue
            sign = -1 if score.ascending else 1
            best = list_highest(sign * values, score.variable)
            heads = "   ".join(f"[bold]{head}[/] {sign * value:.2f}" for head, value in best)
            control = [f"{table[score.control].sel(place).item():.2f}"] if score.control in table else []
            lines.add_row(Text(" ".join(place.values()) or score.title), heads, *control)
        phrase = f" (last column: {score.baselines[score.control]})" if score.control in table else ""
        which = "lowest" if score.ascending else "highest"
        console.print(f"\n{score.title}: the heads with the {which} values{phrase}")
        print_grid(lines, console)


def _print_reports(table: xr.Dataset, reports: Sequence[Report], console: Console, *, whole: bool) -> str:
    """Print the reported heads next to their strongest rivals, the most frequent rows of each score first.

    Returns:
        A phrase with the number of rows that are not shown; empty if all are shown.
    """
    every = sum(len(report.shown_rows) for report in reports)
    rows = _choose_rows(reports, whole=whole)
    if every and not rows:
        wanted = "the only row" if every == 1 else f"any of {every} rows"
        console.print(f"\nEach half of the corpus has too few links to report a head for {wanted}.")
    if not rows:
        return ""
    tested = has_p_values(reports)
    console.print()
    if whole:
        held_out = "Held out: score, count, lift and the rival's score."
        console.print(f"{escape(describe_choice(reports))} {held_out}", emoji=False)
    print_grid(_lay_out(rows, tested, plain=console.width >= WIDE), console)
    console.print(describe_marks(reports) + (f" p: {P}" if tested and whole else ""))
    if whole:
        _print_notes(table, reports, console)
        _print_replication(table, reports, rows, console)
    with_head = sum(len(report.rows_with_heads) for report in reports)
    if rare := every - with_head:
        console.print(f"{rare} ha{'s' if rare == 1 else 've'} too few links in a half to report.")
    hidden = with_head - len(rows)
    return f"{hidden} more row{'' if hidden == 1 else 's'}" if hidden else ""


def _choose_rows(reports: Sequence[Report], *, whole: bool) -> list[Reported]:
    """Return the rows with heads to print: all rows, or `SHOWN` rows, taken from the scores in turn.

    Of each score, rows whose heads stand out are taken first.
    """
    ranked = [sorted(report.rows_with_heads, key=lambda row: not row.stands_out) for report in reports]
    by_turns = [row for turn in zip_longest(*ranked) for row in turn if row is not None]
    chosen = {row.key for row in (by_turns if whole else by_turns[:SHOWN])}
    return [row for report in reports for row in report.rows_with_heads if row.key in chosen]


def _print_notes(table: xr.Dataset, reports: Sequence[Report], console: Console) -> None:
    """Print notes on causal models, on the permutation of the gold, and on further baselines of the scores."""
    if sentence := describe_causality(table):
        console.print(sentence)
    for report in reports:
        if sentences := " ".join(filter(None, (report.permuted, report.comparison))):
            console.print(escape(f"{report.score.title}. {sentences}"), emoji=False)


def _lay_out(rows: Sequence[Reported], tested: bool, *, plain: bool) -> Table:
    """Return a grid of the rows and their strongest rivals, with `plain` names or with codes that fit 80 columns."""
    columns = ("row", "head", "from", "score", "count", "lift", "[95 %]", "strongest rival", *["p"] * tested)
    left = ("head", "from", "[95 %]", "strongest rival")
    grid = make_grid(*columns, left=left, wraps=("row", "strongest rival"), apart=1)
    for row in rows:
        rival = row.strongest_rival
        grid.add_row(
            Text((row.caption if plain else row.label) + row.pooled),
            row.where + row.mark,
            _SHORT.get(row.attends, row.attends),
            _short(row.score.value),
            f"{row.scored:,}",
            _short(row.lift.value, sign=True),
            _signed_interval(row.lift) if rival else "",
            Text(f"{_short(rival.score.value)} {rival.plain if plain else rival.label}") if rival else "",
            *([_short(row.p)] if tested else []),
            style="bold green" if row.stands_out else "dim" if row.verdict == UNDECIDED else "",
        )
    return grid


def _print_replication(
    table: xr.Dataset, reports: Sequence[Report], rows: Sequence[Reported], console: Console
) -> None:
    """Print the lift of the same heads on another corpus next to the lift here; nothing without another corpus."""
    if not (sentence := describe_replication(table, reports)):
        return
    columns = ("row", "head", "lift here", "there", "[95 %]", "score", "count", "verdict there")
    grid = make_grid(*columns, left=("head", "[95 %]", "verdict there"), wraps=("row",), apart=1)
    for row in rows:
        if (there := row.replication) is None:
            continue
        grid.add_row(
            Text(row.label),
            row.where,
            _short(row.lift.value, sign=True),
            _short(there.lift.value, sign=True),
            _signed_interval(there.lift),
            _short(there.score.value),
            f"{there.scored:,}",
            there.verdict,
            style="bold green" if there.verdict == SURVIVES else "dim" if there.verdict == UNDECIDED else "",
        )
    console.print(f"\n{escape(sentence)}", highlight=False, emoji=False)
    print_grid(grid, console)
    console.print(
        f"Green: {SURVIVES}: every lift has an interval above 0 there, and p, corrected for the rows, is below "
        f"{ALPHA}. Grey: too few texts or items there, or none."
    )


def _signed_interval(lift: Interval) -> str:
    """Return the ends of the interval of a lift; an empty string if it has none."""
    return " to ".join(_short(end, 2, sign=True) for end in lift[1:] if not math.isnan(end))


def _short(share: float, digits: int = 3, *, sign: bool = False) -> str:
    """Return a share without the 0 before the point; an empty string for NaN."""
    return format_number(share, digits, sign=sign).replace("0.", ".", 1)


def print_paths(table: xr.Dataset, console: Console) -> None:
    """Print how each layer was measured; layers that were measured in the same way share a line."""
    ways: dict[tuple[str, str, int], list[int]] = {}
    for path, texts in json.loads(table.attrs["paths"]).items():
        attention_type, layer, way = path.split(" ", 2)
        ways.setdefault((attention_type, way, texts), []).append(int(layer))
    grid = Table(box=None, pad_edge=False)
    several = "attention_type" in table.dims
    for column in (*["attention_type"] * several, "layers", "texts", "measured"):
        grid.add_column(column, justify="right" if column == "texts" else "left")
    in_order = sorted(ways.items(), key=lambda item: (item[0][0], min(item[1]), item[0][1]))
    for (attention_type, way, texts), layers in in_order:
        grid.add_row(*[attention_type] * several, list_ranges(layers), f"{texts:,}", way)
    console.print("\nHow attention was measured:")
    print_grid(grid, console)
