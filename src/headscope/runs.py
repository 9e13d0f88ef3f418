"""A folder of runs: models that were fine-tuned on one task and differ in their seeds.

``runs.json`` says of each run which seed it had, how it scored after each epoch, which epoch was kept, and on which
split that was decided; the model of a run is in a folder of the run's name beside it.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headscope.disk import reading, replacing
from headscope.errors import HeadscopeError

FILE = "runs.json"
"""Lists the runs of a folder."""

FORMAT = 1
"""The version of `FILE`. A file of another version is refused."""


@dataclass(frozen=True)
class Run:
    """One fine-tuned model.

    Attributes:
        name: of its folder, and of its place in the dimension ``run``.
        seed: of the order of the examples, of dropout, and of the weights of the new layer.
        kept: the epoch whose weights were kept, counted from 1.
        epochs: for each epoch, the score of each split by name: ``{"validation": {"f1": 0.9}, "test": ...}``.
        weights_sha256: of ``model.safetensors``.
    """

    name: str
    seed: int
    kept: int
    epochs: tuple[Mapping[str, Mapping[str, float]], ...]
    weights_sha256: str

    @property
    def scores(self) -> Mapping[str, Mapping[str, float]]:
        """The scores of the epoch that was kept."""
        return self.epochs[self.kept - 1]


@dataclass(frozen=True)
class Runs:
    """The runs of a folder.

    Attributes:
        folder: where they are.
        task: what they were tuned on.
        control: it was the task's control, whose labels are arbitrary.
        model: what they were tuned from, as the user named it.
        weights_sha256: of that model.
        select: the split on which epochs were chosen: ``validation``, or ``test`` as in Zhao and Bethard 2020.
        metric: the score by which they were chosen.
        settings: epochs, learning rate and the rest, with the files of the task and what was left out.
        runs: those that are finished, by seed.
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

    def path(self, run: Run) -> Path:
        """The folder of a run's model."""
        return self.folder / run.name


def read(folder: str | Path) -> Runs:
    """The finished runs of a folder.

    Raises:
        HeadscopeError: there is no `FILE`, it is damaged or of another version, or the model of a run is not there.
    """
    folder = Path(folder)
    path = folder / FILE
    if not path.is_file():
        raise HeadscopeError(f"{folder} holds no {FILE}; give a folder that `headscope tune` wrote.")
    with reading(path) as file:
        content = file.read()
    try:
        stored = json.loads(content)
        version = stored.pop("format")
        if version != FORMAT:
            raise HeadscopeError(f"{path} has format {version}, and this headscope reads format {FORMAT}; tune again.")
        runs = tuple(Run(**{**run, "epochs": tuple(run["epochs"])}) for run in stored.pop("runs"))
        found = Runs(folder=folder, runs=runs, **stored)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise HeadscopeError(f"{path} is damaged ({error}); copy it again, or tune again.") from error
    for run in found.runs:
        if not (found.path(run) / "model.safetensors").is_file():
            raise HeadscopeError(
                f"{path} lists the run {run.name}, but {found.path(run)} holds no model.safetensors; copy that folder "
                "again, or take the run out of the list."
            )
    return found


def write(runs: Runs) -> Path:
    """Write `FILE`, whole or not at all."""
    stored = {name: value for name, value in asdict(runs).items() if name != "folder"}
    path = runs.folder / FILE
    with replacing(path) as temporary:
        temporary.write_text(json.dumps({"format": FORMAT, **stored}, indent=2) + "\n", encoding="utf-8")
    return path
