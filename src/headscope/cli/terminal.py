"""The terminal output of commands: results go to standard output, progress and errors to standard error."""

import gc
import io
import signal
import sys
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Timer
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from headscope.view.progress_display import progress_bars

if TYPE_CHECKING:
    from headscope.commands.progress import Progress

# Rich would replace text such as :100: in the names of corpora and relations with an emoji.
console = Console(emoji=False)
errors = Console(stderr=True, emoji=False)


class Terminated(KeyboardInterrupt):
    """The interruption of a process by SIGTERM, for example because a batch job has used up its time."""


def prepare_terminal() -> None:
    """Treat SIGTERM as an interruption, and replace characters that the terminal cannot print by question marks."""

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


@contextmanager
def repeat_ignored_interruptions() -> Iterator[None]:
    """In the block, repeat an interruption that Python ignores.

    Python ignores it, for example, in a callback of the garbage collector.
    """
    before = sys.unraisablehook

    def repeat(ignored: "sys.UnraisableHookArgs") -> None:
        if isinstance(ignored.exc_value, KeyboardInterrupt):
            number = signal.SIGTERM if isinstance(ignored.exc_value, Terminated) else signal.SIGINT
            Timer(0.05, interrupt_main, (number,)).start()
        else:
            before(ignored)

    sys.unraisablehook = repeat
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextmanager
def collect_rarely() -> Iterator[None]:
    """In the block, run full garbage collections a hundred times less often.

    A full collection visits all objects of torch and transformers: eight collections in `measure` took 0.9 s and freed
    a few dozen objects. New objects are collected as often as before. Only commands do this: as a library, headscope
    does not change the garbage collector of its host.
    """
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, 100 * old)
    try:
        yield
    finally:
        gc.set_threshold(young, middle, old)


@contextmanager
def show_progress(*, resumable: bool = True) -> Iterator["Progress"]:
    """Yield a function that shows progress on the terminal.

    After an interruption in the block, the command exits; if the job is resumable, the message says how to continue.
    """
    try:
        with progress_bars(errors) as progress:
            yield progress
    except KeyboardInterrupt as interruption:
        raise typer.Exit(report_interruption(interruption, resumable=resumable)) from None


def report_interruption(interruption: KeyboardInterrupt, *, resumable: bool = False) -> int:
    """Print that the command was interrupted and, if it is resumable, how to continue.

    Returns:
        The exit code: 143 after SIGTERM, else 130.
    """
    advice = "; add --resume to the same command to continue" if resumable else ""
    errors.print(f"headscope: interrupted{advice}.", soft_wrap=True)
    return 143 if isinstance(interruption, Terminated) else 130


@contextmanager
def show_progress_around(
    print_result: Callable[[Any], None], *, resumable: bool
) -> Iterator[tuple["Progress", Callable[[Any], None]]]:
    """Yield a function that shows progress, and a function that prints a result above the progress.

    The progress continues below the result.
    """
    with ExitStack() as bars:
        steps = [bars.enter_context(show_progress(resumable=resumable))]

        def show(result: Any) -> None:
            bars.close()
            print_result(result)
            steps.append(bars.enter_context(show_progress(resumable=resumable)))

        yield (lambda step, done, total: steps[-1](step, done, total)), show
