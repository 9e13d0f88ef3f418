"""What `headscope tune` prints."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from headscope.commands.tune.request import TypedTune
from headscope.view.tuned import print_tuned

if TYPE_CHECKING:
    from headscope.learn.tune import Tuned


def show(request: TypedTune, result: "Tuned", console: Console) -> None:
    """Print how well the runs learnt, and where they are listed."""
    print_tuned(result.task, result.control, console)
    console.print(f"\nThe runs are listed in {escape(str(Path(request.out) / 'runs.json'))}.", soft_wrap=True)
