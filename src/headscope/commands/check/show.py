"""What `headscope check` prints, and its exit code."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from headscope.commands.check.request import TypedCheck
from headscope.view.check import print_check

if TYPE_CHECKING:
    from headscope.commands.check.run import CheckResult

HEADS_LOST, NOT_DECIDED = 3, 4
"""Exit codes; 2 is that of an error."""


def show(request: TypedCheck, result: "CheckResult", console: Console) -> int | None:
    """Print the verdict on each head, and warn of those that cannot be decided."""
    print_check(result.table, console)
    if result.folder is not None:
        console.print(f"\nWrote {escape(str(result.folder / 'check.json'))} and check.csv.", soft_wrap=True)
    if result.lost:
        return HEADS_LOST
    if result.undecided:
        count = len(result.undecided)
        sentence = f"{count} head{'' if count == 1 else 's'} cannot be decided; more texts decide more."
        warnings = Console(stderr=True, emoji=False)
        warnings.print(f"headscope: {sentence}", style="yellow", soft_wrap=True, highlight=False)
        return NOT_DECIDED if request.strict else None
    return None
