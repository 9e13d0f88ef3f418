"""What `headscope probe` prints."""

from pathlib import Path

import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.commands.probe.request import Probe
from headscope.view.probes import print_probes


def show(request: Probe, table: xr.Dataset, console: Console) -> None:
    """Print what attention adds, and where all relations are written."""
    print_probes(table, console)
    path = Path(request.out or "") / "probe.csv"
    console.print(f"\nAll relations are in {escape(str(path))}.", soft_wrap=True)
