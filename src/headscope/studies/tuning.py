"""What a study fine-tunes on, and the scores of its runs as the tables ``tuned_task`` and ``tuned_control``."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from headscope import heads
from headscope.corpora import Corpus
from headscope.errors import HeadscopeError
from headscope.files import find_by_suffix
from headscope.learn.settings import Settings
from headscope.learn.task import TEST, VALIDATION, Task
from headscope.learn.tasks import read_task
from headscope.runs import ON_TASK, Runs
from headscope.studies.study import Study

if TYPE_CHECKING:  # what is wrong with the options is said without torch
    from headscope.capture.model import Model

SOURCE = "scores of the fine-tuned models on the test split, in their best epoch"


@dataclass(frozen=True)
class TuningOptions:
    """How to fine-tune for a study; these are arguments of `headscope.study`."""

    seeds: int | None
    epochs: int | None
    learning_rate: float | None
    task: str
    max_examples: int | None
    select: str


@dataclass(frozen=True)
class TuningPlan:
    """The task that a study fine-tunes on, and how; the device is that of the model."""

    task: Task
    seeds: int
    settings: Settings


def plan_tuning(
    name: str, study: Study, options: TuningOptions, data: Path, corpora: Mapping[str, Path | Corpus]
) -> TuningPlan | None:
    """The fine-tuning of a study, or None without seeds.

    The task is read from the file in `corpora` if its corpus is there, else from `data`.

    Raises:
        HeadscopeError: the study fine-tunes nothing, or not on this task, or nothing can be trained with an option.
        CorpusError: the corpus is not there, or cannot be read.
    """
    tuning = study.tuning
    if options.seeds is None:
        numbers = (options.epochs, options.learning_rate, options.max_examples)
        if options.task or numbers != (None, None, None) or options.select != VALIDATION:
            raise HeadscopeError("nothing is fine-tuned without seeds; give --seeds, the number of runs, as well.")
        return None
    if tuning is None:
        raise HeadscopeError(f"the study {name} fine-tunes nothing; leave out --seeds.")
    if options.seeds < 1:
        raise HeadscopeError(f"{options.seeds} seeds make no run; give --seeds 1 or more.")
    if options.task and options.task not in tuning.tasks:
        raise HeadscopeError(
            f"the study {name} does not fine-tune on {options.task!r}; it does on {', '.join(tuning.tasks)}."
        )
    settings = Settings(
        epochs=tuning.epochs if options.epochs is None else options.epochs,
        learning_rate=tuning.learning_rate if options.learning_rate is None else options.learning_rate,
        select=options.select, max_examples=options.max_examples,
    )  # fmt: skip
    task_name = options.task or tuning.tasks[0]
    corpus = tuning.corpora[task_name]
    of_task = [corpora.get(table) for table in tuning.measured if study.measurements[table].corpus == corpus]
    given = [path for path in of_task if isinstance(path, Path)]
    task = read_task(task_name, given[0] if given else find_by_suffix(data, corpus) or data)
    return TuningPlan(task, options.seeds, settings)


def tabulate_scores(runs: Runs, model: "Model") -> xr.Dataset:
    """The scores of runs of a model: ``f1``, ``accuracy``; of a control also ``task_f1`` at the task itself."""
    of_runs = [
        dict(run.scores[TEST]) | {f"task_{name}": score for name, score in run.scores.get(ON_TASK, {}).items()}
        for run in runs.runs
    ]
    variables = {}
    for name in of_runs[0]:
        values = np.array([scores[name] for scores in of_runs])
        variables[name] = heads.variable(values, ("run",), name=name.replace("_", " "), units="score", source=SOURCE)
    return xr.Dataset(
        variables,
        coords={"run": [run.name for run in runs.runs], "seed": ("run", [run.seed for run in runs.runs])},
        attrs={"model": model.name, "weights_sha256": model.weights_sha256, "corpus_sha256": "", "task": runs.task},
    )
