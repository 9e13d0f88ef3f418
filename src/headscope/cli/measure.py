"""`headscope measure`: a head table of the reducers that are named."""

from pathlib import Path
from typing import Annotated, Any

from rich.markup import escape

from headscope.cli import options
from headscope.cli.options import CORPUS, MEASURED, MODEL, OUTPUT, option
from headscope.cli.terminal import LOADING, console, show_progress


def measure(
    model: options.Model,
    corpus: options.Corpus,
    reducers: Annotated[
        list[str],
        option(MEASURED, "What to measure, such as relations (`headscope list reducers`); may be repeated. Required.",
               "--reducer", "-r", metavar="NAME"),
    ],
    offset: Annotated[
        list[int] | None,
        option(MEASURED, "For the reducer surface: another distance to measure, in tokens, such as -2 for two tokens "
               "before; may be repeated. Default: none.", metavar="N"),
    ] = None,
    words: Annotated[
        list[str] | None,
        option(MEASURED, "For the reducer surface: a class of words, as NAME=WORD,WORD such as no=not,n't,never; may "
               "be repeated. Default: none.", "--class", metavar="CLASS"),
    ] = None,
    replicate: options.Replicate = None,
    permutations: Annotated[
        int | None,
        option(MEASURED, "Number of permutations for the p-values, such as 1999; 0 skips them. Default: as many as the "
               "number of rows needs, 999 at least, and 0 with --runs.", metavar="N", min=0),
    ] = None,
    view: Annotated[
        str | None,
        option(MEASURED, "What to measure in place of the weights, such as norm (the share of what flows from each "
               "token); also gradient, gradient-x-attention, rollout, rollout-without-sink and value-zeroing. "
               "Default: the weights.",
               metavar="NAME"),
    ] = None,
    sample_queries: Annotated[
        int | None,
        option(MEASURED, "Estimate the statistics of long texts from about so many of their tokens as queries, at "
               "random, such as 256: nearly at the cost of the model alone, and with an interval for each value. "
               "Default: all tokens.", metavar="N", min=32),
    ] = None,
    format: options.Format = None,
    limit: options.Limit = None,
    sample: options.Sample = None,
    seed: Annotated[
        int, option(options.CORPUS, "Random seed of --sample and --sample-queries, such as 7. Default: 0.", metavar="N")
    ] = 0,
    patterns: options.PatternFile = None,
    hops: options.Hops = 1,
    shard: Annotated[
        str | None,
        option(CORPUS, "Measure one shard of the corpus, such as 2/8 for the second of eight; `headscope merge` joins "
               "the files of all shards. Default: the whole corpus.", metavar="K/N"),
    ] = None,
    max_tokens: options.MaxTokens = None,
    cut: options.Cut = None,
    pair_tokens: options.PairTokens = None,
    runs: Annotated[
        Path | None,
        option(MODEL, "Folder of runs that were tuned from MODEL, such as headscope-runs: each run is measured instead "
               "of the model. Default: none.", metavar="FOLDER"),
    ] = None,
    task: Annotated[
        str | None,
        option(MODEL, "Task head of whose loss the gradients are (the reducer and the views), such as causal-lm; also "
               "masked-lm, classification, tagging. Default: the head that the weights have.", metavar="TASK"),
    ] = None,
    trust_remote_code: options.Trust = False,
    out: Annotated[
        Path | None,
        option(OUTPUT, "File to write, such as before.nc. Default: heads.nc, or heads.2-of-8.npz for a shard.", "--out",
               "-o", metavar="FILE"),
    ] = None,
    explain: Annotated[
        bool,
        option(OUTPUT, "Print for each layer how its attention was computed, and why. Default: no.", "--explain"),
    ] = False,
    resume: options.Resume = False,
    device: options.Device = "cpu",
    batch_tokens: options.BatchTokens = None,
    engine: Annotated[
        str,
        option(options.SPEED, "Who measures: local, or ray for the workers of a Ray cluster (extra `ray`), the one "
               "that RAY_ADDRESS names or one that is started on this machine. Default: local.", metavar="NAME"),
    ] = "local",
    workers: Annotated[
        int | None,
        option(options.SPEED, "Number of workers on Ray, such as 4; each loads the model. Default: one for each core, "
               "or for each GPU with --device cuda.", metavar="N"),
    ] = None,
) -> None:  # fmt: skip
    """Measure every head of a model with one or more reducers, into one file.

    The file is a head table in netCDF (heads.nc), which `headscope compare` and `headscope.read_table` read. With
    --shard it holds the sums over a part of the corpus, which `headscope merge` reads.
    """
    from headscope.jobs.arguments import (
        check_corpora,
        check_head,
        check_model,
        check_output_file,
        check_reducers,
        check_view,
        open_runs,
    )
    from headscope.jobs.shard_arguments import check_engine, parse_shard

    check_reducers(reducers)
    check_view(view)
    check_corpora(corpus, replicate, patterns=patterns, format=format, hops=hops, limit=limit, sample=sample, seed=seed)
    tuned = open_runs(runs, replicate)
    check_head(task, tuned)
    check_model(model)
    part = parse_shard(shard, runs=runs, replicate=replicate, explain=explain)
    check_engine(engine, workers, model, device, shard=shard, runs=runs, replicate=replicate, explain=explain)
    out = out or Path("heads.nc" if part is None else f"heads.{part.number}-of-{part.count}.npz")
    check_output_file(out)
    with show_progress() as progress:
        progress(LOADING, 0, 0)
        from headscope.jobs.inputs import add_offsets_and_classes
        from headscope.jobs.measure import measure as run
        from headscope.jobs.shards import measure_shard
        from headscope.view.terminal import print_paths, print_table

        chosen = add_offsets_and_classes(reducers, offset or [], words or [])
        settings: dict[str, Any] = {
            "format": format, "patterns": patterns, "hops": hops, "limit": limit, "sample": sample, "seed": seed,
            "task": task, "device": device, "max_tokens": max_tokens, "cut": cut, "pair_tokens": pair_tokens,
            "batch_tokens": batch_tokens, "permutations": permutations, "view": view, "sample_queries": sample_queries,
            "trust_remote_code": trust_remote_code, "resume": resume, "progress": progress,
        }  # fmt: skip
        if part is not None:
            counts = measure_shard(model, corpus, chosen, part, out=out, **settings).counts
        else:
            table = run(
                model, corpus, chosen, out=out, runs=tuned, replicate=replicate, engine=engine, workers=workers,
                **settings,
            )  # fmt: skip
    if part is not None:
        console.print(
            f"Shard {part}: {counts['documents']:,} documents, {counts['words']:,} words, {counts['tokens']:,} tokens."
            f"\n\nWrote {escape(str(out))}. When all {part.count} are written, join them with `headscope merge`.",
            soft_wrap=True,
        )  # fmt: skip
        return
    print_table(table, console)
    if explain:
        print_paths(table, console)
    console.print(f"\nWrote {escape(str(out))}.", soft_wrap=True)
