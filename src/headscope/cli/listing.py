"""`headscope list`: what there is, by name."""

from typing import Annotated

from rich.markup import escape
from rich.table import Table

from headscope.cli.options import argument
from headscope.cli.terminal import console


def list_(kind: Annotated[str, argument("KIND", "What to list: reducers, corpora, studies or tasks.")]) -> None:
    """List the reducers, corpora, studies or tasks that there are."""
    from headscope.jobs.listing import list_names

    table = Table(box=None, show_header=False)
    for name, description in list_names(kind).items():
        table.add_row(f"[bold]{escape(name)}[/]", escape(description))
    console.print(table)
