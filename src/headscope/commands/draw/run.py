"""The figures of an atlas, drawn from its tables, for its page or for a separate folder."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape

from headscope.commands.atlas.atlas_figures import draw_page_figures, list_atlas_figures
from headscope.commands.atlas.atlas_result import ATLAS_FOLDER, AtlasResult
from headscope.commands.draw.request import Draw
from headscope.commands.folder import OutputFolder
from headscope.commands.output import FIGURES, open_folder
from headscope.commands.progress import Progress
from headscope.errors import HeadscopeError, TableError, suggest


def run(request: Draw, progress: Progress) -> tuple[str, ...]:
    """Draw figures of an atlas, and return the names of the files.

    Raises:
        HeadscopeError: A requested figure does not exist.
        TableError: A table is damaged, or the atlas has nothing that a figure shows.
    """
    progress("reading the atlas", 0, 0)
    atlas = AtlasResult.read(request.source)
    if request.out is None:
        with OutputFolder(ATLAS_FOLDER, Path(request.source), progress=progress) as folder:
            return draw_page_figures(folder, atlas, pdf=request.pdf)
    figures = dict(list_atlas_figures(atlas).values())
    if not figures:
        raise TableError(
            f"{request.source} has nothing that the figures of an atlas show; other commands draw theirs when they are "
            "run with `--figures`."
        )
    for name in request.figures:
        if name not in figures:
            raise HeadscopeError(
                f"there is no figure {name!r}{suggest(name, figures)}; this atlas has {', '.join(figures)}."
            )
    chosen = {name: figures[name] for name in request.figures or figures}
    with open_folder(request, progress) as folder:
        folder.write({}, {"source": str(request.source)})
        return folder.draw(chosen, pdf=request.pdf, bare=request.bare)


def show(request: Draw, files: tuple[str, ...], console: Console) -> None:
    """Print the number of figures that were drawn, and their folder."""
    count = len({Path(name).stem for name in files if name.startswith(f"{FIGURES}/")})
    folder = Path(request.source if request.out is None else request.out) / FIGURES
    page = ", and on the page" if request.out is None else ""
    console.print(
        f"{count} figure{'s are' if count != 1 else ' is'} drawn, in {escape(str(folder))}{page}.",
        soft_wrap=True,
        highlight=False,
    )
