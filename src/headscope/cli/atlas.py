"""`headscope atlas`: everything that a corpus allows, into a folder."""

from pathlib import Path
from typing import Annotated

from rich.markup import escape

from headscope.cli.options import (
    BatchTokens,
    CorpusName,
    Cut,
    Device,
    Format,
    MaxTokens,
    Model,
    PairTokens,
    PatternFile,
    Resume,
    Trust,
    option,
)
from headscope.cli.terminal import console, show_progress


def atlas(
    model: Model = "minilm",
    corpus: CorpusName = "grammar",
    out: Annotated[Path, option("Folder to write. Default: headscope-atlas.", "--out", "-o")] = Path("headscope-atlas"),
    format: Format = None,
    patterns: PatternFile = None,
    device: Device = "cpu",
    seed: Annotated[int, option("Random seed of the untrained model. Default: 0.")] = 0,
    max_tokens: MaxTokens = None,
    cut: Cut = None,
    pair_tokens: PairTokens = None,
    batch_tokens: BatchTokens = None,
    reducers: Annotated[
        list[str] | None,
        option("Your own reducer to measure too, as module:Reducer; may be repeated.", "--reducer", "-r"),
    ] = None,
    permutations: Annotated[
        int, option("Number of permutations for the p-values; 0 skips them. Default: 999.", min=0)
    ] = 999,
    trust_remote_code: Trust = False,
    resume: Resume = False,
) -> None:
    """Measure everything that the annotation of a corpus allows, with controls, and write tables, figures and a page.

    Without arguments: minilm on the generated sentences of grammar.
    """
    from headscope.jobs.atlas import atlas as run
    from headscope.view.terminal import print_table

    with show_progress() as progress:
        result = run(
            model, corpus, out, format=format, patterns=patterns, device=device, seed=seed, max_tokens=max_tokens,
            cut=cut, pair_tokens=pair_tokens, batch_tokens=batch_tokens, reducers=reducers or (),
            permutations=permutations,
            trust_remote_code=trust_remote_code, resume=resume, progress=progress,
        )  # fmt: skip
    print_table(result.table, console)
    page, folder = escape(str(result.folder / "atlas.html")), escape(str(result.folder))
    console.print(f"\nOpen [bold]{page}[/]; {len(result.files)} files in {folder}.", soft_wrap=True)
