"""`headscope atlas`: everything that a corpus allows, into a folder."""

from pathlib import Path
from typing import Annotated

from headscope.cli import options
from headscope.cli.options import option
from headscope.cli.terminal import console, print_written, show_progress


def atlas(
    model: options.Model = "minilm",
    corpus: options.Corpus = "grammar",
    out: Annotated[Path, option("Folder to write. Default: headscope-atlas.", "--out", "-o")] = Path("headscope-atlas"),
    format: options.Format = None,
    patterns: options.PatternFile = None,
    device: options.Device = "cpu",
    seed: Annotated[int, option("Random seed of the untrained model. Default: 0.")] = 0,
    max_tokens: options.MaxTokens = None,
    cut: options.Cut = None,
    pair_tokens: options.PairTokens = None,
    batch_tokens: options.BatchTokens = None,
    reducers: Annotated[
        list[str] | None,
        option("Your own reducer to measure too, as module:Reducer; may be repeated.", "--reducer", "-r"),
    ] = None,
    replicate: options.Replicate = None,
    permutations: Annotated[
        int | None,
        option(
            "Number of permutations for the p-values; 0 skips them. Default: as many as the number of rows needs, "
            "999 at least.",
            min=0,
        ),
    ] = None,
    trust_remote_code: options.Trust = False,
    resume: options.Resume = False,
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
            replicate=replicate, permutations=permutations, trust_remote_code=trust_remote_code, resume=resume,
            progress=progress,
        )  # fmt: skip
    print_table(result.table, console)
    print_written("Open", result.folder / "atlas.html", len(result.files))
