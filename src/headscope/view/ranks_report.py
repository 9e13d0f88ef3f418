"""The ranks of the heads of a list, as a data frame for CSV files and as lines on the terminal."""

from collections.abc import Iterator

import pandas as pd
import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from headscope.view.headings import name_corpus, name_model
from headscope.view.lines import make_grid, print_findings, print_grid, print_more, write
from headscope.view.wording import format_number

SHOWN = 12
"""The number of heads that are printed by default."""


def make_ranks_frame(ranks: xr.Dataset) -> pd.DataFrame:
    """Convert a table of ranks to a data frame with a line for each head of the list, in the order of the table."""
    return pd.DataFrame({str(name): values.values for name, values in ranks.data_vars.items()})


def print_ranks(ranks: xr.Dataset, console: Console, *, whole: bool = False) -> None:
    """Print how many heads of the list are among the best of the model, and the first ranks or the `whole` table."""
    about = ranks.attrs
    model, corpus = escape(name_model(about["model"])), escape(name_corpus(about["corpus"]))
    write(console, f"\n[bold]{escape(about['list'])}[/] in [bold]{model}[/] on [bold]{corpus}[/]")
    frame = make_ranks_frame(ranks)
    print_findings(list_findings(frame, about["unit"]), console)
    console.print()
    grid = make_grid("row", "head", "listed", "measured", "rank", left=("head",), wraps=("row",), apart=1)
    shown = frame if whole else frame[:SHOWN]
    for row in shown.to_dict("records"):
        rank = "" if row["rank"] != row["rank"] else f"{int(row['rank']):,}"
        values = (format_number(row["listed_value"]), format_number(row["measured_value"]))
        grid.add_row(Text(row["measured_row"]), row["name"], *values, rank, style="" if row["compared"] else "dim")
    print_grid(grid, console)
    if hidden := len(frame) - len(shown):
        print_more([f"{hidden} more row{'' if hidden == 1 else 's'}"], console)


def list_findings(frame: pd.DataFrame, unit: str) -> Iterator[str]:
    """Yield a sentence for each row: how many of the N best heads of the list are among the N best of the model."""
    heads = "heads" if unit == "head" else "key/value heads"
    for (name, *_), row in frame.groupby(["measured_row", "attention_type", "direction"], sort=False):
        first = row.iloc[0]
        count, chance = first["compared_heads"], first["heads_by_chance"]
        best = "" if len(row) == count else "best "
        yield (
            f"{name}: {first['shared_heads']} of the {best}{count} {heads} of the list are among the best {count} of "
            f"{first['heads']:,} in the model; {chance:.1f} would be by chance."
        )
