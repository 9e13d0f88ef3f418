"""Sentences that several commands print."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape


def print_written(verb: str, page: Path, files: int, console: Console) -> None:
    """Print which page to open, or to read, and how many files are in its folder."""
    path, folder = escape(str(page)), escape(str(page.parent))
    console.print(f"\n{verb} [bold]{path}[/]; {files} files in {folder}.", soft_wrap=True)
