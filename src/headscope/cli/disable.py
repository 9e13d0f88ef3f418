"""`headscope disable`: what disabling each head of a model changes on a task."""

from pathlib import Path
from typing import Annotated

from rich.markup import escape

from headscope.cli import options
from headscope.cli.options import CORPUS, MEASURED, MODEL, OUTPUT, argument, option
from headscope.cli.terminal import LOADING, console, show_progress


def disable(
    model: options.Model,
    task: Annotated[
        str,
        argument("TASK", "Task that the model was tuned on, such as mrpc (`headscope list tasks`) or a folder of TSV "
                 "files; minimal pairs, as blimp or their file; last-word:lambada.jsonl, for the last word of each "
                 "text; or texts, such as wiki.txt, for the loss of a language model."),
    ],
    data: options.TaskData = Path(),
    split: Annotated[
        str, option(CORPUS, "Split of the task: train, validation or test. Default: test.", metavar="SPLIT")
    ] = "test",
    paradigms: options.Paradigms = None,
    limit: options.Examples = None,
    seed: Annotated[
        int, option(CORPUS, "Random seed of the sample and of the placebos, such as 7. Default: 0.", metavar="N")
    ] = 0,
    max_tokens: options.MaxTokens = None,
    start: options.Start = None,
    runs: Annotated[
        Path | None,
        option(MODEL, "Folder of runs that were tuned on TASK from MODEL, such as headscope-runs: heads are disabled "
               "in each run instead of the model, and summarized over the runs. Default: none.", metavar="FOLDER"),
    ] = None,
    heads: Annotated[
        str | None,
        option(MEASURED, "Heads to disable, one by one, such as 8-10,7-11, or key/value heads such as 3-kv1. Default: "
               "all, unless --layers is given.", metavar="LIST"),
    ] = None,
    layers: Annotated[
        str | None,
        option(MEASURED, "Layers to disable, one by one, such as 3,4. Default: all, unless --heads is given.",
               metavar="LIST"),
    ] = None,
    how: Annotated[
        list[str] | None,
        option(MEASURED, "What takes the place of a head's output, such as zero: uniform (equal weights), "
               "zero, mean (over the texts of the task) or resample (of another text); may be repeated, to see how "
               "alike they rank the heads. Default: uniform.", metavar="WAY"),
    ] = None,
    placebos: Annotated[
        int,
        option(MEASURED, "Placebos of each head, such as 8, each of which takes as long as the head; 0 skips them. "
               "Default: 4.", metavar="N", min=0),
    ] = 4,
    top: Annotated[
        int | None,
        option(MEASURED, "Disable only the N heads with the largest first-order estimates, such as 20, and N more at "
               "random, on which the estimates are checked. Default: all heads.", metavar="N", min=2),
    ] = None,
    pairs: Annotated[
        int,
        option(MEASURED, "Also disable each pair of the N heads with the largest effects, such as 5. Default: 0.",
               metavar="N", min=0),
    ] = 0,
    direct: Annotated[
        bool,
        option(MEASURED, "Also measure what reaches the output without the layers above, and how much of it they undo "
               "(self-repair); of models with an additive residual stream, such as smollm2. Default: no.", "--direct"),
    ] = False,
    trust_remote_code: options.Trust = False,
    out: Annotated[
        Path, option(OUTPUT, "Folder to write, such as effects. Default: headscope-effects.", "--out", "-o",
                     metavar="FOLDER")
    ] = Path("headscope-effects"),
    resume: options.Resume = False,
    device: options.Device = "cpu",
    batch_tokens: options.BatchTokens = None,
) -> None:  # fmt: skip
    """Evaluate a model on a task with each head, each layer and each key/value head disabled.

    The folder holds effects.csv, with a row for each of them and each metric; effects.nc, a head table; and figures/.
    An effect stands beside its interval, its p-value and placebos: changes of the same size in the same layer.
    With --runs also summary.csv, with the means over the runs.
    """
    from headscope.jobs.arguments import check_disabling, check_model, check_output_folder, open_runs
    from headscope.jobs.evaluations import find_evaluation

    ways = how or ["uniform"]
    tuned = open_runs(runs, None)
    check_disabling(ways, placebos, top, pairs, max_tokens, tuned)
    check_model(model)
    check_output_folder(out, "the effects", "effects.json")
    with show_progress() as progress:
        progress("reading the task", 0, 0)
        source = find_evaluation(task, data, split=split, paradigms=paradigms or [], limit=limit, seed=seed)
        if tuned is not None:
            source.check_runs(tuned)
        progress(LOADING, 0, 0)
        from headscope.jobs.disable import measure_effects
        from headscope.view.effects import print_effects

        table = measure_effects(
            model, source, out, seed=seed, runs=tuned, heads=heads or (), layers=layers or (), how=ways,
            placebos=placebos, top=top, pairs=pairs, direct=direct, start=start, max_tokens=max_tokens,
            batch_tokens=batch_tokens, device=device, trust_remote_code=trust_remote_code, resume=resume,
            progress=progress,
        )  # fmt: skip
    print_effects(table, console)
    console.print(f"\nAll effects are in {escape(str(out / 'effects.csv'))}.", soft_wrap=True)
