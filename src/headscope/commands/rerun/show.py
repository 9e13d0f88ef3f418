"""What `headscope rerun` prints."""

from rich.console import Console

from headscope.commands.rerun.request import Rerun
from headscope.commands.rerun.result import RerunResult

DIFFERENT = 3
"""The exit code if a number differs; 2 is that of an error."""

SHOWN = 8
"""The names of variables that are printed."""


def show(request: Rerun, result: RerunResult, console: Console) -> int | None:
    """Print whether all numbers are the same, and if not, which differ."""
    if result.is_same:
        sentence = f"All {result.compared} variables of {result.command} are the same to the last bit."
    else:
        names = ", ".join(result.differing[:SHOWN])
        others = len(result.differing) - SHOWN
        rest = f" and {others} others" if others > 0 else ""
        sentence = f"{len(result.differing)} of {result.compared} variables differ: {names}{rest}."
    console.print(sentence, soft_wrap=True, markup=False, highlight=False)
    if result.versions:
        versions = "; ".join(result.versions)
        console.print(f"Other versions: {versions}.", soft_wrap=True, markup=False, highlight=False, style="yellow")
    return None if result.is_same else DIFFERENT
