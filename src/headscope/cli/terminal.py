"""Where commands write: results to the standard output, progress and complaints to the standard error."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from headscope.view.progress import progress_bars

if TYPE_CHECKING:
    from headscope.jobs.folder import Progress

console = Console()
errors = Console(stderr=True)


@contextmanager
def show_progress() -> Iterator["Progress"]:
    """Progress on the terminal; an interrupted job says how to go on."""
    try:
        with progress_bars(errors) as progress:
            yield progress
    except KeyboardInterrupt:
        errors.print("headscope: interrupted; add --resume to the same command to go on.", soft_wrap=True)
        raise typer.Exit(130) from None
