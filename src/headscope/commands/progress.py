"""The progress that a job shows when it is called from Python."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import ParamSpec, TypeVar

from rich.console import Console

from headscope.view.progress import progress_bars

P = ParamSpec("P")
R = TypeVar("R")

Progress = Callable[[str, int, int], None]
"""Called with the name of a step, how much of it is done and how much there is (0 if not known)."""


def ignore_progress(step: str, done: int, total: int) -> None:
    """Show nothing."""


def shows_progress(job: Callable[P, R]) -> Callable[P, R]:
    """The same job, whose argument ``progress`` need not be a function.

    True shows the progress, False shows none, and None, which is the default, shows it on a terminal and in a notebook.
    """

    @wraps(job)
    def run(*arguments: P.args, **named: P.kwargs) -> R:
        progress, console = named.get("progress"), Console(stderr=True)
        if progress is None:
            progress = console.is_terminal or console.is_jupyter
        with nullcontext(ignore_progress) if callable(progress) or not progress else progress_bars(console) as shown:
            named["progress"] = progress if callable(progress) else shown
            return job(*arguments, **named)

    return run
