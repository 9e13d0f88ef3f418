"""Where commands print: results to standard output, progress and errors to standard error."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.markup import escape

from headscope.view.progress import progress_bars

if TYPE_CHECKING:
    from headscope.jobs.folder import Progress

console = Console()
errors = Console(stderr=True)


@contextmanager
def show_progress(*, resumable: bool = True) -> Iterator["Progress"]:
    """Show progress on the terminal; if the job is interrupted, say how to continue it where that is possible."""
    try:
        with progress_bars(errors) as progress:
            yield progress
    except KeyboardInterrupt:
        advice = "; add --resume to the same command to continue" if resumable else ""
        errors.print(f"headscope: interrupted{advice}.", soft_wrap=True)
        raise typer.Exit(130) from None


def print_written(verb: str, page: Path, files: int) -> None:
    """Print which page to open, or to read, and how many files are in its folder."""
    path, folder = escape(str(page)), escape(str(page.parent))
    console.print(f"\n{verb} [bold]{path}[/]; {files} files in {folder}.", soft_wrap=True)
