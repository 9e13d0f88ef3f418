"""A folder of runs: models that were fine-tuned on one task with different seeds.

``runs.json`` lists for each run its seed, its scores after each epoch, the epoch whose weights were saved, and the
split on which that epoch was chosen. Next to it, each run has a folder of its name with its model.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from headscope.errors import HeadscopeError, quote
from headscope.files import check_regular, find_name_fault, is_plain, parse_json, write_text
from headscope.guards.formats import RUNS, read_bytes
from headscope.predictions import Predictions

FILE = "runs.json"
"""The file that lists the runs of a folder."""

CONTROL = "control"
"""The folder of the control's runs, inside the folder of the task's runs."""

TEST = "test"
"""The name of the split on which runs are scored at the end."""

ON_TASK = "task"
"""The name of the extra split of a control run: the test split of the task itself."""

VERSION = 2
"""The version of `FILE`. Version 1 had ``format`` for ``version`` and ``kept`` for ``best_epoch``."""


@dataclass(frozen=True)
class Run:
    """One model that was fine-tuned with one seed.

    Attributes:
        name: the name of its folder, and its label in the dimension ``run``.
        seed: the random seed for the order of the examples, dropout, and the weights of the new layer.
        best_epoch: the epoch whose weights were saved, counted from 1.
        epochs: for each epoch, the score of each split by name: ``{"validation": {"f1": 0.9}, "test": ...}``. A run on
            a control also has a split ``task``: its scores on the test split of the task itself.
        weights_sha256: the SHA-256 of ``model.safetensors``.
        predicted: for each split, the predictions of the best epoch (`headscope.predictions.count_predictions`); empty
            for a regression, and for runs of older versions.
    """

    name: str
    seed: int
    best_epoch: int
    epochs: tuple[Mapping[str, Mapping[str, float]], ...]
    weights_sha256: str
    predicted: Mapping[str, Predictions] = field(default_factory=dict)

    @property
    def scores(self) -> Mapping[str, Mapping[str, float]]:
        """The scores of each split in the best epoch, by name of the split and of the score."""
        return self.epochs[self.best_epoch - 1]


@dataclass(frozen=True)
class Runs:
    """The runs of a folder, with their task and settings.

    Attributes:
        folder: the path of the folder.
        task: the task on which the models were tuned.
        control: true if this is the task's control, whose labels are arbitrary.
        model: the model from which they were tuned, as the user named it.
        weights_sha256: the SHA-256 of that model's weights.
        select: the split on which epochs were chosen: ``validation``, or ``test`` as in Zhao and Bethard 2020.
        metric: the score by which epochs were chosen.
        settings: epochs, learning rate and so on, with the files of the task and the skipped examples.
        runs: the finished runs, by seed.
    """

    folder: Path
    task: str
    control: bool
    model: str
    weights_sha256: str
    select: str
    metric: str
    settings: Mapping[str, Any]
    runs: tuple[Run, ...]

    @property
    def scores(self) -> Mapping[str, float]:
        """The score of each run in its best epoch, by name: on the test split or, without it, on `select`."""
        best = {run.name: run.scores for run in self.runs}
        return {name: splits[TEST if TEST in splits else self.select][self.metric] for name, splits in best.items()}

    def path(self, run: Run) -> Path:
        """Return the folder of a run's model."""
        return self.folder / run.name


def read(folder: "str | Path | Runs", *, empty: bool = False) -> Runs:
    """Read the list of finished runs in a folder.

    Args:
        folder: the folder, or its runs, which are returned unchanged.
        empty: accept a folder that has no finished run yet.

    Raises:
        HeadscopeError: `FILE` is missing, is damaged, has another version, lists no run or lists a run twice, or the
            model of a run is missing.
    """
    if isinstance(folder, Runs):
        return folder
    if not isinstance(folder, str | Path):
        raise HeadscopeError(
            f"the runs are of type {type(folder).__name__}; give a folder that `headscope tune` wrote."
        )
    folder = Path(folder)
    path = folder / FILE
    check_regular(path)
    if not path.is_file():
        raise HeadscopeError(f"{folder} holds no {FILE}; give a folder that `headscope tune` wrote.")
    content = read_bytes(path, RUNS)
    try:
        stored = parse_json(content)
        version = stored.pop("version", None) or stored["format"]
        if version != VERSION:
            wanted = f"this headscope reads version {VERSION}; tune again into another folder"
            raise HeadscopeError(f"{path} has version {version!r:.60}, and {wanted}.")
        _check_kinds(stored, _KINDS)
        finished = tuple(_parse_run(run) for run in stored.pop("runs"))
        runs = Runs(folder=folder, runs=finished, **stored)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise HeadscopeError(f"{path} is damaged ({error}); copy it again, or tune again.") from error
    if not runs.runs and not empty:
        raise HeadscopeError(f"{path} lists no finished run; go on with `headscope tune --resume`.")
    for name in ("name", "seed"):
        if repeated := [value for value, n in Counter(getattr(run, name) for run in finished).items() if n > 1]:
            raise HeadscopeError(
                f"{path} lists the {name} {repeated[0]} more than once; runs differ in their seeds, so take one out."
            )
    for run in finished:
        if not any(runs.path(run).glob("model*.safetensors")):  # a large model has several files
            raise HeadscopeError(
                f"{path} lists the run {run.name}, but {runs.path(run)} holds no model.safetensors; copy that folder "
                "again, or take the run out of the list."
            )
    return runs


_KINDS = {
    "task": str, "control": bool, "model": str, "weights_sha256": str, "select": str, "metric": str, "settings": dict,
    "runs": list,
}  # fmt: skip
_MAX_SEED = 2**63 - 1
_KINDS_OF_RUN = {"name": str, "seed": int, "best_epoch": int, "epochs": list, "weights_sha256": str}


def _parse_run(stored: Any) -> Run:
    if not isinstance(stored, dict):
        raise ValueError(f"a run is {stored!r:.60}")
    _check_kinds(stored, _KINDS_OF_RUN)
    name, epochs = stored["name"], stored["epochs"]
    if name in ("", "..") or Path(name).name != name:
        raise ValueError(f"the run {quote(name)} is not named as a folder next to it")
    if fault := find_name_fault(name):
        raise ValueError(f"the name {quote(name)} {fault}")
    if not -_MAX_SEED <= stored["seed"] <= _MAX_SEED:
        raise ValueError(f"the seed of {name} is no number of 64 bits")
    if not 1 <= stored["best_epoch"] <= len(epochs):
        raise ValueError(f"the best epoch of {name} is {stored['best_epoch']}, and it lists {len(epochs)}")
    for score in (score for epoch in epochs for scores in epoch.values() for score in scores.values()):
        if type(score) not in (int, float) or not math.isfinite(score):
            raise ValueError(f"{name} has the score {score!r:.60}")
    for counts in stored.get("predicted", {}).values():
        if not {"texts", "labels"} <= counts.keys() or not isinstance(counts["labels"], dict):
            raise ValueError(f"{name} has the predictions {counts!r:.60}")
    return Run(**{**stored, "epochs": tuple(epochs)})


def _check_kinds(stored: dict[str, Any], kinds: Mapping[str, type]) -> None:
    for name, kind in kinds.items():
        value = stored[name]
        if type(value) is not kind or (isinstance(value, str) and not is_plain(value)):
            raise ValueError(f"{name} is {value!r:.60}")


def write(runs: Runs) -> Path:
    """Write the list of runs to `FILE` in their folder, completely or not at all, and return its path."""
    stored = {name: value for name, value in asdict(runs).items() if name != "folder"}
    path = runs.folder / FILE
    write_text(json.dumps({"version": VERSION, **stored}, indent=2) + "\n", path)
    return path


def selectivity(task: Runs, control: Runs) -> dict[int, float]:
    """Return the accuracy on the task minus the accuracy on its control, on the test splits, by seed.

    The difference is a share of the examples (Hewitt and Liang 2019, section 2). Runs are paired by their seeds. Seeds
    that only one of the two has, and runs without an accuracy (regressions), are left out.
    """
    task_scores, control_scores = (
        {run.seed: run.scores[TEST]["accuracy"] for run in runs.runs if "accuracy" in run.scores.get(TEST, {})}
        for runs in (task, control)
    )
    return {seed: task_scores[seed] - control_scores[seed] for seed in task_scores if seed in control_scores}
