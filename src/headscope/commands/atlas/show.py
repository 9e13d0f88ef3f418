"""What `headscope atlas` prints."""

import xarray as xr
from rich.console import Console

from headscope.commands.atlas.request import Atlas
from headscope.commands.atlas.result import AtlasResult
from headscope.commands.sentences import print_written
from headscope.view.terminal import print_table


def preview(table: xr.Dataset, console: Console) -> None:
    """Print the table, before the figures are drawn."""
    print_table(table, console)


def show(request: Atlas, result: AtlasResult, console: Console) -> None:
    """Print which page to open."""
    assert result.folder is not None  # the terminal always names one
    print_written("Open", result.folder / "atlas.html", len(result.files), console)
