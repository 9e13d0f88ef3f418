"""One run on transformers' Trainer: the one file that knows it.

Several GPUs, mixed precision, the optimizer, the schedule, checkpoints and going on from them are the library's. Ours
is what it is given, that a loss which is no number ends the run, and which checkpoint is kept.
"""

import json
import math
import random
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    EvalPrediction,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

from headscope.capture.model import Model, load, quiet, source
from headscope.errors import HeadscopeError, ModelError, first_line
from headscope.learn.encode import IGNORED, Features
from headscope.learn.folder import written
from headscope.learn.scoring import NAMES, scores
from headscope.learn.task import Task

LOGGED = 20
"""Steps after which the loss is looked at, and at the end of each epoch."""

_STATE = "trainer_state.json"
"""What Trainer writes last into a checkpoint: one without it is half written."""

_PICKLED = (".pt", ".pth", ".bin")
"""What Trainer keeps to go on with, and a finished run does not need."""


@dataclass(frozen=True)
class Settings:
    """How a run is trained.

    Attributes:
        epochs: how often all examples are seen. The learning rate falls to 0 in a straight line over them.
        learning_rate: of AdamW at the first step.
        batch_size: examples of a step, on each device.
        precision: ``float32``, or that of mixed precision.
        device: ``cpu``, or ``cuda`` for all GPUs that are visible.
    """

    epochs: int
    learning_rate: float
    batch_size: int
    precision: str
    device: str


@dataclass(frozen=True, eq=False)
class Pretrained:
    """What runs start from.

    Attributes:
        name: as the user gave it.
        source: where transformers finds it.
        weights_sha256: of its weights.
        tokenizer: its tokenizer, which can pad, and does so behind the text.
        max_tokens: the longest text that it takes; None if it has no limit.
        trust_remote_code: the user allows Python of the hub.
    """

    name: str
    source: str
    weights_sha256: str
    tokenizer: PreTrainedTokenizerBase
    max_tokens: int | None
    trust_remote_code: bool

    @classmethod
    def of(cls, model: str | Path, task: Task, *, device: str, trust_remote_code: bool) -> "Pretrained":
        """A model that is fit for a task.

        Raises:
            ModelError: it cannot be loaded, transformers has no such model with a layer for the task, or its
                tokenizer has nothing to pad with.
        """
        loaded: Model = load(model, device=device, trust_remote_code=trust_remote_code)
        tokenizer = loaded.tokenizer
        auto, kind = _head(task), type(loaded.module.config)
        if kind not in auto._model_mapping and not trust_remote_code:
            raise ModelError(
                f"{loaded.name!r} is a {kind.model_type} model, of which transformers has none for {task.kind}, as the "
                f"task {task.name} needs it; give another, such as a BERT."
            )
        if tokenizer.pad_token is None:
            if tokenizer.eos_token is None:
                raise ModelError(
                    f"the tokenizer of {loaded.name!r} has no token to pad with; add pad_token to its files."
                )
            tokenizer.pad_token = tokenizer.eos_token
        # GPT-2 counts positions from the padding on, and is measured with it behind; XLNet's layer reads the end.
        if getattr(loaded.module.config, "summary_type", None) != "last":
            tokenizer.padding_side = "right"
        where = source(loaded.name)
        return cls(loaded.name, where, loaded.weights_sha256, tokenizer, loaded.max_tokens, trust_remote_code)

    def with_layer(self, task: Task) -> PreTrainedModel:
        """The model under a new layer for the task, drawn from the state of the random numbers.

        A layer of another shape that the model brings is replaced; one of the same shape is trained further.
        """
        numbers = {"num_labels": 1, "problem_type": "regression"}
        if task.kind != "regression":
            numbers = {
                "id2label": dict(enumerate(task.labels)),
                "label2id": {label: number for number, label in enumerate(task.labels)},
                "problem_type": "single_label_classification" if task.kind == "classification" else None,
            }
        config = AutoConfig.from_pretrained(self.source, trust_remote_code=self.trust_remote_code, **numbers)
        if config.get_text_config().pad_token_id is None:
            config.get_text_config().pad_token_id = self.tokenizer.pad_token_id
        model: PreTrainedModel = _head(task).from_pretrained(
            self.source,
            config=config,
            dtype=torch.float32,  # a checkpoint in half precision would be trained in it
            ignore_mismatched_sizes=True,
            trust_remote_code=self.trust_remote_code,
        )
        return model


@dataclass(frozen=True)
class Fitted:
    """A run that is finished.

    Attributes:
        epochs: the scores of each split after each epoch.
        kept: the best of them on the split that was selected on, counted from 1; the first of several.
        checkpoint: the folder with its weights.
    """

    epochs: tuple[Mapping[str, Mapping[str, float]], ...]
    kept: int
    checkpoint: Path


def fit(
    pretrained: Pretrained,
    task: Task,
    trained: Sequence[Features],
    scored: Mapping[str, Sequence[Features]],
    folder: Path,
    *,
    name: str,
    seed: int,
    select: str,
    settings: Settings,
    progress: Callable[[int, int], None],
) -> Fitted:
    """Train one run, from the last whole checkpoint in `folder` if there is one.

    Args:
        pretrained: what to start from.
        task: what to learn.
        trained: the examples to train on.
        scored: the examples to score after each epoch, by split.
        folder: for checkpoints: that of the last epoch and that of the best, each with the optimizer's state.
        name: of the run, for messages.
        seed: of the new layer, of dropout and of the order of the examples.
        select: one of `scored`, on which the epoch is chosen.
        settings: how to train.
        progress: told how many steps are done, and of how many.

    Raises:
        HeadscopeError: the loss is no number (`folder` is removed then), memory is out, or the disk is full.
    """
    with quiet(), _random_state_kept():
        set_seed(seed)
        last, watch = _last_checkpoint(folder), _Watch(name, settings, progress)
        trainer = Trainer(
            model=pretrained.with_layer(task),
            args=_arguments(folder, seed, f"eval_{select}_{task.metric}", settings),
            train_dataset=trained,
            eval_dataset={split: sorted(examples, key=_length) for split, examples in scored.items()},
            data_collator=_collator(task, pretrained.tokenizer),
            processing_class=pretrained.tokenizer,
            compute_metrics=lambda found: _scores(task, found),
            preprocess_logits_for_metrics=lambda logits, labels: _predicted(task, logits),
            callbacks=[watch],
        )
        trainer.remove_callback(PrinterCallback)
        with written(folder, name), _told(name, settings):
            try:
                trainer.train(resume_from_checkpoint=last)
            except _LossError:
                shutil.rmtree(folder, ignore_errors=True)  # going on from its checkpoints would end there again
                raise
            except Exception as error:  # each library has its own for a file that is damaged
                if last is None or watch.begun or isinstance(error, torch.OutOfMemoryError):
                    raise
                raise HeadscopeError(
                    f"{name} cannot go on from {last} ({first_line(error)}); remove {folder} and add --resume, to tune "
                    "it anew."
                ) from error
    epochs, steps = _by_epoch(trainer.state.log_history, scored, settings.epochs)
    kept = max(range(settings.epochs), key=lambda epoch: epochs[epoch][select][task.metric])
    return Fitted(epochs, kept + 1, folder / f"checkpoint-{steps[kept]}")


def processes(device: str) -> PartialState:
    """The processes that train together, if several were launched; the main one alone writes."""
    return PartialState(cpu=device == "cpu")


def without_state(checkpoint: Path, folder: Path) -> None:
    """Copy the model and the tokenizer of a checkpoint to a new folder, and nothing that is pickled."""
    folder.mkdir()
    for file in checkpoint.iterdir():
        if file.is_file() and file.suffix not in _PICKLED and file.name != _STATE:
            shutil.copy2(file, folder / file.name)


@contextmanager
def _told(name: str, settings: Settings) -> Iterator[None]:
    """That memory is out is told in one sentence."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise HeadscopeError(
            f"{name} needs more memory than {settings.device} has ({first_line(error)}); lower the batch size, now "
            f"{settings.batch_size}, or the most tokens of an example."
        ) from error


class _LossError(HeadscopeError):
    """A loss that is not a number, or infinite."""


class _Watch(TrainerCallback):  # type: ignore[misc]  # transformers is untyped to mypy
    """Tells how far a run is, and ends it where its loss is no number."""

    def __init__(self, name: str, settings: Settings, progress: Callable[[int, int], None]) -> None:
        self.name, self.settings, self.progress = name, settings, progress
        self.begun = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **about: Any) -> None:
        self._tell(state)

    def on_step_begin(self, args: Any, state: Any, control: Any, **about: Any) -> None:
        self.begun = True

    def on_step_end(self, args: Any, state: Any, control: Any, **about: Any) -> None:
        self._tell(state)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **about: Any) -> None:
        control.should_log = True  # so that a loss that is no number is seen before the weights are kept

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **about: Any) -> None:
        # That of evaluation too: the last step before it may be the one that went wrong.
        losses = [value for name, value in (logs or {}).items() if name.endswith("loss")]
        if wrong := [loss for loss in losses if not math.isfinite(loss)]:
            raise _LossError(
                f"the loss of {self.name} is {wrong[0]} in epoch {math.ceil(state.epoch)} (by step {state.global_step} "
                f"of {state.max_steps}); lower the learning rate, now {self.settings.learning_rate:g}, and name "
                "another folder if this one has finished runs."
            )

    def _tell(self, state: Any) -> None:
        if state.is_world_process_zero:
            self.progress(state.global_step, state.max_steps)


def _head(task: Task) -> Any:
    return AutoModelForTokenClassification if task.kind == "tagging" else AutoModelForSequenceClassification


def _arguments(folder: Path, seed: int, best: str, settings: Settings) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(folder),
        seed=seed,
        num_train_epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=2 * settings.batch_size,
        bf16=settings.precision == "bfloat16",
        fp16=settings.precision == "float16",
        use_cpu=settings.device == "cpu",
        dataloader_pin_memory=settings.device != "cpu",
        # Models that take a count of items and do not use it would have their gradients multiplied by the processes.
        average_tokens_across_devices=False,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=2,  # the last, to go on from, and the best
        metric_for_best_model=best,
        greater_is_better=True,
        logging_steps=LOGGED,
        logging_nan_inf_filter=False,
        disable_tqdm=True,
        log_level="error",
        report_to=[],
    )


def _collator(task: Task, tokenizer: PreTrainedTokenizerBase) -> Any:
    if task.kind == "tagging":
        return DataCollatorForTokenClassification(tokenizer, label_pad_token_id=IGNORED)
    return DataCollatorWithPadding(tokenizer)


def _predicted(task: Task, logits: Any) -> torch.Tensor:
    """The label of the highest logit, or the number, of each token or example.

    Of two labels the one whose softmax is above one half: a softmax over two is the sigmoid of their difference, so
    that this is the sigmoid of Zhao and Bethard's tagger with its threshold.
    """
    first: torch.Tensor = logits[0] if isinstance(logits, tuple) else logits
    return first.squeeze(-1) if task.kind == "regression" else first.argmax(-1)


def _scores(task: Task, found: EvalPrediction) -> dict[str, float]:
    predicted, given = np.asarray(found.predictions), np.asarray(found.label_ids)
    counted = given != IGNORED if task.kind == "tagging" else np.ones(given.shape, dtype=bool)
    return scores(task, predicted[counted], given[counted])


def _length(features: Features) -> int:
    return len(features["input_ids"])


def _last_checkpoint(folder: Path) -> str | None:
    """The last checkpoint that is whole; what a kill left half written is removed."""
    whole = {}
    for checkpoint in folder.glob("checkpoint-*"):
        try:
            whole[json.loads((checkpoint / _STATE).read_text())["global_step"]] = checkpoint
        except (OSError, ValueError, KeyError):
            shutil.rmtree(checkpoint, ignore_errors=True)
    return str(whole[max(whole)]) if whole else None


def _by_epoch(
    history: Sequence[Mapping[str, Any]], splits: Mapping[str, Any], epochs: int
) -> tuple[tuple[dict[str, dict[str, float]], ...], list[int]]:
    """Trainer's log as scores of splits after each epoch, and the step at which each epoch ended."""
    found: tuple[dict[str, dict[str, float]], ...] = tuple({} for _ in range(epochs))
    steps = [0] * epochs
    for entry in history:
        epoch = round(entry["epoch"]) - 1
        for split in splits:
            names = [name for name in NAMES if f"eval_{split}_{name}" in entry]
            if names:
                found[epoch][split] = {name: float(entry[f"eval_{split}_{name}"]) for name in names}
                steps[epoch] = int(entry["step"])
    return found, steps


@contextmanager
def _random_state_kept() -> Iterator[None]:
    """Trainer seeds all of Python's random numbers; the caller's go on as if it had not."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - it is this one that is seeded
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002 - the same
