"""Sentences that several commands print."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape


def print_written(verb: str, page: Path, files: int, console: Console, *, figures: bool) -> None:
    """Print the page to open or to read, the number of files in its folder, and whether figures are drawn next."""
    path, folder = escape(str(page)), escape(str(page.parent))
    rest = ", where figures are drawn now" if figures else ""
    console.print(f"\n{verb} [bold]{path}[/]; {files} files in {folder}{rest}.", soft_wrap=True)


def print_place(subject: str, out: str | Path | None, name: str, console: Console) -> None:
    """Print in which file of the folder `out` the subject is, such as ``all heads``."""
    path = escape(str(Path(out or "") / name))
    console.print(f"\n{subject.capitalize()} are in {path}.", soft_wrap=True, highlight=False)
