"""What `headscope list` prints."""

from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headscope.commands.list.request import List


def show(request: List, names: Mapping[str, str], console: Console) -> None:
    """Print a table of names and descriptions."""
    table = Table(box=None, show_header=False)
    for name, description in names.items():
        table.add_row(f"[bold]{escape(name)}[/]", escape(description))
    console.print(table)
