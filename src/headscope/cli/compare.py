"""`headscope compare`: head tables before and after fine-tuning."""

from pathlib import Path
from typing import Annotated

from headscope.cli.options import CORPUS, MEASURED, OUTPUT, argument, option
from headscope.cli.terminal import console, print_written, show_progress


def compare(
    before: Annotated[
        Path,
        argument("BEFORE", "Head table of the model before it was tuned, such as before.nc of `headscope measure`."),
    ],
    after: Annotated[
        Path,
        argument("AFTER", "Head table of the runs on the same corpus, such as after.nc of `headscope measure --runs`."),
    ],
    control: Annotated[
        Path | None,
        option(MEASURED, "Head table of the runs on the task's control, such as control.nc. Default: none.",
               metavar="FILE"),
    ] = None,
    other_before: Annotated[
        Path | None,
        option(CORPUS, "Head table before tuning on another corpus, such as sfu-before.nc, to compare the corpora. "
               "Default: none.", metavar="FILE"),
    ] = None,
    other_after: Annotated[
        Path | None,
        option(CORPUS, "Head table of the runs on the other corpus, such as sfu-after.nc. Default: none.",
               metavar="FILE"),
    ] = None,
    other_control: Annotated[
        Path | None,
        option(CORPUS, "Head table of the runs on the control, on the other corpus, such as sfu-control.nc. "
               "Default: none.", metavar="FILE"),
    ] = None,
    variables: Annotated[
        list[str] | None,
        option(MEASURED, "Variable to compare, such as mass_sep or token_class_mass:token_class=noun; may be repeated. "
               "Default: all scores.", "--variable", metavar="NAME"),
    ] = None,
    out: Annotated[
        Path, option(OUTPUT, "Folder to write, such as changes. Default: headscope-compare.", "--out", "-o",
                     metavar="FOLDER")
    ] = Path("headscope-compare"),
) -> None:  # fmt: skip
    """Compare heads before and after tuning, on a task and on its control.

    The folder holds comparison.md (read this), comparison.html (all heads before and after in one grid), comparisons/
    (netCDF), figures/, tables/ (CSV) and comparison.json.
    """
    from headscope.jobs.arguments import check_other_tables, check_output_folder, read_tables

    check_other_tables(control, other_before, other_after, other_control)
    with show_progress(resumable=False) as progress:
        progress("reading the tables", 0, 0)
        check_output_folder(out, "the comparison", "comparison.json")
        tables = read_tables(
            before=before, after=after, control=control, other_before=other_before, other_after=other_after,
            other_control=other_control,
        )  # fmt: skip
        progress("loading matplotlib", 0, 0)
        from headscope.jobs.compare import compare as run
        from headscope.view.comparison import print_comparison

        result = run(**tables, variables=variables or (), out=out, progress=progress)
    for comparison in result.comparisons:
        print_comparison(comparison, console)
    for name, agreements in result.agreements.items():
        for agreement in agreements:
            console.print(f"On {result.other}, {name}: {agreement}", soft_wrap=True, markup=False, highlight=False)
    for sentence in result.left_out:
        console.print(sentence, soft_wrap=True, markup=False, highlight=False, style="yellow")
    print_written("Read", result.folder / "comparison.md", len(result.files))
