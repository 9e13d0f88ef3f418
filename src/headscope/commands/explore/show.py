"""What `headscope explore` prints, before it serves the page until it is interrupted."""

from rich.console import Console

from headscope.commands.explore.request import Explore
from headscope.commands.explore.run import Explorer


def show(request: Explore, explorer: Explorer, console: Console) -> None:
    """Print the address of the page, and serve it."""
    for note in explorer.notes:
        console.print(note, soft_wrap=True, markup=False, highlight=False, style="yellow")
    console.print(f"Open {explorer.address} (Ctrl-C ends).", soft_wrap=True, markup=False, highlight=False)
    explorer.wait()
