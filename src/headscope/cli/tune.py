"""`headscope tune`: a folder of runs."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from headscope.cli.options import Model, Resume, Trust
from headscope.cli.terminal import console, show_progress


def tune(
    task: Annotated[str, typer.Argument(help="A task (`headscope list tasks`), or a folder of TSV files.")],
    model: Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")] = Path("headscope-runs"),
    seeds: Annotated[int, typer.Option(min=1, help="As many runs, of the seeds 1, 2, 3 and so on.")] = 3,
    seed: Annotated[list[int] | None, typer.Option(help="Runs of these seeds instead.")] = None,
    control: Annotated[
        bool, typer.Option("--control", help="Also tune as many runs on arbitrary labels, into OUT/control.")
    ] = False,
    data: Annotated[
        Path,
        typer.Option(
            envvar="HEADSCOPE_DATA", help="The corpus of the task: a file or folder; for negation also grammar:300."
        ),
    ] = Path(),
    epochs: Annotated[int, typer.Option(help="Times that all examples are seen.")] = 8,
    learning_rate: Annotated[float, typer.Option(help="At the first step; it falls to 0.")] = 4e-5,
    batch_size: Annotated[int, typer.Option(help="Examples of a step, on each device.")] = 16,
    select: Annotated[
        str, typer.Option(help="Choose the epoch on validation, or on test and train on validation too.")
    ] = "validation",
    most: Annotated[int | None, typer.Option(help="Train on a random sample of so many examples.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Cut examples to this. Default: what the model takes.")] = None,
    precision: Annotated[str, typer.Option(help="float32, or bfloat16 or float16, mixed.")] = "float32",
    device: Annotated[str, typer.Option(help="cpu, or cuda for all GPUs that are visible.")] = "cpu",
    trust_remote_code: Trust = False,
    resume: Resume = False,
) -> None:
    """Fine-tune a model on a task, and on its control, several seeds each: a folder of runs."""
    from headscope.learn.control import control_of
    from headscope.learn.splits import at_most, without_validation
    from headscope.learn.task import TEST
    from headscope.learn.tasks import read_task
    from headscope.learn.tune import tune as run
    from headscope.view.tuned import tuned

    with show_progress() as progress:
        progress(f"reading {task}", 0, 0)
        learnt = read_task(task, data)
        if select == TEST:  # before a control is made, whose labels are those of what is trained on
            learnt = without_validation(learnt)
        if most is not None:
            learnt = at_most(learnt, most)
        made = run(
            learnt, model, out, seeds=seed or range(1, seeds + 1), control=control_of(learnt) if control else None,
            epochs=epochs, learning_rate=learning_rate, batch_size=batch_size, select=select, max_tokens=max_tokens,
            precision=precision, device=device, trust_remote_code=trust_remote_code, resume=resume, progress=progress,
        )  # fmt: skip
    tuned(made.task, made.control, console)
    console.print(f"\nThe runs are listed in {escape(str(out / 'runs.json'))}.", soft_wrap=True)
