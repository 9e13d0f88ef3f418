"""`headscope atlas`: everything that a corpus allows, into a folder."""

from pathlib import Path
from typing import Annotated, Any

from headscope.cli import options
from headscope.cli.options import MEASURED, OUTPUT, option
from headscope.cli.terminal import LOADING, console, print_written, show_progress_around


def atlas(
    model: options.Model = "minilm",
    corpus: options.Corpus = "grammar:300",
    format: options.Format = None,
    limit: options.Limit = None,
    sample: options.Sample = None,
    seed: Annotated[
        int,
        option(options.CORPUS, "Random seed of --sample and of the untrained model, such as 7. Default: 0.",
               metavar="N"),
    ] = 0,
    patterns: options.PatternFile = None,
    hops: options.Hops = 1,
    max_tokens: options.MaxTokens = None,
    cut: options.Cut = None,
    pair_tokens: options.PairTokens = None,
    trust_remote_code: options.Trust = False,
    reducers: Annotated[
        list[str] | None,
        option(MEASURED, "A reducer to measure too, such as map_patterns, or your own, such as repetition:Repetition "
               "(module:Reducer); may be repeated. Default: none.", "--reducer", "-r", metavar="NAME"),
    ] = None,
    replicate: options.Replicate = None,
    permutations: Annotated[
        int | None,
        option(MEASURED, "Number of permutations for the p-values, such as 1999; 0 skips them. Default: as many as the "
               "number of rows needs, 999 at least.", metavar="N", min=0),
    ] = None,
    views: Annotated[
        list[str] | None,
        option(MEASURED, "What to measure beside the weights, such as norm (`headscope measure --view`), to which the "
               "grid of the page can be switched; may be repeated. Default: none.", "--view", metavar="NAME"),
    ] = None,
    effects: Annotated[
        Path | None,
        option(MEASURED, "Folder that `headscope disable` wrote of this model, such as effects: the page says which "
               "heads are needed. Default: none.", metavar="FOLDER"),
    ] = None,
    probe: Annotated[
        Path | None,
        option(MEASURED, "Folder that `headscope probe` wrote of this model, such as headscope-probe: the page shows "
               "what all heads together know. Default: none.", metavar="FOLDER"),
    ] = None,
    map_documents: Annotated[
        int,
        option(MEASURED, "Random documents on which all heads are compared with one another for the map of heads, such "
               "as 300; 0 for no map. Default: 100.", metavar="N", min=0),
    ] = 100,
    examples: Annotated[
        int,
        option(MEASURED, "Texts that stand on the page with the attention of all heads, such as 20; 0 for none. "
               "Default: 50.", metavar="N", min=0),
    ] = 50,
    out: Annotated[
        Path, option(OUTPUT, "Folder to write, such as ewt. Default: headscope-atlas.", "--out", "-o", metavar="FOLDER")
    ] = Path("headscope-atlas"),
    figures: Annotated[
        str,
        option(OUTPUT, "Rows of which there are heatmaps: reported (the most frequent ones with a reported head), all, "
               "or none, which draws no figure at all. Default: reported.", metavar="ROWS"),
    ] = "reported",
    pdf: Annotated[
        bool, option(OUTPUT, "Write the figures as PDF too, for a paper. Default: PNG and SVG.", "--pdf")
    ] = False,
    resume: options.Resume = False,
    device: options.Device = "cpu",
    batch_tokens: options.BatchTokens = None,
) -> None:  # fmt: skip
    """Measure all that the annotation of a corpus allows, with controls, into a folder with a page to open.

    The folder holds atlas.html (open this), heads.nc (the head table), untrained.nc (the same of the untrained model),
    head-distances.nc, examples.nc, figures/, tables/ (CSV) and manifest.json; with --replicate also replication.nc and
    untrained-replication.nc, with --view norm also heads-norm.nc.

    Without arguments: minilm on 300 generated sentences.
    """
    from headscope.jobs.arguments import (
        check_corpora,
        check_figures,
        check_model,
        check_output_folder,
        check_reducers,
        check_views,
        open_effects,
        open_probes,
    )

    check_figures(figures)
    check_views(views or ())
    check_reducers(reducers or ())
    check_corpora(corpus, replicate, patterns=patterns, format=format, hops=hops, limit=limit, sample=sample, seed=seed)
    check_model(model)
    disabled, probes = open_effects(effects), open_probes(probe)
    with show_progress_around(_print_table) as (progress, show):
        progress(LOADING, 0, 0)
        check_output_folder(out, "the atlas", "manifest.json")
        from headscope.jobs.atlas import atlas as run

        result = run(
            model, corpus, out, format=format, patterns=patterns, hops=hops, limit=limit, sample=sample, device=device,
            seed=seed, max_tokens=max_tokens, cut=cut, pair_tokens=pair_tokens, batch_tokens=batch_tokens,
            reducers=reducers or (), replicate=replicate, permutations=permutations, views=views or (),
            effects=disabled, probe=probes, map_documents=map_documents, examples=examples, figures=figures, pdf=pdf,
            trust_remote_code=trust_remote_code, resume=resume, show=show, progress=progress,
        )  # fmt: skip
    print_written("Open", result.folder / "atlas.html", len(result.files))


def _print_table(table: Any) -> None:
    from headscope.view.terminal import print_table

    print_table(table, console)
