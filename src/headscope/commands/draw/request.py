"""The request of `headscope draw`."""

from collections.abc import Sequence
from pathlib import Path

from headscope.commands.atlas.atlas_result import TABLE, refuse_incomplete
from headscope.commands.function import make_function
from headscope.commands.option import OUTPUT, argument, option, output_folder
from headscope.commands.output import PDF_HELP, Contents, check_folder
from headscope.commands.progress import Progress
from headscope.commands.record import Request
from headscope.errors import HeadscopeError


class Draw(Request[tuple[str, ...]], command="draw", loading="loading matplotlib"):
    """Draw the figures of an atlas from its tables, without the model.

    The figures are written to figures/ in the folder of the atlas, and its page shows them. With `out` they are written
    to another folder, such as that of a paper, and the atlas stays as it is.

    Returns:
        The files that were written, relative to the folder.
    """

    contents = Contents("the figures", "figures.json")
    usage = ("headscope draw atlas", "headscope draw atlas --figure relation-reported --bare --pdf -o paper")
    example = ('files = headscope.draw("atlas", out="paper", figures="relation-reported")',)
    source: str | Path = argument(
        "ATLAS", "Folder of an atlas, or a head table such as heads.nc (with `out`).", kw_only=False, typed=Path
    )
    out: str | Path | None = output_folder("paper", kw_only=True, default=None, unset="that of the atlas")
    figures: str | Sequence[str] = option(
        OUTPUT,
        "Name of a figure to draw, such as relation-reported; may be repeated; needs `out`.",
        "--figure",
        default=(),
        unset="all figures",
        metavar="NAME",
        basic=True,
    )
    bare: bool = option(
        OUTPUT,
        "Draw without the title above and the line below, for a paper that has its own captions, with `out`.",
        default=False,
        basic=True,
    )
    pdf: bool = option(OUTPUT, PDF_HELP, default=False, unset="PNG and SVG", basic=True)

    def check(self, progress: Progress) -> None:
        """Raise an error for a missing atlas, options that need `out`, or a folder that cannot be used.

        Raises:
            HeadscopeError: There is no atlas; `figures`, `bare` or a single table is given without `out`; or the folder
                cannot be written to.
        """
        from headscope.files import suggest_path

        source = Path(self.source)
        refuse_incomplete(source)
        if not (source.is_file() or (source / TABLE).is_file()):
            raise HeadscopeError(
                f"there is no atlas in {source}{suggest_path(source)}; give a folder that `headscope atlas` wrote. "
                "Other commands draw figures when they are run with `--figures`."
            )
        if self.out is not None:
            check_folder(self)
        elif self.figures or self.bare or source.is_file():
            raise HeadscopeError(
                "the page of an atlas shows all figures with their titles; name a folder as `out` to draw some, to "
                "draw them with `bare`, or to draw those of a table."
            )


draw = make_function(Draw)
