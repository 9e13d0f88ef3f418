"""The output of a command, a folder or a file: checked before any work is done, and reserved while it is written."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

from headscope.commands.option import OUTPUT, option
from headscope.commands.progress import Progress, ignore_progress
from headscope.commands.record import Options
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    from headscope.commands.folder import OutputFolder


FIGURES = "figures"
"""The folder of the figures within that of the results."""

PDF_HELP = "Draw the figures as PDF too, for a paper."


@dataclass(frozen=True)
class Contents:
    """The files of a folder of results.

    Attributes:
        name: what messages call them, such as ``the alignment``.
        manifest: the file that lists the others.
        tables: the head tables that are measured for it, whose sums are kept for resuming.
        others: further files whose names are known beforehand: a file of the user's is seen before any work is done.
    """

    name: str
    manifest: str
    tables: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


class Resumable(Options):
    """Going on with a killed run."""

    resume: bool = option(
        OUTPUT,
        "Continue a killed run with the same arguments.",
        default=False,
        unset="start again",
        recorded=False,
        basic=True,
    )


class Drawing(Options):
    """Figures of the results, which take longer to draw than all else takes to write."""

    figures: bool = option(
        OUTPUT, "Draw figures too, into figures/ in the folder.", default=False, unset="none", recorded=False
    )
    pdf: bool = option(
        OUTPUT,
        PDF_HELP,
        default=False,
        unset="PNG and SVG, with `figures`",
        recorded=False,
    )
    show: "Callable[[Any], None] | None" = option(
        OUTPUT,
        "Called with the result once it is written, before the figures are drawn; of an atlas also before, when its "
        "page is there and the untrained model is not yet measured.",
        default=None,
        on_terminal=False,
        recorded=False,
    )

    @property
    def has_figures(self) -> bool:
        """True where figures are asked for."""
        return self.figures or self.pdf

    def hand_over(self, result: Any) -> None:
        """Show a result that is written, if anybody wants to see it."""
        if self.show is not None:
            self.show(result)


class Listing(Options):
    """The part of the results that is printed."""

    whole: bool = option(
        OUTPUT,
        "Print all rows and notes, and not only what was found and the first rows.",
        "--table",
        default=False,
        in_python=False,
        recorded=False,
    )


class WritesFolder(Protocol):
    """A request whose results are a folder."""

    @property
    def contents(self) -> Contents:
        """The files of the folder."""

    @property
    def out(self) -> str | Path | None:
        """The folder; None if nothing is to be written."""


@contextmanager
def open_folder(request: WritesFolder, progress: Progress) -> Iterator["OutputFolder"]:
    """Yield the folder `out`, which no other command writes to meanwhile; without `out`, one that is not kept."""
    with ExitStack() as opened:
        path = opened.enter_context(TemporaryDirectory()) if request.out is None else request.out
        yield opened.enter_context(_make_folder(request, Path(path), progress))


def check_folder(request: WritesFolder) -> None:
    """Raise an error for a folder that cannot be written.

    Raises:
        HeadscopeError: it is a file, cannot be written to, or has a file of the name of the manifest that headscope did
            not write; another command is writing to it; or no folder is named that could be continued.
    """
    if request.out is not None:
        from headscope.files import LOCK, reserve

        folder = _make_folder(request, Path(request.out), ignore_progress)
        folder.check()
        with reserve(folder.path, folder.path / LOCK):
            pass
    elif _is_resumed(request):
        raise HeadscopeError("`resume` continues a folder, and none is named; name it as `out`.")


def check_file(out: Path) -> None:
    """Raise an error for a file that cannot be written.

    Raises:
        HeadscopeError: it is a folder or a file of the user's, its folder cannot be written to, or another command is
            writing it.
    """
    from headscope.files import reserve, writable
    from headscope.own_files import refuse_foreign

    writable(out)
    refuse_foreign(out)
    with reserve(out, out.with_name(f".{out.name}.lock")):
        pass


def _make_folder(request: WritesFolder, path: Path, progress: Progress) -> "OutputFolder":
    from headscope.commands.folder import OutputFolder

    return OutputFolder(request.contents, path, _is_resumed(request), progress, kept=request.out is not None)


def _is_resumed(request: WritesFolder) -> bool:
    return isinstance(request, Resumable) and request.resume
