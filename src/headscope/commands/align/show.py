"""What `headscope align` prints."""

from pathlib import Path

import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.commands.align.request import SETTINGS, Align
from headscope.commands.sentences import print_place
from headscope.view.shortlist import print_shortlist
from headscope.view.terminal import print_table


def show(request: Align, table: xr.Dataset, console: Console) -> None:
    """Print the table, which heads stand out, and where they are written."""
    print_table(table, console)
    print_shortlist(table, console)
    out = Path(request.out or "")
    print_place("all heads", request.out, "alignment.csv", console)
    if (out / SETTINGS).exists():
        done = "predicted" if request.step == "predicting" else "read"
        sentence = f"The heads that stand out where words are {done} are the alignment_heads in {out / SETTINGS}."
    else:
        sentence = f"No head stands out at the step {request.step}, so {SETTINGS} is not written."
    console.print(escape(sentence), soft_wrap=True, highlight=False)
