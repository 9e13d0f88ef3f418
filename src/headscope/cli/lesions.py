"""`headscope lesions`: what the heads of each relation are needed for."""

from pathlib import Path
from typing import Annotated

from rich.markup import escape

from headscope.cli import options
from headscope.cli.options import CORPUS, MEASURED, OUTPUT, argument, option
from headscope.cli.terminal import LOADING, console, show_progress


def lesions(
    model: options.Model,
    task: Annotated[
        str,
        argument("TASK", "Minimal pairs, as blimp or their file; or whatever else `headscope disable` takes, such as "
                 "wiki.txt."),
    ],
    sets: Annotated[
        Path,
        option(MEASURED, "Folder of an atlas of MODEL, or its head table, such as heads.nc: the heads that lead each "
               "of its rows are disabled together.", "--atlas", metavar="ATLAS"),
    ],
    data: options.TaskData = Path(),
    paradigms: options.Paradigms = None,
    limit: options.Examples = None,
    seed: Annotated[
        int, option(CORPUS, "Random seed of the random sets and of the sample, such as 7. Default: 0.", metavar="N")
    ] = 0,
    start: options.Start = None,
    rows: Annotated[
        list[str] | None,
        option(MEASURED, "Row of the table, such as obj; may be repeated. Default: the eight most frequent that have a "
               "reported head.", "--row", metavar="NAME"),
    ] = None,
    size: Annotated[
        int, option(MEASURED, "Heads of each set, those with the highest score, such as 10. Default: 5.", metavar="N")
    ] = 5,
    random: Annotated[
        int,
        option(MEASURED, "Random sets that each set is compared with, such as 20; each takes as long as the set. "
               "Default: 10.", metavar="N"),
    ] = 10,
    match: Annotated[
        str,
        option(MEASURED, "What random sets have in common with the set, such as size: the number of heads in each "
               "layer, or in the whole model (size). Default: layer.", metavar="WHAT"),
    ] = "layer",
    how: Annotated[
        str,
        option(MEASURED, "What takes the place of the heads' output, such as zero: uniform (equal weights), zero, mean "
               "(over the texts of the task) or resample (of another text). Default: uniform.", metavar="WAY"),
    ] = "uniform",
    trust_remote_code: options.Trust = False,
    out: Annotated[
        Path, option(OUTPUT, "Folder to write, such as lesions. Default: headscope-lesions.", "--out", "-o",
                     metavar="FOLDER")
    ] = Path("headscope-lesions"),
    resume: options.Resume = False,
    device: options.Device = "cpu",
    batch_tokens: options.BatchTokens = None,
) -> None:  # fmt: skip
    """Evaluate a model with the heads of each relation disabled together: which grammar suffers?

    The folder holds lesions.csv, with a row for each relation, phenomenon and metric; lesions.nc, a head table; and
    figures/, the lesion maps. A change stands beside those without random heads, as many in each layer.
    """
    from headscope.jobs.arguments import check_model, check_output_folder
    from headscope.jobs.evaluations import find_evaluation
    from headscope.jobs.lesion_arguments import check_lesions, name_heads

    check_lesions(how, size, random, match)
    check_model(model)
    heads = name_heads(sets, size, rows or ())
    check_output_folder(out, "the lesions", "lesions.json")
    with show_progress() as progress:
        progress("reading the task", 0, 0)
        source = find_evaluation(task, data, paradigms=paradigms or [], limit=limit, seed=seed)
        progress(LOADING, 0, 0)
        from headscope.jobs.lesions import measure_lesions
        from headscope.view.lesions import print_lesions

        table = measure_lesions(
            model, source, heads, out, size=size, random=random, match=match, how=how, seed=seed, start=start,
            batch_tokens=batch_tokens, device=device, trust_remote_code=trust_remote_code, resume=resume,
            progress=progress,
        )  # fmt: skip
    print_lesions(table, console)
    console.print(f"\nAll lesions are in {escape(str(out / 'lesions.csv'))}.", soft_wrap=True)
