"""`headscope tune`: a folder of runs."""

from pathlib import Path
from typing import Annotated

from rich.markup import escape

from headscope.cli.options import (
    CORPUS,
    OUTPUT,
    SPEED,
    TRAINING,
    MaxExamples,
    Model,
    Resume,
    Select,
    Trust,
    argument,
    option,
)
from headscope.cli.terminal import LOADING, console, show_progress


def tune(
    task: Annotated[
        str, argument("TASK", "Task such as negation (`headscope list tasks`), or a folder of TSV files.")
    ],
    model: Model,
    data: Annotated[
        Path,
        option(CORPUS, "File or folder that holds the corpus of the task; for negation also grammar:300. "
               "Default: $HEADSCOPE_DATA, else the current folder.", metavar="PATH", envvar="HEADSCOPE_DATA",
               show_envvar=False),
    ] = Path(),
    max_examples: MaxExamples = None,
    max_tokens: Annotated[
        int | None,
        option(CORPUS, "Longest example in tokens, such as 128; longer ones are cut. Default: the limit of the model.",
               metavar="N"),
    ] = None,
    seeds: Annotated[
        int,
        option(TRAINING, "Number of runs, such as 10, with the seeds 1, 2, 3 and so on. Default: 3.", metavar="N",
               min=1),
    ] = 3,
    seed: Annotated[
        list[int] | None,
        option(TRAINING, "Seed of a run, such as 7, in place of --seeds; may be repeated. Default: none.",
               metavar="N"),
    ] = None,
    control: Annotated[
        bool,
        option(TRAINING, "Also tune as many runs on arbitrary labels, into OUT/control. Default: no.", "--control"),
    ] = False,
    epochs: Annotated[
        int, option(TRAINING, "Passes over the training examples, such as 3. Default: 8.", metavar="N")
    ] = 8,
    learning_rate: Annotated[
        float,
        option(TRAINING, "Learning rate at the first step, such as 3e-4; it falls to 0. Default: 4e-05.",
               metavar="RATE"),
    ] = 4e-5,
    batch_size: Annotated[
        int, option(TRAINING, "Examples in a step, such as 32, on each device. Default: 16.", metavar="N")
    ] = 16,
    select: Select = "validation",
    trust_remote_code: Trust = False,
    out: Annotated[
        Path, option(OUTPUT, "Folder to write, such as negation. Default: headscope-runs.", "--out", "-o",
                     metavar="FOLDER")
    ] = Path("headscope-runs"),
    resume: Resume = False,
    device: Annotated[
        str, option(SPEED, "Where to train: cpu, or cuda for all visible GPUs. Default: cpu.", metavar="NAME")
    ] = "cpu",
    precision: Annotated[
        str,
        option(SPEED, "Precision of training: float32; or bfloat16 or float16, mixed with it. Default: float32.",
               metavar="NAME"),
    ] = "float32",
) -> None:  # fmt: skip
    """Fine-tune a model on a task, and on its control, several seeds each, into a folder of runs.

    The folder holds a model for each run (seed-1/, seed-2/ and so on) and runs.json, which lists their scores; with
    --control also control/ with the same for the control. `headscope measure --runs` measures them.
    """
    from headscope.jobs.arguments import check_model, check_runs_folder, check_task, check_training, read_task

    check_task(task)
    check_model(model)
    check_training(
        seed or seeds, epochs=epochs, learning_rate=learning_rate, batch_size=batch_size, precision=precision,
        device=device, max_tokens=max_tokens, select=select, max_examples=max_examples,
    )  # fmt: skip
    check_runs_folder(out, control=control, resume=resume)
    with show_progress() as progress:
        progress(f"reading {task}", 0, 0)
        examples = read_task(task, data)
        progress(LOADING, 0, 0)
        from headscope.jobs.tune import tune as run
        from headscope.view.tuned import print_tuned

        result = run(
            examples, model, out, seeds=seed or seeds, control=control, data=data, epochs=epochs,
            learning_rate=learning_rate, batch_size=batch_size, select=select, max_examples=max_examples,
            max_tokens=max_tokens, precision=precision, device=device, trust_remote_code=trust_remote_code,
            resume=resume, progress=progress,
        )  # fmt: skip
    print_tuned(result.task, result.control, console)
    console.print(f"\nThe runs are listed in {escape(str(out / 'runs.json'))}.", soft_wrap=True)
