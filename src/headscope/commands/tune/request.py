"""The request of `headscope tune`."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.capture.model.device_names import AUTO, Device, Dtype
from headscope.commands.function import make_function
from headscope.commands.model_options import NamedModel
from headscope.commands.option import CORPUS, SPEED, TRAINING, argument, option, output_folder
from headscope.commands.option_groups import TaskData, TrainingOptions
from headscope.commands.output import Resumable
from headscope.commands.progress import Progress
from headscope.commands.record import Options, Request

if TYPE_CHECKING:
    from headscope.learn.task import Task
    from headscope.learn.training_settings import Settings
    from headscope.learn.tune import Tuned
else:
    Tuned = "Tuned"


class TaskOptions(Options):
    """The option for the task that the model learns."""

    task: "str | Path | Task" = argument(
        "TASK",
        "Task such as negation (`headscope list tasks`), or a folder of TSV files.",
        kw_only=False,
        typed=str,
        python="Or a task that `headscope.learn.read_task` gave.",
    )


class Tune(NamedModel, TrainingOptions, TaskOptions, TaskData, Resumable, Request[Tuned], function="tune"):
    """Fine-tune a model on a task, and on its control, several seeds each, into a folder of runs.

    The folder holds a model for each run (seed-1/, seed-2/ and so on) and runs.json, which lists their scores; with
    `control` also control/ with the same for the control. `headscope measure --runs` measures them.

    Returns:
        The runs in the folder, with those that were there before.
    """

    usage = ("headscope tune negation minilm --data grammar:300 -o negation --seeds 4 --control",)
    example = (
        'tuned = headscope.tune("negation", "minilm", "negation", data="grammar:60", seeds=1, epochs=1)',
        "tuned.task.runs[0].scores",
    )
    out: str | Path = output_folder("negation", "headscope-runs", kw_only=False)
    data: str | Path = option(
        CORPUS,
        "File or folder that holds the corpus of the task, such as corpora; for negation also grammar:300.",
        default=".",
        unset="the current folder",
        metavar="PATH",
        envvar="HEADSCOPE_DATA",
        basic=True,
    )
    max_tokens: int | None = option(
        CORPUS,
        "Longest example in tokens, such as 128; longer ones are cut.",
        default=None,
        unset="the limit of the model",
        at_least=5,
    )
    seeds: int | Iterable[int] = option(
        TRAINING,
        "Number of runs, such as 10, with the seeds 1, 2, 3 and so on.",
        default=3,
        metavar="N",
        typed=int,
        python="Or the seeds themselves.",
        basic=True,
    )
    control: "bool | Task" = option(
        TRAINING,
        "Also tune as many runs on arbitrary labels, into the folder control in `out`.",
        default=False,
        typed=bool,
        python="Or the control itself, as `headscope.learn.make_control` makes it.",
        basic=True,
    )
    epochs: int = option(TRAINING, "Passes over the training examples, such as 3.", default=8, at_least=1, basic=True)
    learning_rate: float = option(
        TRAINING, "Learning rate at the first step, such as 3e-4; it falls to 0.", default=4e-5, metavar="RATE"
    )
    batch_size: int = option(TRAINING, "Examples in a step, such as 32, on each device.", default=16, at_least=1)
    device: Device = option(
        SPEED,
        "Where to train: cpu, or cuda for all visible GPUs.",
        default=AUTO,
        unset="auto, the GPUs if there is one that works, else cpu",
        metavar="NAME",
        recorded=False,
        basic=True,
    )
    precision: Dtype = option(
        SPEED,
        "Precision of training: float32; or bfloat16 or float16, mixed with it.",
        default="float32",
        metavar="NAME",
    )

    @cached_property
    def each_seed(self) -> tuple[int, ...]:
        """The seed of each run."""
        return list_seeds(self.seeds)

    @cached_property
    def settings(self) -> "Settings":
        """The settings of training.

        Raises:
            HeadscopeError: A setting has a value with which nothing can be trained.
        """
        from headscope.learn.training_settings import Settings

        return Settings(**{each.name: getattr(self, each.name) for each in fields(Settings)})

    @cached_property
    def learnt(self) -> "Task":
        """The task, with its examples.

        Raises:
            HeadscopeError: The corpus of the task cannot be read.
        """
        from headscope.learn.tasks import read_task

        return read_task(str(self.task), self.data) if isinstance(self.task, str | Path) else self.task

    def check(self, progress: Progress) -> None:
        """Raise an error for a task, a model, settings, seeds or a folder that cannot be used."""
        from headscope.learn.runs_folder import check_folder
        from headscope.learn.tasks import check_name
        from headscope.learn.training_settings import check_seeds
        from headscope.runs import CONTROL

        if isinstance(self.task, str | Path):
            check_name(str(self.task))
        self.check_model()
        _ = self.settings
        check_seeds(self.each_seed)
        out = Path(self.out)
        for folder in (out, out / CONTROL) if self.control else (out,):
            check_folder(folder, self.resume)
        if isinstance(self.task, str | Path):
            progress(f"reading {self.task}", 0, 0)
        _ = self.learnt


def list_seeds(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """Return the given seeds; for a number of runs, return the seeds from 1 to this number."""
    return tuple(seeds) if isinstance(seeds, Iterable) else tuple(range(1, seeds + 1))


class TypedTune(Tune, command="tune"):
    """With `seed`, the seeds are those that are named."""

    seed: Sequence[int] = option(
        TRAINING, "Seed of a run, such as 7, in place of `seeds`; may be repeated.", default=(), recorded=False
    )

    @cached_property
    def each_seed(self) -> tuple[int, ...]:
        """The seed of each run: the named seeds, or else the seeds from 1 to the number of runs."""
        return list_seeds(self.seed or self.seeds)


tune = make_function(Tune)
