"""Fine-tuning of a model on a task and on its control, with several seeds each.

A run is trained in ``.seed-K.unfinished``, with Trainer's checkpoints in it. When it is finished, its model is renamed
to ``seed-K`` in one step and listed in ``runs.json``: a kill at any time loses at most one epoch, and no finished run.
"""

import hashlib
import importlib.util
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from headscope import runs as files
from headscope.capture.open.loading import Loadable
from headscope.errors import HeadscopeError, say_missing
from headscope.files import LOCK, reserve
from headscope.learn.control import make_control
from headscope.learn.encode import Features, encode
from headscope.learn.runs_folder import (
    check_folder,
    explain_disk_errors,
    list_unfinished,
    remove_leftovers,
    unfinished_path,
)
from headscope.learn.splits import merge_validation, sample_training
from headscope.learn.task import SPLITS, TEST, TRAIN, VALIDATION, Example, Task
from headscope.learn.training_settings import Settings, check_seeds
from headscope.learn.validation import check
from headscope.results import Facts, Result
from headscope.runner.provenance import list_versions
from headscope.runs import CONTROL, ON_TASK, Run, Runs

COMPARED = ("examples_sha256", "epochs", "learning_rate", "batch_size", "precision", "max_tokens")
"""The names of the settings that all runs of a folder must share."""

PACKAGES = ("headscope", "torch", "transformers", "tokenizers", "accelerate")
"""The packages whose versions are recorded in the list of runs."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, repr=False)
class Tuned(Result):
    """The runs in the folder of `tune`, including runs of earlier calls.

    Attributes:
        task: The runs on the task.
        control: The runs on the control; None without a control. Their scores have an extra split, `ON_TASK`.
    """

    task: Runs
    control: Runs | None = None

    @property
    def facts(self) -> Facts:
        """The task, the model, the metric, the scores of the runs, and the folder."""
        control = None if self.control is None else self.control.scores
        return {
            "task": self.task.task, "model": self.task.model, "metric": self.task.metric, "runs": self.task.scores,
            "control": control, "folder": self.task.folder,
        }  # fmt: skip


def tune(
    task: Task,
    model: Loadable,
    out: str | Path,
    settings: Settings,
    *,
    seeds: int | Sequence[int],
    control: bool | Task = False,
    trust_remote_code: bool = False,
    resume: bool = False,
    progress: Progress | None = None,
) -> Tuned:
    """Fine-tune a model on a task, once for each seed, and on its control if there is one.

    The weights of the best epoch on the selected split are saved. The same seed gives the same weights on the same
    machine; a GPU may add numbers in another order, so that the last digits differ.

    The arguments are the same as for `headscope.tune`. A task is learnt as a softmax over its labels for each word
    piece or for the whole example, or as one number. The runs of the control (`headscope.learn.make_control`), in the
    folder ``control`` in `out`, are also scored on the task's own test split (Zhao and Bethard 2020, table 2). If
    epochs are chosen on ``test``, a given control must be a control of the task from
    `headscope.learn.splits.merge_validation`, so that all training examples have its labels. `progress` is called with
    a label and the numbers of training words done and in total.

    Raises:
        HeadscopeError: The seeds, the task or the folder is refused, before anything is trained; the runs of the folder
            have other settings; or the loss of a run is not finite (runs that finished before stay).
        ModelError: The model cannot be loaded, or cannot learn the task.
    """
    progress = progress or (lambda label, done, total: None)
    out = Path(out)
    seeds = range(1, seeds + 1) if isinstance(seeds, int) else seeds
    check_seeds(seeds)
    if settings.select == TEST:  # before the control is made from the training labels
        task = merge_validation(task)
    if settings.max_examples is not None:
        task = sample_training(task, settings.max_examples)
    if control is True:
        control = make_control(task)
    variants = [(task, out), *([(control, out / CONTROL)] if control else [])]
    for variant, folder in variants:
        check(variant, settings.select)
        check_folder(folder, resume)
    if control:
        _check_control(task, control, settings.select)
    _check_extras()

    # transformers' Trainer needs the extra `tune`.
    from headscope.learn.training import Pretrained, join_processes, settle_device

    settings = settle_device(settings)
    processes = join_processes(settings.device)
    with reserve(out, out / LOCK) if processes.is_main_process else nullcontext():
        progress("loading the model", 0, 0)
        pretrained = Pretrained.from_model(model, task, device=settings.device, trust_remote_code=trust_remote_code)
        limits = (pretrained.max_tokens, settings.max_tokens)
        longest = min((limit for limit in limits if limit is not None), default=None)
        run_sets = []
        for variant, folder in variants:
            progress(f"tokenizing {_task_name(variant)}", 0, 0)
            run_sets.append(_RunSet.prepare(variant, task, folder, pretrained, settings, longest))
        present = [run_set.load_runs(seeds) for run_set in run_sets]  # before any of them is trained
        processes.wait_for_everyone()
        trained = [run_set.train(runs, seeds, progress) for run_set, runs in zip(run_sets, present, strict=True)]
    return Tuned(*trained)


@dataclass(frozen=True, eq=False)
class _RunSet:
    """The runs on one task: the examples as tokens, and the folder of the runs."""

    task: Task
    judged: Task
    folder: Path
    pretrained: Any
    settings: Settings
    trained: Sequence[Features]
    scored: Mapping[str, Sequence[Features]]
    words: int
    stored_settings: Mapping[str, Any]

    @classmethod
    def prepare(
        cls, task: Task, main: Task, folder: Path, pretrained: Any, settings: Settings, longest: int | None
    ) -> "_RunSet":
        """Encode the examples of a task or its control, cut to `longest` tokens; `main` is the task itself."""
        splits = {name: task.splits[name] for name in SPLITS if (name, settings.select) != (VALIDATION, TEST)}
        if task is not main:
            splits[ON_TASK] = main.splits[TEST]
        encoded, skipped = {}, {}
        for name, examples in splits.items():
            reasons: Counter[str] = Counter()
            encoded[name] = encode(task, examples, pretrained.tokenizer, longest, reasons)
            skipped[name] = {reason: count for reason, count in reasons.items() if count}
            if not encoded[name]:
                raise HeadscopeError(
                    f"the {name} split of {task.name} is empty after its examples are cut to {longest} tokens; "
                    "allow more."
                )
        # The selected split is stored next to the settings, and the sample's size with the skipped examples.
        stored_settings = {
            **{name: value for name, value in asdict(settings).items() if name not in ("select", "max_examples")},
            "max_tokens": longest,
            "text": task.text,
            "examples": {name: len(examples) for name, examples in encoded.items()},
            "examples_sha256": hashlib.sha256(
                repr((task.kind, task.labels, _drop_folders(splits))).encode()
            ).hexdigest(),
            "skipped": {"reading": dict(task.skipped), **skipped},
            "notes": list(task.notes),
            "source": dict(task.source),
            "versions": list_versions(PACKAGES),
        }
        words = sum(len(e.words) + sum(len(text.split()) for text in e.texts) for e in splits[TRAIN])
        trained = encoded.pop(TRAIN)
        # On the task itself, a control run is scored like a run on the task.
        judged = replace(task, positive=main.positive)
        return cls(task, judged, folder, pretrained, settings, trained, encoded, words, stored_settings)

    def load_runs(self, seeds: Sequence[int]) -> Runs:
        """Return the finished runs of the folder; if the folder has none, return an empty list of runs."""
        wanted = Runs(
            self.folder, self.task.name, self.task.control, self.pretrained.name, self.pretrained.weights_sha256,
            self.settings.select, self.task.metric, self.stored_settings, (),
        )  # fmt: skip
        leftovers = list_unfinished(self.folder)
        is_listed = (self.folder / files.FILE).is_file()
        if leftovers and not is_listed:
            raise HeadscopeError(
                f"{self.folder} holds {leftovers[0]}, and no {files.FILE} that says what is tuned there; move it away, "
                "or name another folder."
            )
        runs = files.read(self.folder, empty=True) if is_listed else wanted
        if not runs.runs and not leftovers:
            runs = wanted
        old_settings, new_settings = _comparable_settings(runs), _comparable_settings(wanted)
        if differences := [
            f"{name} was {_shorten(old_settings[name])} and is {_shorten(new)}"
            for name, new in new_settings.items()
            if old_settings[name] != new
        ]:
            raise HeadscopeError(
                f"the runs in {self.folder} have other settings: {'; '.join(differences)}; use the same settings, or "
                "name another folder."
            )
        finished, names = {run.seed for run in runs.runs}, {run.name for run in runs.runs}
        for name in [_run_name(seed) for seed in seeds if seed not in finished]:
            if (self.folder / name).exists() and (name in names or not unfinished_path(self.folder, name).exists()):
                raise HeadscopeError(
                    f"{self.folder / name} is in the way: {files.FILE} does not list it as the finished run of that "
                    "seed; move it away, or name another folder."
                )
        return runs

    def train(self, runs: Runs, seeds: Sequence[int], progress: Progress) -> Runs:
        """Train the runs that are missing, and list each run as soon as it is finished."""
        from headscope.learn.training import fit, join_processes

        processes = join_processes(self.settings.device)
        if processes.is_main_process:
            remove_leftovers(runs)
        finished, words = {run.seed for run in runs.runs}, self.words * self.settings.epochs
        for number, seed in enumerate(seeds, start=1):
            if seed in finished:
                continue
            name = _run_name(seed)
            folder = unfinished_path(self.folder, name)
            label = f"tuning {name} on {_task_name(self.task)} ({number} of {len(seeds)})"
            if processes.is_main_process:
                files.write(runs)
                folder.mkdir(exist_ok=True)
            processes.wait_for_everyone()

            def show_progress(done: int, steps: int, label: str = label) -> None:
                progress(label, words * done // steps, words)

            fitted = fit(
                self.pretrained, self.judged, self.trained, self.scored, folder, name=name, seed=seed,
                settings=self.settings,
                progress=show_progress,
            )  # fmt: skip
            if processes.is_main_process:
                self._finish(runs, name, seed, fitted)
            processes.wait_for_everyone()
            runs = files.read(self.folder)
        return runs

    def _finish(self, runs: Runs, name: str, seed: int, fitted: Any) -> None:
        """Copy a finished run to its final folder, list it, and only then remove its checkpoints."""
        from headscope.capture.model.weights import sha256_of_weights
        from headscope.learn.training import copy_model

        folder, destination = unfinished_path(self.folder, name), self.folder / name
        weights = sha256_of_weights(fitted.checkpoint)
        if not destination.exists():
            with explain_disk_errors(folder, name):
                shutil.rmtree(folder / "whole", ignore_errors=True)
                copy_model(fitted.checkpoint, folder / "whole")
                (folder / "whole").rename(destination)
        elif sha256_of_weights(destination) != weights:  # else it is this run, killed before it was listed
            raise HeadscopeError(
                f"{destination} is in the way, with other weights; move it away, and add --resume to go on."
            )
        run = Run(name, seed, fitted.best_epoch, fitted.epochs, weights, fitted.predicted)
        files.write(replace(runs, runs=tuple(sorted((*runs.runs, run), key=lambda run: run.seed))))
        shutil.rmtree(folder, ignore_errors=True)


def _check_control(task: Task, control: Task, select: str) -> None:
    if (control.kind, control.labels) != (task.kind, task.labels) or not control.control:
        raise HeadscopeError(
            f"{control.name!r} is not a control of {task.name!r}: a control has the kind and the labels of its task; "
            "make it with make_control."
        )
    if select == TEST and control.splits.get(VALIDATION):
        raise HeadscopeError(
            f"the control of {task.name} holds out {len(control.splits[VALIDATION])} examples for validation, and "
            "epochs are chosen on test; make it with make_control(merge_validation(task))."
        )


def _check_extras() -> None:
    for package, name in {"accelerate": "accelerate", "sklearn": "scikit-learn"}.items():
        if importlib.util.find_spec(package) is None:
            raise HeadscopeError(say_missing(f"tuning needs {name}", "tune"))


def _comparable_settings(runs: Runs) -> dict[str, Any]:
    names = ("weights_sha256", "select", "metric")
    return (
        {"task": _task_name(runs)}
        | {name: getattr(runs, name) for name in names}
        | {name: runs.settings.get(name) for name in COMPARED}
    )


def _drop_folders(splits: Mapping[str, Sequence[Example]]) -> dict[str, tuple[Example, ...]]:
    """Return the splits with example names without folders, which may change before a run is resumed."""
    return {
        name: tuple(replace(example, name=PurePath(example.name).name) for example in examples)
        for name, examples in splits.items()
    }


def _run_name(seed: int) -> str:
    return f"seed-{seed}"


def _task_name(task: Task | Runs) -> str:
    name = task.name if isinstance(task, Task) else task.task
    return f"the control of {name}" if task.control and not name.endswith("control") else name


def _shorten(value: Any) -> str:
    return f"{value[:12]}..." if isinstance(value, str) and len(value) == 64 else str(value)
