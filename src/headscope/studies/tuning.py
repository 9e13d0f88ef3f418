"""The half of a study that fine-tunes: a task and its control, several seeds each, measured as the model before was.

model, task --tune--> runs --measure--> ``story_task``, ``story_control``
                       +--scores of the models--> ``tuned_task``, ``tuned_control``
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from headscope import heads
from headscope.capture.model import Model
from headscope.errors import HeadscopeError
from headscope.files import find_by_suffix
from headscope.jobs.folder import Job
from headscope.learn.control import control_of
from headscope.learn.folder import check_folder
from headscope.learn.splits import at_most, without_validation
from headscope.learn.task import TEST, Task
from headscope.learn.tasks import read_task
from headscope.learn.tune import CONTROL, ON_TASK, Tuned, tune
from headscope.runs import Runs
from headscope.studies.study import Study, Tuning

SOURCE = "scores of the fine-tuned models on the test split, in the epoch that was kept"


@dataclass(frozen=True)
class Asked:
    """How to fine-tune for a study.

    Attributes:
        seeds: how many runs of the task, and of its control; their seeds are 1, 2, ....
        epochs: of each; by default those of the paper.
        learning_rate: at the first step; by default that of the paper, which a small model may need to be larger.
        task: one of the study's; by default its first.
        most: training examples, drawn at random; by default all.
        select: the split on which the epoch that is kept is chosen: ``validation``, or ``test`` as in the papers.
    """

    seeds: int
    epochs: int | None = None
    learning_rate: float | None = None
    task: str = ""
    most: int | None = None
    select: str = "validation"


def task_of(name: str, study: Study, asked: Asked, data: Path, corpora: Mapping[str, Path]) -> Task:
    """The task that a study fine-tunes on.

    Args:
        name: of the study, for messages.
        study: says which tasks.
        asked: which of them.
        data: the folder of corpora.
        corpora: others to measure in their place: a task whose corpus is measured too is read from there.

    Raises:
        HeadscopeError: the study fine-tunes nothing or not this, or too few runs are asked for.
        CorpusError: the corpus is not there, or cannot be read.
    """
    tuning = study.tuning
    if tuning is None:
        raise HeadscopeError(f"the study {name} fine-tunes nothing; leave out --seeds.")
    if asked.seeds < 1:
        raise HeadscopeError(f"{asked.seeds} seeds make no run; give --seeds 1 or more.")
    if asked.task and asked.task not in tuning.tasks:
        raise HeadscopeError(
            f"the study {name} does not fine-tune on {asked.task!r}; it does on {', '.join(tuning.tasks)}."
        )
    which = asked.task or tuning.tasks[0]
    corpus = tuning.corpora[which]
    replaced = [corpora[one] for one in tuning.measured if one in corpora and study.measurements[one].corpus == corpus]
    task = read_task(which, replaced[0] if replaced else find_by_suffix(data, corpus) or data)
    if asked.select == TEST:  # before a control is made, whose labels are those of what is trained on
        task = without_validation(task)
    return task if asked.most is None else at_most(task, asked.most)


def check_runs(job: Job, task: Task) -> None:
    """Refuse the folders of the runs before anything is measured.

    Raises:
        HeadscopeError: one holds runs, and the job does not go on with them; or it cannot be written to.
    """
    for folder in (_folder(job, task), _folder(job, task) / CONTROL):
        check_folder(folder, job.resume)


def _folder(job: Job, task: Task) -> Path:
    return job.folder / "runs" / task.name


def tuned(job: Job, tuning: Tuning, task: Task, asked: Asked, model: Model, trust_remote_code: bool) -> Tuned:
    """Fine-tune on a task and its control; what a killed job finished is kept."""
    return tune(
        task, model.name, _folder(job, task), seeds=range(1, asked.seeds + 1), control=control_of(task),
        epochs=asked.epochs or tuning.epochs, learning_rate=asked.learning_rate or tuning.learning_rate,
        select=asked.select, device=model.device.type, trust_remote_code=trust_remote_code, resume=job.resume,
        progress=job.progress,
    )  # fmt: skip


def families(made: Tuned) -> dict[str, Runs]:
    """The runs by their group."""
    return {"task": made.task} | ({"control": made.control} if made.control else {})


def scores(runs: Runs, model: Model) -> xr.Dataset:
    """The scores of fine-tuned models, by run: ``f1``, ``accuracy``; of a control also ``task_f1`` at the task itself.

    Args:
        runs: what was tuned.
        model: what it was tuned from.
    """
    of_runs = [
        dict(run.scores[TEST]) | {f"task_{name}": score for name, score in run.scores.get(ON_TASK, {}).items()}
        for run in runs.runs
    ]
    variables = {
        name: heads.variable(
            np.array([scores[name] for scores in of_runs]), ("run",), name=name.replace("_", " "), units="score",
            source=SOURCE,
        )
        for name in of_runs[0]
    }  # fmt: skip
    return xr.Dataset(
        variables,
        coords={"run": [run.name for run in runs.runs], "seed": ("run", [run.seed for run in runs.runs])},
        attrs={"model": model.name, "weights_sha256": model.weights_sha256, "corpus_sha256": "", "task": runs.task},
    )
