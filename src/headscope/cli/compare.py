"""`headscope compare`: head tables before and after fine-tuning."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from headscope.cli.terminal import console, show_progress
from headscope.errors import HeadscopeError


def compare(
    before: Annotated[Path, typer.Argument(help="The head table of the model before it was tuned.")],
    after: Annotated[Path, typer.Argument(help="That of the runs that were tuned, on the same corpus.")],
    control: Annotated[Path | None, typer.Option(help="That of the runs of the task's control.")] = None,
    other_before: Annotated[Path | None, typer.Option(help="The same on another corpus: before.")] = None,
    other_after: Annotated[Path | None, typer.Option(help="The runs there.")] = None,
    other_control: Annotated[Path | None, typer.Option(help="The runs of the control there.")] = None,
    variable: Annotated[
        list[str] | None,
        typer.Option(help="What to compare: mass_sep, or token_class_mass:token_class=noun. Default: the scores."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")] = Path("headscope-compare"),
) -> None:
    """Compare heads before and after tuning, task against control: tables, tests, figures and a page."""
    from headscope.jobs.compare import write_comparison
    from headscope.view.comparison import summarise_comparison

    if (other_before is None) != (other_after is None) or (other_control is not None and other_before is None):
        raise HeadscopeError("--other-before and --other-after go together, and --other-control goes with both.")
    if other_control is not None and control is None:
        raise HeadscopeError("--other-control is the control on another corpus; give it on this one too, as --control.")
    others = None if other_before is None or other_after is None else (other_before, other_after, other_control)
    with show_progress() as progress:
        made = write_comparison(
            before, after, control, others=others, variables=variable or [], out=out, progress=progress
        )
    for comparison in made.comparisons:
        summarise_comparison(comparison, console)
    for name, found in made.agreements.items():
        for one in found:
            console.print(f"On {made.other}, {name}: {one}", soft_wrap=True, markup=False, highlight=False)
    for sentence in made.left_out:
        console.print(sentence, soft_wrap=True, markup=False, highlight=False, style="yellow")
    page, folder = escape(str(made.folder / "comparison.md")), escape(str(made.folder))
    console.print(f"\nRead [bold]{page}[/]; {len(made.files)} files in {folder}.", soft_wrap=True)
