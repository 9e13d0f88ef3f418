"""What `headscope lesions` prints."""

from pathlib import Path

import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.commands.lesions.request import Lesions
from headscope.view.lesions import print_lesions


def show(request: Lesions, table: xr.Dataset, console: Console) -> None:
    """Print what suffers without the heads of each relation, and where all is written."""
    print_lesions(table, console)
    path = Path(request.out or "") / "lesions.csv"
    console.print(f"\nAll lesions are in {escape(str(path))}.", soft_wrap=True)
