"""Fine-tuning: a model on a task, and on its control, several seeds each.

task --read--> examples --tune--> a folder of runs, and of the runs on the control
"""

from collections.abc import Sequence
from pathlib import Path

from headscope.capture.loading import Loadable
from headscope.jobs.arguments import check_model, check_task
from headscope.jobs.progress import Progress, ignore_progress, shows_progress
from headscope.learn.settings import Settings
from headscope.learn.task import Task
from headscope.learn.tasks import read_task
from headscope.learn.tune import Tuned
from headscope.learn.tune import tune as fine_tune


@shows_progress
def tune(
    task: str | Path | Task,
    model: Loadable,
    out: str | Path = "headscope-runs",
    *,
    seeds: int | Sequence[int] = 3,
    control: bool | Task = False,
    data: str | Path = ".",
    epochs: int = 8,
    learning_rate: float = 4e-5,
    batch_size: int = 16,
    select: str = "validation",
    max_examples: int | None = None,
    max_tokens: int | None = None,
    precision: str = "float32",
    device: str = "cpu",
    trust_remote_code: bool = False,
    resume: bool = False,
    progress: Progress | bool | None = None,
) -> Tuned:
    """Fine-tune a model on a task, and on its control, several seeds each: a folder of runs.

    Args:
        task: a task that `headscope.read_task` gave, or its name, or a folder of TSV files.
        model: a hub id, a folder, a ``.gguf`` file, ``minilm`` or ``smollm2`` (`headscope.load`), or a loaded model of
            transformers, alone or as ``(model, tokenizer)``.
        out: the folder for ``runs.json`` and a folder for each run; those of the control are in ``control`` in it.
        seeds: how many runs, with the seeds 1, 2, 3 and so on; or the seeds themselves.
        control: True to tune as many runs on arbitrary labels (`headscope.make_control`); or the control itself.
        data: the file or folder that holds the corpus of a named task.
        epochs: passes over the training examples.
        learning_rate: at the first step; it falls to 0 in a straight line.
        batch_size: examples in a step, on each device.
        select: the split on which the best epoch is chosen: ``validation``, or ``test``, where the model is trained on
            the validation split too, as in Zhao and Bethard 2020.
        max_examples: train on a random sample of at most this many examples. Default: all of them.
        max_tokens: cut longer examples to this many tokens. Default: the limit of the model.
        precision: ``float32``; or ``bfloat16`` or ``float16``, mixed with it.
        device: ``cpu``, or ``cuda`` for all visible GPUs.
        trust_remote_code: run the Python code of the model's repository.
        resume: continue a killed run with the same arguments, and keep the runs that are finished.
        progress: True shows it, False does not; a function is called with the step, how much of it is done, and how
            much there is. Default: shown on a terminal and in a notebook.

    Raises:
        HeadscopeError: in one sentence, what was wrong with the task, the model, an argument or the folder.
    """
    if not isinstance(task, Task):
        check_task(str(task))
    check_model(model)
    settings = Settings(epochs, learning_rate, batch_size, precision, device, max_tokens, select, max_examples)
    progress = progress if callable(progress) else ignore_progress
    if not isinstance(task, Task):
        progress(f"reading {task}", 0, 0)
        task = read_task(str(task), data)
    return fine_tune(
        task, model, out, settings, seeds=seeds, control=control, trust_remote_code=trust_remote_code, resume=resume,
        progress=progress,
    )  # fmt: skip
