"""`headscope patterns`: the patterns of the attention maps of each head, and labelling maps by eye."""

from pathlib import Path
from typing import Annotated

from rich.markup import escape

from headscope.cli import options
from headscope.cli.options import CORPUS, LABELLING, MEASURED, MODEL, OUTPUT, argument, option
from headscope.cli.terminal import LOADING, console, show_progress


def patterns(
    model: options.Model,
    corpus: Annotated[
        str,
        argument("CORPUS", "Task such as mrpc, of which the test texts are read (`headscope list tasks`); file or "
                 "folder, such as en_ewt-ud-dev.conllu (`headscope list corpora`); or grammar:COUNT."),
    ],
    data: Annotated[
        Path,
        option(CORPUS, "File or folder that holds the corpus of the task, such as corpora. Default: $HEADSCOPE_DATA, "
               "else the current folder.", metavar="PATH", envvar="HEADSCOPE_DATA", show_envvar=False),
    ] = Path(),
    format: options.Format = None,
    limit: options.Limit = None,
    sample: Annotated[
        int | None,
        option(CORPUS, "Take N documents at random, such as 300; all of a corpus that has no more. Default: 1000.",
               metavar="N", min=1),
    ] = 1000,
    seed: Annotated[
        int, option(CORPUS, "Random seed of the sample, of the choice of maps and of training, such as 7. Default: 0.",
                    metavar="N")
    ] = 0,
    max_tokens: Annotated[
        int | None,
        option(CORPUS, "Longest text in tokens, such as 128; longer ones are left out. Default: 512.", metavar="N",
               min=3),
    ] = None,
    pair_tokens: options.PairTokens = None,
    runs: Annotated[
        Path | None,
        option(MODEL, "Folder of runs that were tuned from MODEL, such as headscope-runs: their maps are classified "
               "too. Default: none.", metavar="FOLDER"),
    ] = None,
    labels: Annotated[
        list[Path] | None,
        option(MEASURED, "Folder of maps that you labelled, such as my-maps: the classifier is trained on them; may be "
               "repeated. Default: the classifier that comes with headscope.", metavar="FOLDER"),
    ] = None,
    classifier: Annotated[
        Path | None,
        option(MEASURED, "File that an earlier call with --labels wrote, such as classifier.safetensors. "
               "Default: none.", metavar="FILE"),
    ] = None,
    annotate: Annotated[
        Path | None,
        option(LABELLING, "Folder of maps to label, such as my-maps: a local page shows one map after the other, and "
               "each key is saved at once; call again to go on. Nothing else is done. Default: none.",
               metavar="FOLDER"),
    ] = None,
    maps: Annotated[
        int, option(LABELLING, "Maps to label, such as 288; as many of each head. Default: 144.", metavar="N", min=1)
    ] = 144,
    second: Annotated[
        int,
        option(LABELLING, "Label so many of the labelled maps a second time, such as 100, without seeing the first "
               "label. Default: 0.", metavar="N", min=0),
    ] = 0,
    trust_remote_code: options.Trust = False,
    out: Annotated[
        Path, option(OUTPUT, "Folder to write, such as patterns. Default: headscope-patterns.", "--out", "-o",
                     metavar="FOLDER")
    ] = Path("headscope-patterns"),
    resume: options.Resume = False,
    device: options.Device = "cpu",
    batch_tokens: options.BatchTokens = None,
) -> None:  # fmt: skip
    """Classify the attention maps of each head: vertical, diagonal, both, blocks or none of these.

    The folder holds patterns.csv, with the share of each pattern in the maps of each head; patterns.nc, a head table;
    and figures/. Of a decoder the table also says how much of its maps sparse shapes keep.
    """
    from headscope.jobs.arguments import check_model, check_output_folder, open_runs
    from headscope.jobs.map_arguments import check_labelling, check_patterns

    check_patterns(labels or (), classifier)
    check_labelling(maps, second)
    check_model(model)
    if annotate is not None:
        with show_progress() as progress:
            progress(LOADING, 0, 0)
            from headscope.jobs.label_maps import prepare_maps, serve_maps

            prepare_maps(
                model, corpus, annotate, maps=maps, data=data, format=format, limit=limit, sample=sample, seed=seed,
                device=device, trust_remote_code=trust_remote_code, progress=progress,
            )  # fmt: skip
        summary = serve_maps(
            annotate, second=second, seed=seed,
            ready=lambda url: console.print(f"Label the maps at {url} (Ctrl-C ends).", soft_wrap=True),
        )  # fmt: skip
        console.print(escape(summary), soft_wrap=True)
        return
    tuned = open_runs(runs, None)
    check_output_folder(out, "the patterns", "patterns.json")
    with show_progress() as progress:
        progress(LOADING, 0, 0)
        from headscope.jobs import patterns as job
        from headscope.view.patterns import print_patterns

        table = job.patterns(
            model, corpus, out, data=data, format=format, limit=limit, sample=sample, seed=seed, runs=tuned,
            labels=labels or (), classifier=classifier, max_tokens=max_tokens, pair_tokens=pair_tokens,
            batch_tokens=batch_tokens, device=device, trust_remote_code=trust_remote_code, resume=resume,
            progress=progress,
        )  # fmt: skip
    print_patterns(table, console)
    console.print(f"\nAll heads are in {escape(str(out / 'patterns.csv'))}.", soft_wrap=True)
