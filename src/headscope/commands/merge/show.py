"""What `headscope merge` prints."""

import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.commands.merge.request import Merge
from headscope.view.terminal import print_table


def show(request: Merge, table: xr.Dataset, console: Console) -> None:
    """Print the table, and which file was written."""
    print_table(table, console)
    console.print(f"\nWrote {escape(str(request.out))}.", soft_wrap=True)
