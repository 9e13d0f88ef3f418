"""`headscope atlas`: everything that a corpus allows, into a folder."""

from pathlib import Path
from typing import Annotated

from headscope.cli import options
from headscope.cli.options import option
from headscope.cli.terminal import console, print_written, show_progress_around


def atlas(
    model: options.Model = "minilm",
    corpus: options.Corpus = "grammar:300",
    out: Annotated[Path, option("Folder to write. Default: headscope-atlas.", "--out", "-o")] = Path("headscope-atlas"),
    format: options.Format = None,
    patterns: options.PatternFile = None,
    limit: options.Limit = None,
    sample: options.Sample = None,
    device: options.Device = "cpu",
    seed: Annotated[int, option("Random seed of the untrained model and of --sample. Default: 0.")] = 0,
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
    figures: Annotated[
        str,
        option("Rows of which there are heatmaps: reported (the most frequent ones with a reported head), all, or "
               "none, which draws no figure at all. Default: reported."),
    ] = "reported",
    trust_remote_code: options.Trust = False,
    resume: options.Resume = False,
) -> None:  # fmt: skip
    """Measure everything that the annotation of a corpus allows, with controls, and write tables, figures and a page.

    Without arguments: minilm on 300 generated sentences.
    """
    from headscope.jobs.arguments import check_corpora, check_figures, check_model, check_reducers

    check_figures(figures)
    check_reducers(reducers or ())
    check_corpora(corpus, replicate, format=format, limit=limit, sample=sample, seed=seed)
    check_model(model)
    from headscope.jobs.atlas import atlas as run
    from headscope.view.terminal import print_table

    with show_progress_around(lambda table: print_table(table, console)) as (progress, show):
        result = run(
            model, corpus, out, format=format, patterns=patterns, limit=limit, sample=sample, device=device, seed=seed,
            max_tokens=max_tokens, cut=cut, pair_tokens=pair_tokens, batch_tokens=batch_tokens, reducers=reducers or (),
            replicate=replicate, permutations=permutations, figures=figures, trust_remote_code=trust_remote_code,
            resume=resume, show=show, progress=progress,
        )  # fmt: skip
    print_written("Open", result.folder / "atlas.html", len(result.files))
