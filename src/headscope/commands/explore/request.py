"""The request of `headscope explore`."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.commands.atlas.atlas_result import TABLE, AtlasResult, refuse_incomplete
from headscope.commands.function import make_function
from headscope.commands.model_options import RunOptions, check_model
from headscope.commands.option import MODEL, OUTPUT, argument, option
from headscope.commands.option_groups import TEXTS_IN_MEMORY
from headscope.commands.progress import Progress
from headscope.commands.record import HeadTable, Request

if TYPE_CHECKING:
    from headscope.capture.open.loading import Loadable
    from headscope.commands.explore.run import Explorer
else:
    Explorer = "Explorer"


class Explore(RunOptions, Request[Explorer], command="explore"):
    """Serve the page of an atlas, where you can type a text and see the attention of every head on it.

    The page is for a browser on this machine alone; its address has a token that no other page knows. Ctrl-C ends it.

    Returns:
        The explorer, which serves until it is closed. In a notebook it shows the page itself, without the texts that
        you type.
    """

    usage = ("headscope explore minilm", "headscope explore atlas --port 8765")
    example = ('with headscope.explore("atlas", no_browser=True) as explorer:', "    print(explorer.address)")
    source: "Loadable | str | Path | AtlasResult | HeadTable" = argument(
        "SOURCE",
        "Folder that `headscope atlas` wrote, or its heads.nc; or a model such as minilm, of which an atlas is made "
        "first.",
        default="minilm",
        kw_only=False,
        typed=str,
        python="Or what `headscope.atlas` returned, a head table, or a loaded model.",
    )
    corpus: str | Path | Iterable[Any] = argument(
        "CORPUS",
        "For a model: file or folder such as en_ewt-ud-dev.conllu, or grammar:COUNT, on which its heads are measured.",
        default="grammar:100",
        kw_only=False,
        typed=str,
        python=TEXTS_IN_MEMORY,
    )
    start: str | None = option(
        MODEL,
        "Token with which the texts that you type begin, such as <|endoftext|>, of a decoder.",
        default=None,
        unset="what its tokenizer puts there, or what it was trained with, where that is known",
        metavar="TOKEN",
    )
    model: "Loadable | None" = option(
        MODEL,
        "For an atlas: its model, such as models/bert, where that lies elsewhere now. Its weights must be those of the "
        "atlas.",
        default=None,
        unset="the model that the atlas names",
        metavar="MODEL",
        typed=str,
        basic=True,
    )
    port: int = option(
        OUTPUT, "Port of the page, such as 8765.", default=0, unset="0, a free one", at_least=0, basic=True
    )
    no_browser: bool = option(
        OUTPUT,
        "Print the address of the page and open no browser.",
        default=False,
        unset="open it",
        basic=True,
    )

    def check(self, progress: Progress) -> None:
        """Raise an error if the argument is neither an atlas nor a model, or the corpus is missing."""
        from headscope.corpora import read

        check_model(self.model)
        path = Path(self.source) if isinstance(self.source, str | Path) else None
        if path is not None and path.suffix != ".nc" and not (path / TABLE).is_file():
            refuse_incomplete(path)
            check_model(self.source)
            read(self.corpus)


explore = make_function(Explore)
