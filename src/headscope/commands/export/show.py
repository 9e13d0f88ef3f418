"""What `headscope export` prints."""

from rich.console import Console
from rich.markup import escape

from headscope.commands.export.request import Export
from headscope.headlists import HeadList


def show(request: Export, heads: HeadList, console: Console) -> None:
    """Print which file was written, and how many heads it holds."""
    rows, count = len(heads.keys), len(heads.entries)
    written = f"{count} heads of {rows} row{'' if rows == 1 else 's'}"
    console.print(f"Wrote {escape(str(request.file))}: {written}.", soft_wrap=True, highlight=False)
