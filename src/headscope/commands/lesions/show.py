"""What `headscope lesions` prints."""

import xarray as xr
from rich.console import Console

from headscope.commands.lesions.request import Lesions
from headscope.commands.sentences import print_place
from headscope.view.lesions import print_lesions


def show(request: Lesions, table: xr.Dataset, console: Console) -> None:
    """Print what suffers without the heads of each relation, and where all is written."""
    print_lesions(table, console)
    print_place("all lesions", request.out, "lesions.csv", console)
