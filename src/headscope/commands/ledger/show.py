"""What `headscope ledger` prints."""

from pathlib import Path

import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.commands.ledger.request import Ledger
from headscope.view.ledger import print_ledger


def show(request: Ledger, table: xr.Dataset, console: Console) -> None:
    """Print the heads that read most, and where all are written."""
    print_ledger(table, console)
    path = Path(request.out or "") / "ledger.csv"
    console.print(f"\nAll shares are in {escape(str(path))}.", soft_wrap=True)
