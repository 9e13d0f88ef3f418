"""Sentences that several commands print."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape


def print_written(verb: str, page: Path, files: int, console: Console, *, figures: bool) -> None:
    """Print which page to open, or to read, how many files are in its folder, and whether figures will be."""
    path, folder = escape(str(page)), escape(str(page.parent))
    rest = ", where figures are drawn now" if figures else ""
    console.print(f"\n{verb} [bold]{path}[/]; {files} files in {folder}{rest}.", soft_wrap=True)


def print_place(subject: str, out: str | Path | None, name: str, console: Console) -> None:
    """Print in which file of the folder `out` something is, such as ``all heads``, of which some were printed."""
    path = escape(str(Path(out or "") / name))
    console.print(f"\n{subject.capitalize()} are in {path}.", soft_wrap=True, highlight=False)
