"""What `headscope disable` prints."""

import xarray as xr
from rich.console import Console

from headscope.commands.disable.request import Disable
from headscope.commands.sentences import print_place
from headscope.view.effects import print_effects


def show(request: Disable, table: xr.Dataset, console: Console) -> None:
    """Print the largest effects, and where all are written."""
    print_effects(table, console)
    print_place("all effects", request.out, "effects.csv", console)
