"""`headscope check`: do heads of another model still do what they did?"""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from headscope.cli import options
from headscope.cli.options import CORPUS, MEASURED, MODEL, OUTPUT, argument, option
from headscope.cli.terminal import LOADING, console, errors, show_progress

HEADS_LOST, NOT_DECIDED = 3, 4
"""Exit codes; 2 is that of an error."""


def check(
    new: Annotated[
        str,
        argument("NEW", "The new model: hub id, folder, .gguf file, minilm or smollm2; or what was measured of it on "
                 "the same corpus: the folder of an atlas, or a head table (.nc)."),
    ],
    against: Annotated[
        Path,
        option(MODEL, "What was measured of the old model: the folder of an atlas, such as atlas, or a head table, "
               "such as heads.nc. Required.", "--against", metavar="ATLAS"),
    ],
    tolerance: Annotated[
        float,
        option(MEASURED, "Loss of a score that still counts as none, such as 0.02. Default: 0.05.", metavar="SHARE"),
    ] = 0.05,
    every: Annotated[
        bool,
        option(MEASURED, "Check all reported heads. Default: those that stand out.", "--all"),
    ] = False,
    strict: Annotated[
        bool,
        option(OUTPUT, "Exit with code 4 if no head is lost and some cannot be decided. Default: a warning, and code "
               "0.", "--strict"),
    ] = False,
    reducers: options.OwnReducers = None,
    corpus: Annotated[
        str | None,
        option(CORPUS, "Where the corpus is now, such as data/en_ewt-ud-dev.conllu. Default: where it was when ATLAS "
               "was measured.", metavar="CORPUS"),
    ] = None,
    format: options.Format = None,
    patterns: options.PatternFile = None,
    trust_remote_code: options.Trust = False,
    out: Annotated[
        Path | None,
        option(OUTPUT, "Folder for check.json and check.csv, such as checked. Default: none is written.", "--out", "-o",
               metavar="FOLDER"),
    ] = None,
    device: options.Device = "cpu",
    batch_tokens: options.BatchTokens = None,
) -> None:  # fmt: skip
    """Check whether the reported heads of an atlas still do what they did in another model, such as a quantised one.

    Each head is kept, lost, or not decided, by the interval of its change on the texts on which it was not chosen.
    With -o, the folder holds check.json and check.csv.

    Exit codes: 0 if no head is lost, 2 for an error, 3 if a head is lost, and 4 with --strict if none is lost and some
    cannot be decided.
    """
    from headscope.jobs.arguments import check_output_folder
    from headscope.jobs.check_inputs import check_tolerance, open_against, open_new

    check_tolerance(tolerance)
    if out is not None:
        check_output_folder(out, "the check", "check.json")
    old, table = open_against(against, every=every), open_new(new)
    with show_progress(resumable=False) as progress:
        progress(LOADING, 0, 0)
        from headscope.jobs.check import check as run
        from headscope.view.check import print_check

        result = run(
            new if table is None else table, old, out=out, tolerance=tolerance, every=every, corpus=corpus,
            format=format, patterns=patterns, reducers=reducers or (), device=device, batch_tokens=batch_tokens,
            trust_remote_code=trust_remote_code, progress=progress,
        )  # fmt: skip
    print_check(result.table, console)
    if result.folder is not None:
        console.print(f"\nWrote {escape(str(result.folder / 'check.json'))} and check.csv.", soft_wrap=True)
    if result.lost:
        raise typer.Exit(HEADS_LOST)
    if result.undecided:
        count = len(result.undecided)
        sentence = f"{count} head{'' if count == 1 else 's'} cannot be decided; more texts decide more."
        errors.print(f"headscope: {sentence}", style="yellow", soft_wrap=True, highlight=False)
        if strict:
            raise typer.Exit(NOT_DECIDED)
