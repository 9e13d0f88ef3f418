"""What `headscope compare` prints."""

from typing import TYPE_CHECKING

from rich.console import Console

from headscope.commands.compare.request import Compare
from headscope.commands.record import spell
from headscope.commands.sentences import print_written
from headscope.view.comparison import print_comparison

if TYPE_CHECKING:
    from headscope.commands.compare.run import ComparisonResult


def show(request: Compare, result: "ComparisonResult", console: Console) -> None:
    """Print each comparison, the agreement between corpora, what was left out, and what to read."""
    for comparison in result.comparisons:
        print_comparison(comparison, console)
    for name, agreements in result.agreements.items():
        for agreement in agreements:
            console.print(f"On {result.other}, {name}: {agreement}", soft_wrap=True, markup=False, highlight=False)
    for sentence in result.left_out:
        line = spell(sentence, type(request))
        console.print(line, soft_wrap=True, markup=False, highlight=False, style="yellow")
    if result.folder is not None:
        print_written("Read", result.folder / "comparison.md", len(result.files), console)
