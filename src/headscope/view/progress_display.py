"""The progress of a long job, on a terminal, in a notebook, or as a line for each step."""

import html
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text


class _Remaining(ProgressColumn):
    """The column with the remaining time of a step, if the size of the step is known."""

    def render(self, task: Task) -> Text:
        """Return a text such as ``remaining 0:01:30``; an empty one if the time cannot be estimated."""
        if task.time_remaining is None or task.finished:
            return Text("")
        return Text(f"remaining {_spell_time(task.time_remaining)}")


class _Share(ProgressColumn):
    """The column with the share of a step that is done, if the size of the step is known."""

    def render(self, task: Task) -> Text:
        """Return a text such as ``37%``; an empty one if the size is not known."""
        return Text("" if task.total is None else f"{task.percentage:3.0f}%")


Update = Callable[[str, int, int], None]
"""A function that shows progress; it takes the name of a step, the amount done, and the total (0 if unknown)."""

PAUSE = 0.1
"""The smallest time in seconds between two updates of a bar in a notebook, since each is sent to the browser."""


FINISHED = (
    "<style>.jp-OutputArea-child:has(.headscope-finished) {display: none} "
    ".jp-Cell-outputWrapper:has(.headscope-finished) .jp-Collapser {min-height: 0}</style>"
    "<i class='headscope-finished'></i>"
)
"""The HTML that replaces a finished bar, and shows nothing. Without its style, JupyterLab would keep an empty line, and
the bar at the left of the line that folds outputs."""


def _spell_time(seconds: float) -> str:
    """Return a number of seconds as a time: ``0:01:30``."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def draw_bar(step: str, done: int, total: int, elapsed: float) -> str:
    """Return a progress bar as HTML, which needs no widget; the bar pulses if the total is 0 (unknown)."""
    share = f"value='{done}' max='{total}'" if total else ""
    times = [f"{done / total:.0%}", f"elapsed {_spell_time(elapsed)}"] if total else []
    if 0 < done < total:
        times += [f"remaining {_spell_time(elapsed * (total - done) / done)}"]
    return (
        "<div style='display: flex; gap: 1em; align-items: center; font-size: 13px'>"
        f"<span>{html.escape(step)}</span>"
        f"<progress aria-label='{html.escape(step)}' {share} style='flex: 0 1 20em'></progress>"
        f"<span style='opacity: 0.7'>{', '.join(times)}</span></div>"
    )


@contextmanager
def _notebook_bar() -> Iterator[Update]:
    """Yield a function that draws a bar in the cell of a notebook, and remove the bar at the end."""
    shown = import_module("IPython.display").display({"text/plain": ""}, raw=True, display_id=True)
    started: dict[str, float] = {}
    last = -PAUSE

    def update(step: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if step in started and now - last < PAUSE:
            return
        last = now
        bar = draw_bar(step, done, total, now - started.setdefault(step, now))
        shown.update({"text/html": bar, "text/plain": step}, raw=True)

    try:
        yield update
    finally:
        shown.update({"text/html": FINISHED, "text/plain": ""}, raw=True)


@contextmanager
def progress_bars(console: Console) -> Iterator[Update]:
    """Yield a function that shows progress: call it with a step, the amount done, and the total (0 if not known).

    On a terminal or in a notebook it draws a bar, which pulses if the total is not known. Elsewhere it prints a line
    for each step.
    """
    if console.is_jupyter:
        with _notebook_bar() as bar:
            yield bar
        return
    shows_bars = console.is_terminal
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
