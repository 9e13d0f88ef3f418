"""`headscope tune`: a folder of runs."""

from pathlib import Path
from typing import Annotated

from rich.markup import escape

from headscope.cli.options import MaxExamples, Model, Resume, Select, Trust, argument, option
from headscope.cli.terminal import console, show_progress


def tune(
    task: Annotated[str, argument("Task (see `headscope list tasks`), or a folder of TSV files.")],
    model: Model,
    out: Annotated[Path, option("Folder to write. Default: headscope-runs.", "--out", "-o")] = Path("headscope-runs"),
    seeds: Annotated[int, option("Number of runs, with the seeds 1, 2, 3 and so on. Default: 3.", min=1)] = 3,
    seed: Annotated[
        list[int] | None, option("Seed of a run, in place of --seeds; may be repeated. Default: none.")
    ] = None,
    control: Annotated[
        bool, option("Also tune as many runs on arbitrary labels, into OUT/control. Default: no.", "--control")
    ] = False,
    data: Annotated[
        Path,
        option("File or folder that holds the corpus of the task; for negation also grammar:300. "
               "Default: $HEADSCOPE_DATA, else the current folder.", envvar="HEADSCOPE_DATA", show_envvar=False),
    ] = Path(),
    epochs: Annotated[int, option("Passes over the training examples. Default: 8.")] = 8,
    learning_rate: Annotated[float, option("Learning rate at the first step; it falls to 0. Default: 4e-05.")] = 4e-5,
    batch_size: Annotated[int, option("Examples in a step, on each device. Default: 16.")] = 16,
    select: Select = "validation",
    max_examples: MaxExamples = None,
    max_tokens: Annotated[
        int | None, option("Cut longer examples to this many tokens. Default: the limit of the model.")
    ] = None,
    precision: Annotated[
        str, option("Precision of training: float32; or bfloat16 or float16, mixed with it. Default: float32.")
    ] = "float32",
    device: Annotated[str, option("cpu, or cuda for all visible GPUs. Default: cpu.")] = "cpu",
    trust_remote_code: Trust = False,
    resume: Resume = False,
) -> None:  # fmt: skip
    """Fine-tune a model on a task, and on its control, several seeds each: a folder of runs."""
    from headscope.jobs.arguments import check_model, check_task

    check_task(task)
    check_model(model)
    from headscope.jobs.tune import tune as run
    from headscope.view.tuned import print_tuned

    with show_progress() as progress:
        result = run(
            task, model, out, seeds=seed or seeds, control=control, data=data, epochs=epochs,
            learning_rate=learning_rate, batch_size=batch_size, select=select, max_examples=max_examples,
            max_tokens=max_tokens, precision=precision, device=device, trust_remote_code=trust_remote_code,
            resume=resume, progress=progress,
        )  # fmt: skip
    print_tuned(result.task, result.control, console)
    console.print(f"\nThe runs are listed in {escape(str(out / 'runs.json'))}.", soft_wrap=True)
