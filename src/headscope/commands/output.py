"""The options for the output of a command, and the checks of its folder or file before any work is done."""

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
"""The name of the subfolder of a results folder that holds the figures."""

PDF_HELP = "Draw the figures as PDF too, for a paper."


@dataclass(frozen=True)
class Contents:
    """The files of a folder of results.

    Attributes:
        name: The name of the results in messages, such as ``the alignment``.
        manifest: The name of the file that lists the others.
        tables: The names of the head tables that are measured for the results, whose sums are kept for resuming.
        others: Further file names that are known in advance, so that a file of the user's with such a name is found
            before any work is done.
    """

    name: str
    manifest: str
    tables: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


class Resumable(Options):
    """The option to continue a killed command."""

    resume: bool = option(
        OUTPUT,
        "Continue a killed run with the same arguments.",
        default=False,
        unset="start again",
        recorded=False,
        basic=True,
    )


class Drawing(Options):
    """The options for figures, which take longer to draw than all other results take to write."""

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
        """Whether figures are requested."""
        return self.figures or self.pdf

    def hand_over(self, result: Any) -> None:
        """Pass a result that is written to the function `show`, if the request has one."""
        if self.show is not None:
            self.show(result)


class Listing(Options):
    """The option for printing all results, and not only a part."""

    whole: bool = option(
        OUTPUT,
        "Print all rows and notes, and not only what was found and the first rows.",
        "--table",
        default=False,
        in_python=False,
        recorded=False,
    )


class WritesFolder(Protocol):
    """A request whose results are written to a folder."""

    @property
    def contents(self) -> Contents:
        """The files of the folder."""

    @property
    def out(self) -> str | Path | None:
        """The folder; None if nothing is written."""


@contextmanager
def open_folder(request: WritesFolder, progress: Progress) -> Iterator["OutputFolder"]:
    """Yield the output folder of a request, reserved for this command; without `out`, a temporary folder.

    Results are not kept in a temporary folder.
    """
    with ExitStack() as opened:
        path = opened.enter_context(TemporaryDirectory()) if request.out is None else request.out
        yield opened.enter_context(_make_folder(request, Path(path), progress))


def check_folder(request: WritesFolder) -> None:
    """Raise an error for an output folder that cannot be used.

    Raises:
        HeadscopeError: The folder is a file, cannot be written to, or holds a file of the name of an output file that
            headscope did not write; another command is writing to it; or `resume` is set and no folder is named.
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
    """Raise an error for an output file that cannot be written.

    Raises:
        HeadscopeError: It is a folder or a file that headscope did not write, its folder cannot be written to, or
            another command is writing it.
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
