"""A check of heads in another model, as a data frame for CSV files and as lines on the terminal."""

from collections.abc import Iterator

import pandas as pd
import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from headscope.analyse.check import KEPT, LOST, count_verdicts
from headscope.analyse.report import UNDECIDED
from headscope.heads import EDITED
from headscope.identity import DIFFERS_IN
from headscope.view.headings import name_corpus, name_model, name_row
from headscope.view.lines import make_grid, print_findings, print_grid, print_more, write
from headscope.view.wording import format_number

_COLUMNS = (
    "score", "row", "name", "attention_type", "layer", "head", "direction", "before", "after", "change", "change_lower",
    "change_upper", "p", "q", "count", "clusters", "verdict",
)  # fmt: skip

SHOWN = 12
"""The number of heads that are printed by default."""

ORDER = {LOST: 0, UNDECIDED: 1, KEPT: 2}


def make_check_frame(checked: xr.Dataset) -> pd.DataFrame:
    """Return a data frame with a row for each checked head, in the order of the scores and their rows."""
    frame = pd.DataFrame({str(name): values.values for name, values in checked.variables.items()})
    frame = frame.rename(columns={"label": "row"}).astype({"layer": int, "head": int})
    frame["name"] = [name_row(row) for row in frame.to_dict("records")]
    return frame[[name for name in _COLUMNS if name in frame]]


def describe_check(checked: xr.Dataset) -> str:
    """Return a sentence with the number of heads that have each verdict."""
    counts = count_verdicts(checked)
    every = sum(counts.values())
    parts = [f"{counts[KEPT]} of {every} head{'' if every == 1 else 's'} kept", f"{counts[LOST]} lost"]
    if counts[UNDECIDED]:
        parts.append(f"{counts[UNDECIDED]} cannot be decided")
    return f"{', '.join(parts)} (tolerance {checked.attrs['tolerance']:g})."


def print_check(checked: xr.Dataset, console: Console, *, whole: bool = False) -> None:
    """Print the two models, the verdicts, and the change of each head.

    By default, at most `SHOWN` heads are printed, lost heads first. The `whole` table has all heads in their own order,
    and how they were tested.
    """
    about = checked.attrs
    old, new, corpus = (
        escape(name(about[key]))
        for name, key in ((name_model, "old_model"), (name_model, "new_model"), (name_corpus, "corpus"))
    )
    write(console, f"\n[bold]{new}[/] against [bold]{old}[/] on [bold]{corpus}[/]")
    differences = about[DIFFERS_IN]
    write(console, f"The two models differ in {differences}." if differences else "The two models are the same.")
    for side in ("old", "new"):
        if edits := about.get(f"{side}_{EDITED}"):
            sentence = f"The {side} model was measured while its heads were edited: {edits}."
            console.print(escape(sentence), style="bold", highlight=False)
    frame = make_check_frame(checked)
    print_findings(_list_findings(checked, frame), console)
    console.print()
    columns = ("row", "head", "before", "after", "change", "[95 %]", "q", "items", "verdict")
    grid = make_grid(*columns, left=("head", "[95 %]", "verdict"), wraps=("row", "verdict"), apart=1)
    shown = frame if whole else frame.sort_values("verdict", key=lambda each: each.map(ORDER), kind="stable")[:SHOWN]
    for row in shown.to_dict("records"):
        before, after, q = (format_number(row[name]) for name in ("before", "after", "q"))
        change, *ends = (format_number(row[name], sign=True) for name in ("change", "change_lower", "change_upper"))
        grid.add_row(
            Text(row["row"]), row["name"], before, after, change, " to ".join(ends) if all(ends) else "", q,
            f"{int(row['count']):,}", row["verdict"],
            style={LOST: "bold red", UNDECIDED: "dim"}.get(row["verdict"], ""),
        )  # fmt: skip
    print_grid(grid, console)
    if whole:
        console.print(f"\n{escape(about['method'])}", highlight=False)
    else:
        hidden = len(frame) - len(shown)
        print_more([f"{hidden} more row{'' if hidden == 1 else 's'}" if hidden else "", "how it was tested"], console)


def _list_findings(checked: xr.Dataset, frame: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence with the count of each verdict, and a sentence that names the lost heads."""
    yield describe_check(checked)
    lost = [f"{row['row']} {row['name']}" for row in frame.to_dict("records") if row["verdict"] == LOST]
    if lost:
        rest = f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
        yield f"Lost: {', '.join(lost[:SHOWN])}{rest}."
