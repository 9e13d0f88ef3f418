"""The progress of a long job, on a terminal, in a notebook, or as a line for each step."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text


class _Remaining(ProgressColumn):
    """The time that is left, if the size of the step is known."""

    def render(self, task: Task) -> Text:
        """Return a text such as ``remaining 0:01:30``; an empty one if the time cannot be estimated."""
        if task.time_remaining is None or task.finished:
            return Text("")
        minutes, seconds = divmod(int(task.time_remaining), 60)
        hours, minutes = divmod(minutes, 60)
        return Text(f"remaining {hours}:{minutes:02}:{seconds:02}")


class _Share(ProgressColumn):
    """The share of the step that is done, if the size of the step is known."""

    def render(self, task: Task) -> Text:
        """Return a text such as ``37%``; an empty one if the size is not known."""
        return Text("" if task.total is None else f"{task.percentage:3.0f}%")


@contextmanager
def progress_bars(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function that shows progress: call it with a step, the amount done, and the total (0 if not known).

    On a terminal or in a notebook it draws a bar, which pulses if the total is not known. Elsewhere it prints a line
    for each step.
    """
    shows_bars = console.is_terminal or console.is_jupyter
    columns = (TextColumn("{task.description}"), BarColumn(), _Share(), TextColumn("elapsed"), TimeElapsedColumn())
    started: dict[str, TaskID] = {}
    with Progress(*columns, _Remaining(), console=console, transient=True, disable=not shows_bars) as bars:

        def update(step: str, done: int, total: int) -> None:
            if step not in started:
                for task in bars.tasks:
                    bars.update(task.id, total=1, completed=1, visible=False)
                started[step] = bars.add_task(escape(step), total=total or None)
                if not shows_bars:
                    console.print(f"{escape(step)} ...", soft_wrap=True)
            bars.update(started[step], total=total or None, completed=done, visible=True)

        yield update
