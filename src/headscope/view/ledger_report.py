"""The context ledger as tidy data frames, and on the terminal."""

import json
from collections.abc import Iterator

import pandas as pd
import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.analyse.ledger import CONTENT, SELECTED, find_selected, rank_readers
from headscope.analyse.uncertainty import ALPHA
from headscope.heads import head_name
from headscope.view.lines import format_range, make_grid, mark_source, print_findings, print_grid, print_more, write
from headscope.view.wording import format_brief_p

SHOWN = 10
"""The number of heads that the terminal shows."""


def list_parts(table: xr.Dataset) -> pd.DataFrame:
    """Return the attention of each head to each part of the prompt, as a data frame.

    Columns are ``layer``, ``head``, ``part``, ``mass`` with ``lower`` and ``upper``, and ``uniform``, the mass of
    uniform attention.
    """
    columns = {"mass": "ledger_mass", "lower": "ledger_mass_lower", "upper": "ledger_mass_upper"}
    columns["uniform"] = "ledger_mass_uniform"
    chosen = xr.Dataset({column: table[name] for column, name in columns.items()})
    return chosen.to_dataframe(dim_order=["layer", "head", "part"]).reset_index()


def average_parts(parts: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over heads of ``mass`` and ``uniform`` for each part, from the rows of `list_parts`."""
    return parts.groupby("part", sort=False)[["mass", "uniform"]].mean()


def list_content(table: xr.Dataset) -> pd.DataFrame:
    """Return the attention of each head to the document with the answer, the largest content effect first.

    Columns are ``layer``, ``head``, ``gold`` and ``other`` (the mass of that document, and of the other documents in
    the same slots), ``content`` with ``lower`` and ``upper`` (their difference), ``length`` (the part of it that
    lengths alone explain), ``p``, ``q`` and ``verdict``, which is ``selected`` or empty.
    """
    columns = {"gold": "ledger_gold", "other": "ledger_other"}
    columns |= {name.removeprefix("ledger_").removeprefix("content_"): name for name in CONTENT}
    chosen = xr.Dataset({column: table[name] for column, name in columns.items()} | {"verdict": find_selected(table)})
    frame = chosen.to_dataframe(dim_order=["layer", "head"]).reset_index()
    frame["verdict"] = frame["verdict"].map({True: SELECTED, False: ""})
    return frame.sort_values("content", ascending=False, kind="stable", ignore_index=True)


def print_ledger(table: xr.Dataset, console: Console, *, whole: bool = False) -> None:
    """Print the heads with the largest content effect or, without one, the heads that read the documents most.

    With `whole`, all heads are printed, and the mean share of attention of each part.
    """
    about = table.attrs
    write(
        console,
        f"\n{mark_source(table)}, "
        f"{int(about['documents']):,} prompts, {int(about['own_tokens']):,} tokens of the model's own text",
    )
    for reason, count in json.loads(about["skipped"]).items():
        write(console, f"left out: {count} {escape(reason)}")
    averages = average_parts(list_parts(table))
    print_findings(_list_findings(table, averages), console)
    if whole:
        write(console, "\n[bold]All heads[/], mean share of attention of each part")
        lines = make_grid("part", "all heads", "uniform attention")
        for part in averages.itertuples():
            lines.add_row(str(part.Index), f"{part.mass:.3f}", f"{part.uniform:.3f}")
        print_grid(lines, console)
    shown = None if whole else SHOWN
    if "ledger_content" in table:
        _print_content(list_content(table)[:shown], console)
    else:
        _print_readers(table, shown, console)
    if not whole:
        hidden = table.sizes["layer"] * table.sizes["head"] - SHOWN
        print_more([f"{hidden} more heads" if hidden > 0 else "", "the share of each part"], console)


def _list_findings(table: xr.Dataset, averages: pd.DataFrame) -> Iterator[str]:
    """Yield sentences on the heads that read the answer, and on the part that all heads together read most."""
    if "ledger_content" in table:
        frame = list_content(table)
        selected, most = int((frame["verdict"] == SELECTED).sum()), frame.iloc[0]
        yield (
            f"{selected or 'None'} of {len(frame)} heads read the document with the answer more than the others in the "
            f"same slots, beyond its length (q below {ALPHA})."
        )
        yield (
            f"Head {head_name(int(most['layer']), int(most['head']))} reads most of it: "
            f"{100 * most['gold']:.0f} % of its attention, and {100 * most['other']:.0f} % of the others."
        )
    else:
        yield 'No content effect: fewer than two prompts have "gold".'
    part = averages.iloc[int(averages["mass"].argmax())]
    yield (
        f"All heads together read most of {part.name}: {100 * part['mass']:.0f} % of attention, where uniform "
        f"attention has {100 * part['uniform']:.0f} %."
    )


def _print_content(frame: pd.DataFrame, console: Console) -> None:
    write(console, "\nThe heads that read most of the document with the answer")
    lines = make_grid("head", "answer", "others", "content effect", "95 % interval", "by length", "q")
    for row in frame.to_dict("records"):
        lines.add_row(
            head_name(row["layer"], row["head"]), f"{row['gold']:.3f}", f"{row['other']:.3f}", f"{row['content']:+.3f}",
            format_range(row["lower"], row["upper"]), f"{row['length']:+.3f}", format_brief_p(row["q"]),
        )  # fmt: skip
    print_grid(lines, console)


def _print_readers(table: xr.Dataset, shown: int | None, console: Console) -> None:
    """Print the heads that read most of the documents, for prompts that do not mark the document with the answer."""
    write(console, "\nThe heads that read most of the documents")
    slots = [int(slot) for slot in table["slot"].values]
    lines = make_grid("head", *(f"slot {slot}" for slot in slots))
    for layer, head in rank_readers(table)[:shown]:
        by_slot = table["ledger_by_slot"].sel(layer=layer, head=head)
        lines.add_row(head_name(layer, head), *(f"{float(by_slot.sel(slot=slot)):.3f}" for slot in slots))
    print_grid(lines, console)
