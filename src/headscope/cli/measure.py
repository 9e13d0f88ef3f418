"""`headscope measure`: a head table of the reducers that are named."""

from pathlib import Path
from typing import Annotated

from rich.markup import escape

from headscope.cli import options
from headscope.cli.options import option
from headscope.cli.terminal import console, show_progress


def measure(
    model: options.Model,
    corpus: options.Corpus,
    reducers: Annotated[
        list[str], option("What to measure (see `headscope list reducers`); may be repeated.", "--reducer", "-r")
    ],
    out: Annotated[Path, option("NetCDF file to write. Default: heads.nc.", "--out", "-o")] = Path("heads.nc"),
    format: options.Format = None,
    patterns: options.PatternFile = None,
    limit: options.Limit = None,
    sample: options.Sample = None,
    seed: Annotated[int, option("Random seed of --sample. Default: 0.")] = 0,
    runs: Annotated[
        Path | None,
        option("Folder of runs that were tuned from MODEL: each run is measured instead of the model. Default: none."),
    ] = None,
    device: options.Device = "cpu",
    max_tokens: options.MaxTokens = None,
    cut: options.Cut = None,
    pair_tokens: options.PairTokens = None,
    batch_tokens: options.BatchTokens = None,
    replicate: options.Replicate = None,
    permutations: Annotated[
        int | None,
        option(
            "Number of permutations for the p-values; 0 skips them. Default: as many as the number of rows needs, "
            "999 at least, and 0 with --runs.",
            min=0,
        ),
    ] = None,
    trust_remote_code: options.Trust = False,
    resume: options.Resume = False,
    offset: Annotated[
        list[int] | None,
        option("For the reducer surface: another distance to measure, in tokens; -2 is two tokens before."),
    ] = None,
    words: Annotated[
        list[str] | None,
        option("For the reducer surface: a class of words, as NAME=WORD,WORD such as no=not,n't,never.", "--class"),
    ] = None,
    explain: Annotated[
        bool, option("Print for each layer how its attention was computed, and why. Default: no.", "--explain")
    ] = False,
) -> None:
    """Measure every head of a model with one or more reducers, and write a head table."""
    from headscope.jobs.arguments import check_corpora, check_model, check_reducers

    check_reducers(reducers)
    check_corpora(corpus, replicate, format=format, limit=limit, sample=sample, seed=seed)
    check_model(model)
    from headscope.jobs.inputs import add_offsets_and_classes
    from headscope.jobs.measure import measure as run
    from headscope.view.terminal import print_paths, print_table

    with show_progress() as progress:
        table = run(
            model, corpus, add_offsets_and_classes(reducers, offset or [], words or []), out=out, format=format,
            patterns=patterns, limit=limit, sample=sample, seed=seed, runs=runs, device=device, max_tokens=max_tokens,
            cut=cut, pair_tokens=pair_tokens, batch_tokens=batch_tokens, replicate=replicate,
            permutations=permutations, trust_remote_code=trust_remote_code, resume=resume, progress=progress,
        )  # fmt: skip
    print_table(table, console)
    if explain:
        print_paths(table, console)
    console.print(f"\nWrote {escape(str(out))}.", soft_wrap=True)
