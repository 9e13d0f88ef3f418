"""What `headscope disable` prints."""

from pathlib import Path

import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.commands.disable.request import Disable
from headscope.view.effects import print_effects


def show(request: Disable, table: xr.Dataset, console: Console) -> None:
    """Print the largest effects, and where all are written."""
    print_effects(table, console)
    path = Path(request.out or "") / "effects.csv"
    console.print(f"\nAll effects are in {escape(str(path))}.", soft_wrap=True)
