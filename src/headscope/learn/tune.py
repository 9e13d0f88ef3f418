"""Fine-tune a model on a task and on its control, several seeds each.

A run is made in ``.seed-K.unfinished``, with Trainer's checkpoints in it. When it is finished its model is moved to
``seed-K`` in one rename and listed in ``runs.json``: a kill at any time loses an epoch at most, and no finished run.
"""

import hashlib
import importlib.util
import platform
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path, PurePath
from typing import Any

from headscope import runs as files
from headscope.errors import HeadscopeError
from headscope.learn.encode import Features, encode
from headscope.learn.folder import alone, check_folder, clear, making, unfinished, written
from headscope.learn.splits import without_validation
from headscope.learn.task import SPLITS, TEST, TRAIN, VALIDATION, Example, Task
from headscope.learn.validation import SELECT, check
from headscope.runs import Run, Runs

CONTROL = "control"
"""The folder of the control's runs, within that of the task's."""

ON_TASK = "task"
"""Under this name a control run's scores on the test split of the task itself are listed, beside its own splits."""

PRECISIONS = ("float32", "bfloat16", "float16")
"""Of the numbers in training; the last two are mixed with the first."""

LEAST_TOKENS = 5
"""A pair of words and three special tokens."""

COMPARED = ("examples_sha256", "epochs", "learning_rate", "batch_size", "precision", "max_tokens")
"""The settings in which all runs of a folder agree."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Tuned:
    """What `tune` made, or found to be there.

    Attributes:
        task: the runs on the task.
        control: those on its control, if it was asked for; their scores have one split more, `ON_TASK`.
    """

    task: Runs
    control: Runs | None = None


def tune(
    task: Task,
    model: str | Path,
    out: str | Path,
    *,
    seeds: Sequence[int],
    control: Task | None = None,
    epochs: int = 8,
    learning_rate: float = 4e-5,
    batch_size: int = 16,
    select: str = VALIDATION,
    max_tokens: int | None = None,
    precision: str = "float32",
    device: str = "cpu",
    trust_remote_code: bool = False,
    resume: bool = False,
    progress: Progress | None = None,
) -> Tuned:
    """Fine-tune a model on a task, once for each seed, and on its control if there is one.

    The epoch that is best on `select` is kept. The same seed gives the same weights on the same machine; a GPU may
    add numbers in another order, and differ in the last digits.

    Args:
        task: what to learn; a softmax over its labels for each word piece or for the whole, or one number.
        model: a hub id, a folder, or ``minilm``.
        out: the folder for ``runs.json`` and a folder for each run; the control's are in ``control`` in it.
        seeds: a run each, of the new layer, of dropout and of the order of the examples.
        control: the same inputs with arbitrary labels (`headscope.learn.control.control_of`). Its runs are also scored
            on the task's own test split (Zhao and Bethard 2020, table 2). Where epochs are chosen on ``test`` it is to
            be made of `headscope.learn.splits.without_validation`, so that all that is trained on has its labels.
        epochs: how often all training examples are seen.
        learning_rate: of AdamW at the first step; it falls to 0 in a straight line.
        batch_size: examples of a step, on each device.
        select: ``validation``, or ``test``: then the model is trained on the validation split too, and the epoch is
            the best on the test split, as in Zhao and Bethard 2020, section 5.2, whose scores are so a little too good.
        max_tokens: of an example, special tokens included; what is longer is cut, and counted. Default: what the
            model takes.
        precision: ``float32``, or ``bfloat16`` or ``float16`` for mixed precision.
        device: ``cpu``, or ``cuda`` for all GPUs that are visible.
        trust_remote_code: run the Python that a hub repository brings. Never done unasked.
        resume: go on in a folder that has runs: finished ones are kept as they are, one that was killed goes on from
            its last epoch, and missing seeds are added.
        progress: told of the progress, in words that were trained on.

    Raises:
        HeadscopeError: an argument, the task or the folder is refused, before anything is trained; the runs of the
            folder are of other settings; or the loss of a run is no number, which the runs finished before survive.
        ModelError: the model cannot be loaded, or is not one for the task.
    """
    progress = progress or (lambda stage, done, total: None)
    out = Path(out)
    _check_arguments(seeds, epochs, learning_rate, batch_size, select, precision, device, max_tokens)
    if select == TEST:
        task = without_validation(task)
    asked = [(task, out), *([(control, out / CONTROL)] if control else [])]
    for one, folder in asked:
        check(one, select)
        check_folder(folder, resume)
    if control is not None:
        _check_control(task, control, select)
    _check_extras()

    from headscope.learn.training import Pretrained, Settings, processes  # transformers' Trainer needs the extra

    progress("loading the model", 0, 0)
    pretrained = Pretrained.of(model, task, device=device, trust_remote_code=trust_remote_code)
    settings = Settings(epochs, learning_rate, batch_size, precision, device)
    longest = min((limit for limit in (pretrained.max_tokens, max_tokens) if limit is not None), default=None)
    families = []
    for one, folder in asked:
        progress(f"tokenizing {_called(one)}", 0, 0)
        families.append(_Family.of(one, task, folder, pretrained, settings, select, longest))
    together = processes(device)
    with alone(out) if together.is_main_process else nullcontext():
        begun = [family.begun(seeds) for family in families]  # before any of them is trained
        together.wait_for_everyone()
        made = [family.train(runs, seeds, progress) for family, runs in zip(families, begun, strict=True)]
    return Tuned(*made)


@dataclass(frozen=True, eq=False)
class _Family:
    """The runs on one task: what they are trained and scored on, and the folder for them."""

    task: Task
    judged: Task
    folder: Path
    pretrained: Any
    settings: Any
    select: str
    trained: Sequence[Features]
    scored: Mapping[str, Sequence[Features]]
    words: int
    facts: Mapping[str, Any]

    @classmethod
    def of(
        cls, task: Task, main: Task, folder: Path, pretrained: Any, settings: Any, select: str, max_tokens: int | None
    ) -> "_Family":
        splits = {name: task.splits[name] for name in SPLITS if (name, select) != (VALIDATION, TEST)}
        if task is not main:
            splits[ON_TASK] = main.splits[TEST]
        encoded, skipped = {}, {}
        for name, examples in splits.items():
            counted: Counter[str] = Counter()
            encoded[name] = encode(task, examples, pretrained.tokenizer, max_tokens, counted)
            skipped[name] = {reason: count for reason, count in counted.items() if count}
            if not encoded[name]:
                raise HeadscopeError(
                    f"the {name} split of {task.name} is empty once it is cut to {max_tokens} tokens an example; "
                    "allow more."
                )
        facts = {
            **asdict(settings),
            "max_tokens": max_tokens,
            "examples": {name: len(examples) for name, examples in encoded.items()},
            "examples_sha256": hashlib.sha256(repr((task.kind, task.labels, _anywhere(splits))).encode()).hexdigest(),
            "skipped": {"reading": dict(task.skipped), **skipped},
            "notes": list(task.notes),
            "source": dict(task.source),
            "versions": _versions(),
        }
        words = sum(len(e.words) + sum(len(text.split()) for text in e.texts) for e in splits[TRAIN])
        trained = encoded.pop(TRAIN)
        # On the task itself a control run is judged as the task is.
        judged = replace(task, positive=main.positive)
        return cls(task, judged, folder, pretrained, settings, select, trained, encoded, words, facts)

    def begun(self, seeds: Sequence[int]) -> Runs:
        """The runs of the folder as they stand, none if there are none yet.

        Raises:
            HeadscopeError: they are of another task, model or settings, or a folder is in the way of a run's.
        """
        wanted = Runs(
            self.folder, self.task.name, self.task.control, self.pretrained.name, self.pretrained.weights_sha256,
            self.select, self.task.metric, self.facts, (),
        )  # fmt: skip
        there = unfinished(self.folder)
        listed = (self.folder / files.FILE).is_file()
        if there and not listed:
            raise HeadscopeError(
                f"{self.folder} holds {there[0]}, and no {files.FILE} that says what is tuned there; move it away, or "
                "name another folder."
            )
        found = files.read(self.folder, empty=True) if listed else wanted
        if not found.runs and not there:
            found = wanted
        before, now = _compared(found), _compared(wanted)
        if different := [name for name in now if before[name] != now[name]]:
            told = "; ".join(f"{name} was {_short(before[name])} and is {_short(now[name])}" for name in different)
            raise HeadscopeError(
                f"the runs in {self.folder} are not what is asked for now: {told}; ask for the same, or name another "
                "folder."
            )
        finished, names = {run.seed for run in found.runs}, {run.name for run in found.runs}
        for name in [_name(seed) for seed in seeds if seed not in finished]:
            if (self.folder / name).exists() and (name in names or not making(self.folder, name).exists()):
                raise HeadscopeError(
                    f"{self.folder / name} is in the way: {files.FILE} does not list it as the finished run of that "
                    "seed; move it away, or name another folder."
                )
        return found

    def train(self, runs: Runs, seeds: Sequence[int], progress: Progress) -> Runs:
        """Train the runs that are missing, and list each as soon as it is finished."""
        from headscope.learn.training import fit, processes

        together = processes(self.settings.device)
        if together.is_main_process:
            clear(runs)
        finished = {run.seed for run in runs.runs}
        for number, seed in enumerate(seeds, start=1):
            if seed in finished:
                continue
            name = _name(seed)
            made = making(self.folder, name)
            stage = f"tuning {name} on {_called(self.task)} ({number} of {len(seeds)})"
            if together.is_main_process:
                files.write(runs)
                made.mkdir(exist_ok=True)
            together.wait_for_everyone()
            fitted = fit(
                self.pretrained, self.judged, self.trained, self.scored, made, name=name, seed=seed, select=self.select,
                settings=self.settings, progress=_in_words(progress, stage, self.words * self.settings.epochs),
            )  # fmt: skip
            if together.is_main_process:
                self._keep(runs, name, seed, fitted)
            together.wait_for_everyone()
            runs = files.read(self.folder)
        return runs

    def _keep(self, runs: Runs, name: str, seed: int, fitted: Any) -> None:
        """Move a finished run to its place, list it, and only then remove what it was made from."""
        from headscope.capture.model import sha256_of_weights
        from headscope.learn.training import without_state

        made, place = making(self.folder, name), self.folder / name
        weights = sha256_of_weights(fitted.checkpoint)
        if not place.exists():
            with written(made, name):
                shutil.rmtree(made / "whole", ignore_errors=True)
                without_state(fitted.checkpoint, made / "whole")
                (made / "whole").rename(place)
        elif sha256_of_weights(place) != weights:  # if a kill came before it was listed, it is this very run
            raise HeadscopeError(f"{place} is in the way, with other weights; move it away, and add --resume to go on.")
        run = Run(name, seed, fitted.kept, fitted.epochs, weights)
        files.write(replace(runs, runs=tuple(sorted((*runs.runs, run), key=lambda run: run.seed))))
        shutil.rmtree(made, ignore_errors=True)


def _check_arguments(
    seeds: Sequence[int],
    epochs: int,
    learning_rate: float,
    batch_size: int,
    select: str,
    precision: str,
    device: str,
    max_tokens: int | None,
) -> None:
    if not seeds:
        raise HeadscopeError("there is no seed, and so no run; give one at least.")
    if repeated := [seed for seed, count in Counter(seeds).items() if count > 1]:
        raise HeadscopeError(f"the seed {repeated[0]} is given more than once; runs differ in their seeds.")
    if min(seeds) < 0 or max(seeds) >= 2**32:
        raise HeadscopeError(f"the seeds {min(seeds)} to {max(seeds)} are not all from 0 to {2**32 - 1}; give others.")
    if epochs < 1:
        raise HeadscopeError(f"{epochs} epochs train nothing; give 1 or more.")
    if batch_size < 1:
        raise HeadscopeError(f"a batch of {batch_size} examples trains nothing; give 1 or more.")
    if not 0 < learning_rate < float("inf"):
        raise HeadscopeError(f"the learning rate {learning_rate} is not above 0; give one such as 4e-5.")
    if max_tokens is not None and max_tokens < LEAST_TOKENS:
        raise HeadscopeError(f"{max_tokens} tokens leave no room for an example; give {LEAST_TOKENS} or more.")
    if select not in SELECT:
        raise HeadscopeError(f"an epoch cannot be chosen on {select!r}; choose it on {' or '.join(SELECT)}.")
    if precision not in PRECISIONS:
        raise HeadscopeError(f"there is no precision {precision!r}; there are {', '.join(PRECISIONS)}.")
    if ":" in device:
        raise HeadscopeError(
            f"the device {device!r} is one of several, and tuning takes all that are visible; give cuda, and the "
            f"number in the environment: CUDA_VISIBLE_DEVICES={device.partition(':')[2]}."
        )


def _check_control(task: Task, control: Task, select: str) -> None:
    if (control.kind, control.labels) != (task.kind, task.labels) or not control.control:
        raise HeadscopeError(
            f"{control.name!r} is no control of {task.name!r}: a control has the kind and the labels of its task; make "
            "it by control_of."
        )
    if select == TEST and control.splits.get(VALIDATION):
        raise HeadscopeError(
            f"the control of {task.name} holds {len(control.splits[VALIDATION])} examples out, and none are where "
            "epochs are chosen on test; make it by control_of(without_validation(task))."
        )


def _check_extras() -> None:
    for package, called in {"accelerate": "accelerate", "sklearn": "scikit-learn"}.items():
        if importlib.util.find_spec(package) is None:
            raise HeadscopeError(
                f"tuning needs {called}, which is not installed; install headscope with the extra `tune`: "
                "pip install 'headscope[tune]'."
            )


def _compared(runs: Runs) -> dict[str, Any]:
    about = {"task": _called(runs), "weights_sha256": runs.weights_sha256, "select": runs.select, "metric": runs.metric}
    return about | {name: runs.settings.get(name) for name in COMPARED}


def _anywhere(splits: Mapping[str, Sequence[Example]]) -> dict[str, tuple[Example, ...]]:
    """The examples as they are wherever their files lie: these may be moved while a run is interrupted."""
    return {
        name: tuple(replace(example, name=PurePath(example.name).name) for example in examples)
        for name, examples in splits.items()
    }


def _in_words(progress: Progress, stage: str, words: int) -> Callable[[int, int], None]:
    return lambda done, steps: progress(stage, words * done // steps, words)


def _name(seed: int) -> str:
    return f"seed-{seed}"


def _called(one: Task | Runs) -> str:
    name = one.name if isinstance(one, Task) else one.task
    return f"the control of {name}" if one.control and not name.endswith("control") else name


def _short(value: Any) -> str:
    return f"{value[:12]}..." if isinstance(value, str) and len(value) == 64 else str(value)


def _versions() -> dict[str, str]:
    packages = ("headscope", "torch", "transformers", "tokenizers", "accelerate")
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in packages}
