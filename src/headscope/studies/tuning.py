"""The fine-tuning of a study, or finished runs in its place, and their scores as tables.

These tables are ``tuned_task`` and ``tuned_control``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from headscope import heads
from headscope.corpora import Corpus
from headscope.errors import HeadscopeError
from headscope.files import find_by_suffix
from headscope.learn.task import TEST, VALIDATION, Task
from headscope.learn.tasks import read_task
from headscope.learn.training_settings import Settings
from headscope.runs import CONTROL, FILE, ON_TASK, Runs
from headscope.runs import read as read_runs
from headscope.studies.study import Study

if TYPE_CHECKING:  # errors in options are raised without the import of torch
    from headscope.capture.model.model import Model

SOURCE = "scores of the fine-tuned models on the test split, in their best epoch"


@dataclass(frozen=True)
class TuningOptions:
    """The options of a study's fine-tuning, which are arguments of `headscope.study`."""

    seeds: int | None
    epochs: int | None
    learning_rate: float | None
    task: str
    max_examples: int | None
    select: str
    runs: Path | None = None

    @property
    def are_given(self) -> bool:
        """Whether an option on how to train is given, other than the number of runs."""
        numbers = (self.epochs, self.learning_rate, self.max_examples)
        return bool(self.task) or numbers != (None, None, None) or self.select != VALIDATION


@dataclass(frozen=True)
class TuningPlan:
    """The task on which a study fine-tunes, and the settings; the device is that of the model.

    Attributes:
        task: the task.
        seeds: the number of runs.
        settings: the settings of the training.
        finished: runs that are measured in place of new ones, by group: ``task`` and ``control``.
    """

    task: Task
    seeds: int = 0
    settings: Settings = field(default_factory=Settings)
    finished: Mapping[str, Runs] = field(default_factory=dict)


def plan_tuning(
    name: str, study: Study, options: TuningOptions, data: Path, corpora: Mapping[str, Path | Corpus]
) -> TuningPlan | None:
    """Return the plan of a study's fine-tuning; None if the options have neither seeds nor runs.

    The task is read from the file in `corpora` if its corpus is there, else from `data`.

    Raises:
        HeadscopeError: the study fine-tunes nothing, or not on this task, or an option makes training impossible; or
            the runs are not those of the study and of its control.
        CorpusError: the corpus is missing, or cannot be read.
    """
    tuning = study.tuning
    if options.runs is not None:
        if options.seeds is not None or options.are_given:
            raise HeadscopeError("runs are measured as they are; give --runs alone, or --seeds and how to train.")
        finished = _read_finished(name, study, options.runs)
        return TuningPlan(_read_task(study, finished["task"].task, data, corpora), finished=finished)
    if options.seeds is None:
        if options.are_given:
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
    return TuningPlan(_read_task(study, options.task or tuning.tasks[0], data, corpora), options.seeds, settings)


def _read_finished(name: str, study: Study, folder: Path) -> dict[str, Runs]:
    """Return the runs on a task and on its control in a folder of `headscope.tune`, as ``task`` and ``control``."""
    if study.tuning is None:
        raise HeadscopeError(f"the study {name} fine-tunes nothing; leave out --runs.")
    of_task = read_runs(folder)
    if of_task.task not in study.tuning.tasks or of_task.control:
        runs = f"runs on {'the control of ' if of_task.control else ''}{of_task.task}"
        raise HeadscopeError(
            f"{folder} holds {runs}, and the study {name} needs some on {' or '.join(study.tuning.tasks)}; name their "
            "folder."
        )
    if not (folder / CONTROL / FILE).is_file():
        raise HeadscopeError(
            f"{folder} holds no runs on the control of {of_task.task}, which the study shows next to those on the "
            "task; tune them with `headscope tune --control --resume`."
        )
    return {"task": of_task, "control": read_runs(folder / CONTROL)}


def _read_task(study: Study, task: str, data: Path, corpora: Mapping[str, Path | Corpus]) -> Task:
    """Return a task of the study, from the file in `corpora` if its corpus is there, else from `data`."""
    assert study.tuning is not None
    corpus = study.tuning.corpora[task]
    of_task = [corpora.get(table) for table in study.tuning.measured if study.measurements[table].corpus == corpus]
    given = [path for path in of_task if isinstance(path, Path)]
    return read_task(task, given[0] if given else find_by_suffix(data, corpus) or data)


def tabulate_scores(runs: Runs, model: "Model") -> xr.Dataset:
    """Return the scores of runs of a model: ``f1``, ``accuracy``; for a control also ``task_f1`` on the task itself."""
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
