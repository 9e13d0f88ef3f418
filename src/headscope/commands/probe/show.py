"""What `headscope probe` prints."""

import xarray as xr
from rich.console import Console

from headscope.commands.probe.request import Probe
from headscope.commands.sentences import print_place
from headscope.view.probes import print_probes


def show(request: Probe, table: xr.Dataset, console: Console) -> None:
    """Print what attention adds, and where all relations are written."""
    print_probes(table, console)
    print_place("all relations", request.out, "probe.csv", console)
