"""What `headscope ledger` prints."""

import xarray as xr
from rich.console import Console

from headscope.commands.ledger.request import Ledger
from headscope.commands.sentences import print_place
from headscope.view.ledger import print_ledger


def show(request: Ledger, table: xr.Dataset, console: Console) -> None:
    """Print the heads that read most, and where all are written."""
    print_ledger(table, console)
    print_place("all shares", request.out, "ledger.csv", console)
