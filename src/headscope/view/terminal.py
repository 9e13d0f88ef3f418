"""A head table on the terminal."""

import json
import math
from collections.abc import Iterator

import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headscope.analyse import top_heads
from headscope.view.reported import PERMUTED, Q, chosen, regression, reports, rule
from headscope.view.runs import summarise_runs

SHOWN = 24
"""Rows of a hypothesis that are shown; all are in the table."""

_SHORT = {"dependent": "dep.", "mention": "ment.", "question": "quest."}


def summarise(table: xr.Dataset, console: Console) -> None:
    """What a table holds, in few lines: its source, the heads that stand out and those that are reported."""
    about = table.attrs
    model, corpus = escape(str(about["model"])), escape(str(about["corpus"]))
    console.print(f"\n[bold]{model}[/] on [bold]{corpus}[/]", soft_wrap=True, highlight=False)
    console.print(
        f"{table.sizes['layer']} layers of {table.sizes['head']} heads; {about['documents']:,} documents, "
        f"{about['words']:,} words, {about['tokens']:,} tokens"
    )
    skipped = json.loads(about["skipped"])
    reasons = "; ".join(f"{count:,} {reason}" for reason, count in skipped.items())
    if about["tokens_unknown"]:
        console.print(f"Unknown to the tokenizer: {about['tokens_unknown']:,} tokens", style="yellow")
    console.print(f"Skipped: {reasons or 'nothing'}", style="yellow" if skipped else "")
    if "run" in table.dims:
        summarise_runs(table, console)
        return
    _surface(table, console)
    _token_classes(table, console)
    _hypotheses(table, console)
    if told := regression(table):
        console.print(f"\n{told}")


def _surface(table: xr.Dataset, console: Console) -> None:
    shown = {
        "the previous token": "mass_previous",
        "the next token": "mass_next",
        "[CLS]": "mass_cls",
        "[SEP]": "mass_sep",
        "the first token": "mass_first",
        ". and ,": "mass_punctuation",
    }
    if "mass_cls" in table and table["mass_cls"].notnull().any():
        del shown["the first token"]
    lines = Table(box=None, show_header=False, pad_edge=False)
    for what, variable in shown.items():
        if variable in table and (best := top_heads(table, variable)) and best[0][1] > 0:
            lines.add_row(what, "   ".join(f"[bold]{name}[/] {value:.2f}" for name, value in best))
    if lines.row_count:
        console.print("\nThe heads that look most at ... (mean share of attention)")
        console.print(lines)


def _token_classes(table: xr.Dataset, console: Console) -> None:
    if "token_class_mass" not in table:
        return
    lines = Table(box=None, show_header=False, pad_edge=False)
    for name, share in _by(table["token_class_share"]):
        best = top_heads(table.sel(token_class=name), "token_class_mass")
        heads = "   ".join(f"[bold]{head}[/] {value:.2f}" for head, value in best)
        lines.add_row(str(name.item()), heads, f"{share.item():.2f}")
    console.print("\nThe heads that look most at a class of tokens (and the share of the tokens that it is)")
    console.print(lines)


def _hypotheses(table: xr.Dataset, console: Console) -> None:
    """The reported head of the most frequent relations, class of mentions and scope, beside its baselines."""
    found = reports(table)
    rows = [row for report in found for row in report.named[:SHOWN]]
    every = sum(len(report.rows) for report in found)
    if every and not rows:
        wanted = "the only relation" if every == 1 else f"any of {every} relations"
        console.print(f"\nToo few links in a half of the corpus to report a head for {wanted}.")
    if not rows:
        return
    untrained, permuted = any(row.untrained.value >= 0 for row in rows), any(row.q >= 0 for row in rows)
    # Narrow enough for 80 columns; a long name takes two lines.
    grid = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("relation", "head", "from", "score", "[95 %]", "count", "offset"):
        right = column in {"score", "count", "offset"}
        grid.add_column(column, no_wrap=column != "relation", justify="right" if right else "left")
    for column, there in (("untrained", untrained), ("permuted", permuted), ("q", permuted)):
        if there:
            grid.add_column(column, no_wrap=True, justify="right")
    for row in rows:
        grid.add_row(
            escape(row.label),
            row.where,
            _SHORT.get(row.attends, row.attends),
            _short(row.score.value),
            f"{_short(row.score.lower, 2)}–{_short(row.score.upper, 2)}",
            f"{row.scored:,}",
            f"{row.offset:+d}: {_short(row.at_offset.value)}",
            *([_short(row.untrained.value)] if untrained else []),
            *([_short(row.permuted), _short(row.q)] if permuted else []),
            style="bold green" if row.stands_out else "",
        )
    console.print(f"\n{chosen(untrained)}")
    console.print(grid)
    if permuted:
        console.print(f"Permuted: {PERMUTED} q: {Q}")
    console.print(f"Green: {rule(permuted)}")
    for report in found:
        if report.comparison:
            console.print(f"{report.hypothesis.title}. {report.comparison}")
    named = sum(len(report.named) for report in found)
    more, rare = named - len(rows), every - named
    if more or rare:
        console.print(
            f"{more} more relation{' is' if more == 1 else 's are'} in the table; "
            f"{rare} ha{'s' if rare == 1 else 've'} too few links in a half to report."
        )


def _short(share: float, digits: int = 3) -> str:
    """A share without the 0 before the point; empty where there is none."""
    return "" if math.isnan(share) else f"{share:.{digits}f}".removeprefix("0")


def _by(values: xr.DataArray) -> Iterator[tuple[xr.DataArray, xr.DataArray]]:
    """Each place along the only axis, and its value, where there is one."""
    (dim,) = values.dims
    present = values.dropna(dim)
    return zip(present[dim], present, strict=True)


def explain(table: xr.Dataset, console: Console) -> None:
    """How each layer was measured; neighbouring layers of one way together."""
    ways: dict[tuple[str, str, int], list[int]] = {}
    for path, texts in json.loads(table.attrs["paths"]).items():
        attention_type, layer, way = path.split(" ", 2)
        ways.setdefault((attention_type, way, texts), []).append(int(layer))
    grid = Table(box=None, pad_edge=False)
    for column in (*(["attention_type"] if "attention_type" in table.dims else []), "layers", "texts", "measured"):
        grid.add_column(column, justify="right" if column == "texts" else "left")
    for (attention_type, way, texts), layers in sorted(
        ways.items(), key=lambda item: (item[0][0], min(item[1]), item[0][1])
    ):
        grid.add_row(
            *([attention_type] if "attention_type" in table.dims else []), _runs(sorted(layers)), f"{texts:,}", way
        )
    console.print("\nHow attention was measured:")
    console.print(grid)


def _runs(layers: list[int]) -> str:
    """Numbers as stretches: 1-3, 5."""
    starts = [layer for layer in layers if layer - 1 not in layers]
    ends = [layer for layer in layers if layer + 1 not in layers]
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
