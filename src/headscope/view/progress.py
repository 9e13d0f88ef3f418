"""The progress of a long job on the terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn


@contextmanager
def progress_bars(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """A function to be told of a stage, how much of it is done and how much there is.

    A bar on a terminal; elsewhere a line for each stage.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f}% {task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    started: dict[str, TaskID] = {}
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:

        def update(stage: str, done: int, total: int) -> None:
            if stage not in started:
                for task in bars.tasks:
                    bars.update(task.id, total=1, completed=1, visible=False)
                started[stage] = bars.add_task(escape(stage), total=total or None, rate="")
                if not console.is_terminal:
                    console.print(f"{escape(stage)} ...", soft_wrap=True)
            task = bars.tasks[bars.task_ids.index(started[stage])]
            rate = f"{task.speed:,.0f} words/s" if task.speed and total else ""
            bars.update(started[stage], total=total or None, completed=done, rate=rate)

        yield update
