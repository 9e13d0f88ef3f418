"""`headscope compare`: head tables before and after fine-tuning."""

from pathlib import Path
from typing import Annotated

from headscope.cli.options import argument, option
from headscope.cli.terminal import console, print_written, show_progress


def compare(
    before: Annotated[Path, argument("Head table of the model before it was tuned.")],
    after: Annotated[Path, argument("Head table of the runs, on the same corpus.")],
    control: Annotated[Path | None, option("Head table of the runs on the task's control. Default: none.")] = None,
    other_before: Annotated[
        Path | None, option("Head table before tuning on another corpus, to compare the corpora. Default: none.")
    ] = None,
    other_after: Annotated[Path | None, option("Head table of the runs on the other corpus. Default: none.")] = None,
    other_control: Annotated[
        Path | None, option("Head table of the runs on the control, on the other corpus. Default: none.")
    ] = None,
    variables: Annotated[
        list[str] | None,
        option("Variable to compare, such as mass_sep or token_class_mass:token_class=noun; may be repeated. "
               "Default: all scores.", "--variable"),
    ] = None,
    out: Annotated[Path, option("Folder to write. Default: headscope-compare.", "--out", "-o")]
    = Path("headscope-compare"),
) -> None:  # fmt: skip
    """Compare heads before and after tuning, on a task and on its control: tables, tests, figures and a page."""
    from headscope.jobs.compare import compare as run
    from headscope.view.comparison import print_comparison

    with show_progress(resumable=False) as progress:
        result = run(
            before, after, control, other_before=other_before, other_after=other_after, other_control=other_control,
            variables=variables or (), out=out, progress=progress,
        )  # fmt: skip
    for comparison in result.comparisons:
        print_comparison(comparison, console)
    for name, agreements in result.agreements.items():
        for agreement in agreements:
            console.print(f"On {result.other}, {name}: {agreement}", soft_wrap=True, markup=False, highlight=False)
    for sentence in result.left_out:
        console.print(sentence, soft_wrap=True, markup=False, highlight=False, style="yellow")
    print_written("Read", result.folder / "comparison.md", len(result.files))
