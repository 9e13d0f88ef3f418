"""The part of a study that fine-tunes: a task and its control, several seeds each, measured as the model before.

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
from headscope.learn.control import make_control
from headscope.learn.splits import limit_examples, merge_validation
from headscope.learn.task import TEST, Task
from headscope.learn.tasks import read_task
from headscope.learn.tune import ON_TASK, Progress, tune
from headscope.runs import Runs
from headscope.studies.study import Study, Tuning

SOURCE = "scores of the fine-tuned models on the test split, in their best epoch"


@dataclass(frozen=True)
class TuningOptions:
    """How to fine-tune for a study.

    Attributes:
        seeds: number of runs on the task, and on its control, with the seeds 1, 2, 3 and so on.
        epochs: passes over the training examples. Default: those of the paper.
        learning_rate: at the first step. Default: that of the paper; a small model may need a larger one.
        task: one of the study's tasks. Default: the first.
        max_examples: train on a random sample of at most this many examples. Default: all of them.
        select: the split on which the best epoch is chosen: ``validation``, or ``test`` as in the papers.
    """

    seeds: int
    epochs: int | None = None
    learning_rate: float | None = None
    task: str = ""
    max_examples: int | None = None
    select: str = "validation"


def read_study_task(name: str, study: Study, options: TuningOptions, data: Path, corpora: Mapping[str, Path]) -> Task:
    """The task that a study fine-tunes on.

    Args:
        name: name of the study, for messages.
        study: the study.
        options: which of its tasks, and how many examples.
        data: the folder of corpora.
        corpora: files that are measured instead; a task whose corpus is among them is read from there.

    Raises:
        HeadscopeError: the study fine-tunes nothing, or not on this task, or no seeds are asked for.
        CorpusError: the corpus is not there, or cannot be read.
    """
    tuning = study.tuning
    if tuning is None:
        raise HeadscopeError(f"the study {name} fine-tunes nothing; leave out --seeds.")
    if options.seeds < 1:
        raise HeadscopeError(f"{options.seeds} seeds make no run; give --seeds 1 or more.")
    if options.task and options.task not in tuning.tasks:
        raise HeadscopeError(
            f"the study {name} does not fine-tune on {options.task!r}; it does on {', '.join(tuning.tasks)}."
        )
    task_name = options.task or tuning.tasks[0]
    corpus = tuning.corpora[task_name]
    given = [
        corpora[table] for table in tuning.measured if table in corpora and study.measurements[table].corpus == corpus
    ]
    task = read_task(task_name, given[0] if given else find_by_suffix(data, corpus) or data)
    if options.select == TEST:  # before the control is made: its labels are those of everything that is trained on
        task = merge_validation(task)
    return task if options.max_examples is None else limit_examples(task, options.max_examples)


def tune_for_study(
    folder: Path,
    tuning: Tuning,
    task: Task,
    options: TuningOptions,
    model: Model,
    *,
    trust_remote_code: bool,
    resume: bool,
    progress: Progress,
) -> dict[str, Runs]:
    """The runs on a task and on its control, by group; runs that a killed job finished are kept.

    Args:
        folder: the folder of the runs.
        tuning: how the paper fine-tuned.
        task: what to learn.
        options: what is to differ from the paper.
        model: the model before fine-tuning.
        trust_remote_code: run the Python code of the model's repository.
        resume: continue what a killed job left.
        progress: called as the work advances.
    """
    tuned = tune(
        task, model.name, folder, seeds=range(1, options.seeds + 1), control=make_control(task),
        epochs=options.epochs or tuning.epochs, learning_rate=options.learning_rate or tuning.learning_rate,
        select=options.select, device=model.device.type, trust_remote_code=trust_remote_code, resume=resume,
        progress=progress,
    )  # fmt: skip
    return {"task": tuned.task} | ({"control": tuned.control} if tuned.control else {})


def tabulate_scores(runs: Runs, model: Model) -> xr.Dataset:
    """The scores of fine-tuned models, by run: ``f1``, ``accuracy``; of a control also ``task_f1`` at the task itself.

    Args:
        runs: the fine-tuned models.
        model: the model that they were tuned from.
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
