"""`headscope explore`: the page of an atlas on this machine, with the model behind it."""

from typing import Annotated

from headscope.cli import options
from headscope.cli.options import MODEL, OUTPUT, argument, option
from headscope.cli.terminal import LOADING, console, show_progress


def explore(
    source: Annotated[
        str,
        argument("SOURCE", "Folder that `headscope atlas` wrote, or its heads.nc; or a model such as minilm, of which "
                 "an atlas is made first. Default: minilm."),
    ] = "minilm",
    corpus: Annotated[
        str,
        argument("CORPUS", "For a model: file or folder such as en_ewt-ud-dev.conllu, or grammar:COUNT, on which its "
                 "heads are measured. Default: grammar:100."),
    ] = "grammar:100",
    model: Annotated[
        str | None,
        option(MODEL, "For an atlas: its model, such as models/bert, where that lies elsewhere now. Default: the model "
               "that the atlas names.", metavar="MODEL"),
    ] = None,
    start: options.Start = None,
    trust_remote_code: options.Trust = False,
    port: Annotated[
        int, option(OUTPUT, "Port of the page, such as 8765. Default: 0, a free one.", metavar="N", min=0, max=65535)
    ] = 0,
    no_browser: Annotated[
        bool, option(OUTPUT, "Print the address of the page and open no browser. Default: open it.", "--no-browser")
    ] = False,
    device: options.Device = "cpu",
) -> None:  # fmt: skip
    """Serve the page of an atlas, where you can type a text and see the attention of every head on it.

    The page is for a browser on this machine alone; its address has a token that no other page knows. Ctrl-C ends it.
    """
    with show_progress(resumable=False) as progress:
        progress(LOADING, 0, 0)
        from headscope.jobs.explore import explore as run

        explorer = run(
            source, corpus, model=model, start=start, port=port, no_browser=no_browser, device=device,
            trust_remote_code=trust_remote_code, progress=progress,
        )  # fmt: skip
    for note in explorer.notes:
        console.print(note, soft_wrap=True, markup=False, highlight=False, style="yellow")
    console.print(f"Open {explorer.address} (Ctrl-C ends).", soft_wrap=True, markup=False, highlight=False)
    explorer.wait()
