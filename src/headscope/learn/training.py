"""The training of one run with transformers' Trainer, which no other module uses.

The library handles several GPUs, mixed precision, the optimizer, the schedule, and checkpoints. This file prepares its
input, stops a run whose loss is not finite, and chooses the best checkpoint.
"""

import copy
import logging
import math
import random
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from transformers import (
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

from headscope.capture.model.configuration import read_config
from headscope.capture.model.device_names import AUTO
from headscope.capture.model.dispatched import hold_weights
from headscope.capture.model.model import Model
from headscope.capture.model.placement import choose_device
from headscope.capture.model.weights import quiet
from headscope.capture.open.loading import Loadable, load, source
from headscope.errors import HeadscopeError, ModelError, first_line
from headscope.files import parse_json
from headscope.guards.formats import TRAINER_STATE, read_bytes
from headscope.learn.encode import IGNORED, Features
from headscope.learn.runs_folder import explain_disk_errors
from headscope.learn.scoring import NAMES, compute_scores
from headscope.learn.task import Task
from headscope.learn.training_settings import Settings
from headscope.predictions import ATTRIBUTE, Predictions, count_predictions

logger = logging.getLogger("headscope")

LOGGED = 20
"""The number of training steps between two checks of the loss; the end of each epoch has a check too."""

_STATE = "trainer_state.json"
"""The file that Trainer writes last into a checkpoint; without it, a checkpoint is incomplete."""

_PICKLED = (".pt", ".pth", ".bin")
"""The suffixes of files that Trainer needs to resume a run, but a finished run does not need."""


@dataclass(frozen=True, eq=False)
class Pretrained:
    """The model from which runs start.

    Attributes:
        name: The name that the user gave.
        source: The name or folder from which transformers loads the model.
        weights_sha256: The SHA-256 of the weights.
        tokenizer: The tokenizer, with a token for padding.
        max_tokens: The maximum number of tokens of a text; None if the model has no limit.
        trust_remote_code: Whether Python code from the hub may be executed.
    """

    name: str
    source: str
    weights_sha256: str
    tokenizer: PreTrainedTokenizerBase
    max_tokens: int | None
    trust_remote_code: bool

    @classmethod
    def from_model(cls, model: Loadable, task: Task, *, device: str, trust_remote_code: bool) -> "Pretrained":
        """Load a model, and prepare its tokenizer for a task.

        Raises:
            ModelError: The model cannot be loaded, transformers has no such model with a layer for the task, or its
                tokenizer has no token for padding.
        """
        loaded: Model = load(model, device=device, trust_remote_code=trust_remote_code)
        tokenizer = copy.deepcopy(loaded.tokenizer)
        auto, kind = _auto_class(task), type(loaded.module.config)
        if kind not in auto._model_mapping and not trust_remote_code:
            raise ModelError(
                f"{loaded.name!r} is a {kind.model_type} model, and transformers has no such model for {task.kind}, "
                f"which the task {task.name} needs; give another model, such as a BERT."
            )
        if tokenizer.pad_token is None:
            if tokenizer.eos_token is None:
                raise ModelError(
                    f"the tokenizer of {loaded.name!r} has no token for padding; add pad_token to its files."
                )
            tokenizer.pad_token = tokenizer.eos_token
        # GPT-2 counts positions from the padding on, and is measured with it on the right; XLNet's layer reads the end.
        if getattr(loaded.module.config, "summary_type", None) != "last":
            tokenizer.padding_side = "right"
        about = (loaded.weights_sha256, tokenizer, loaded.max_tokens, trust_remote_code)
        if isinstance(model, str | Path):
            return cls(loaded.name, source(loaded.name), *about)
        copied = tempfile.mkdtemp(prefix="headscope-")
        pretrained = cls(loaded.name, copied, *about)
        weakref.finalize(pretrained, shutil.rmtree, copied, ignore_errors=True)
        with hold_weights(loaded.module):
            loaded.module.save_pretrained(copied)
        return pretrained

    def build_model(self, task: Task) -> PreTrainedModel:
        """Build the model with an output layer for the task.

        If the weights have such a layer with the right shape, it is trained further; otherwise the layer is new, with
        weights from the global state of random numbers.
        """
        numbers = {"num_labels": 1, "problem_type": "regression"}
        if task.kind != "regression":
            numbers = {
                "id2label": dict(enumerate(task.labels)),
                "label2id": {label: number for number, label in enumerate(task.labels)},
                "problem_type": "single_label_classification" if task.kind == "classification" else None,
            }
        config = read_config(self.source, trust_remote_code=self.trust_remote_code, **numbers)
        if config.get_text_config().pad_token_id is None:
            config.get_text_config().pad_token_id = self.tokenizer.pad_token_id
        model: PreTrainedModel = _auto_class(task).from_pretrained(
            self.source,
            config=config,
            dtype=torch.float32,  # a checkpoint in half precision would be trained in half precision
            ignore_mismatched_sizes=True,
            trust_remote_code=self.trust_remote_code,
        )
        return model


@dataclass(frozen=True)
class Fitted:
    """A finished run.

    Attributes:
        epochs: For each epoch, the scores of each split.
        best_epoch: The epoch with the best score on the selected split, counted from 1; the first of equal epochs.
        checkpoint: The folder with the weights of the best epoch.
        predicted: The counts of predicted labels on each split after the best epoch
            (`headscope.predictions.count_predictions`).
    """

    epochs: tuple[Mapping[str, Mapping[str, float]], ...]
    best_epoch: int
    checkpoint: Path
    predicted: Mapping[str, Predictions]


def fit(
    pretrained: Pretrained,
    task: Task,
    trained: Sequence[Features],
    scored: Mapping[str, Sequence[Features]],
    folder: Path,
    *,
    name: str,
    seed: int,
    settings: Settings,
    progress: Callable[[int, int], None],
) -> Fitted:
    """Train a run; if `folder` has a complete checkpoint, continue from the last one.

    Args:
        pretrained: The model whose weights the run starts from.
        task: The task.
        trained: The training examples.
        scored: The examples that are scored after each epoch, by split.
        folder: The folder for the checkpoints of the last and of the best epoch, each with the state of the optimizer.
        name: The name of the run in messages.
        seed: The seed of the new layer, of dropout and of the order of the examples.
        settings: The settings of training.
        progress: A function that is called with the number of finished steps and the number of all steps.

    Raises:
        HeadscopeError: The loss is not finite (then `folder` is removed), or memory or the disk is full.
    """
    with quiet(), _preserve_random_state():
        set_seed(seed)
        last, watch = _find_last_checkpoint(folder), _Watch(name, settings, progress)
        trainer = Trainer(
            model=pretrained.build_model(task),
            args=_training_arguments(folder, seed, f"eval_{settings.select}_{task.metric}", settings),
            train_dataset=trained,
            eval_dataset={
                split: sorted(examples, key=lambda features: len(features["input_ids"]))
                for split, examples in scored.items()
            },
            data_collator=_make_collator(task, pretrained.tokenizer),
            processing_class=pretrained.tokenizer,
            compute_metrics=lambda prediction: _score(task, prediction),
            preprocess_logits_for_metrics=lambda logits, labels: _predict(task, logits),
            callbacks=[watch],
        )
        trainer.remove_callback(PrinterCallback)
        with explain_disk_errors(folder, name):
            try:
                trainer.train(resume_from_checkpoint=last)
            except _LossError:
                shutil.rmtree(folder, ignore_errors=True)  # resuming from its checkpoints would end here again
                raise
            except torch.OutOfMemoryError as error:
                raise HeadscopeError(
                    f"{name} needs more memory than {settings.device} has ({first_line(error)}); lower the batch size, "
                    f"now {settings.batch_size}, or the maximum of tokens of an example."
                ) from error
            except Exception as error:  # each library has its own error for a damaged file
                if last is None or watch.begun:
                    raise
                raise HeadscopeError(
                    f"{name} cannot go on from {last} ({first_line(error)}); remove {folder} and add --resume, to tune "
                    "it again."
                ) from error
    epochs, steps = _group_by_epoch(trainer.state.log_history, scored, settings.epochs)
    best = max(range(settings.epochs), key=lambda epoch: epochs[epoch][settings.select][task.metric])
    predicted = {
        split: counts
        for split in scored
        for entry in trainer.state.log_history
        if int(entry["step"]) == steps[best] and (counts := entry.get(f"eval_{split}_{ATTRIBUTE}"))
    }
    return Fitted(epochs, best + 1, folder / f"checkpoint-{steps[best]}", predicted)


def settle_device(settings: Settings) -> Settings:
    """Return the settings with ``auto`` replaced by the device that is used; warn if a GPU cannot be used."""
    device, reason = choose_device(settings.device)
    if reason:
        logger.warning("the processor trains: %s.", reason)
    return replace(settings, device=device.partition(":")[0]) if settings.device == AUTO else settings


def join_processes(device: str) -> PartialState:
    """Return the state of the processes that train together; only the main process writes files."""
    return PartialState(cpu=device == "cpu")


def copy_model(checkpoint: Path, folder: Path) -> None:
    """Copy the model and the tokenizer of a checkpoint to a new folder, without the state of the training."""
    folder.mkdir()
    for file in checkpoint.iterdir():
        if file.is_file() and file.suffix not in _PICKLED and file.name != _STATE:
            shutil.copy2(file, folder / file.name)


class _LossError(HeadscopeError):
    """The error for a loss that is NaN or infinite."""


class _Watch(TrainerCallback):  # type: ignore[misc]  # transformers is untyped to mypy
    """A callback of Trainer that reports the progress of a run, and stops the run if its loss is not finite."""

    def __init__(self, name: str, settings: Settings, progress: Callable[[int, int], None]) -> None:
        self.name, self.settings, self.progress = name, settings, progress
        self.begun = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **about: Any) -> None:
        if state.is_world_process_zero:
            self.progress(state.global_step, state.max_steps)

    on_step_end = on_train_begin

    def on_step_begin(self, args: Any, state: Any, control: Any, **about: Any) -> None:
        self.begun = True

    def on_epoch_end(self, args: Any, state: Any, control: Any, **about: Any) -> None:
        control.should_log = True  # so that a loss that is not finite is noticed before the weights are saved

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **about: Any) -> None:
        # Check the loss of evaluation too: the last step before it may have gone wrong.
        losses = [value for name, value in (logs or {}).items() if name.endswith("loss")]
        if wrong := [loss for loss in losses if not math.isfinite(loss)]:
            raise _LossError(
                f"the loss of {self.name} is {wrong[0]} in epoch {math.ceil(state.epoch)} (by step {state.global_step} "
                f"of {state.max_steps}); lower the learning rate, now {self.settings.learning_rate:g}, and name "
                "another folder if this one has finished runs."
            )


def _auto_class(task: Task) -> Any:
    return AutoModelForTokenClassification if task.kind == "tagging" else AutoModelForSequenceClassification


def _training_arguments(folder: Path, seed: int, best: str, settings: Settings) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(folder), seed=seed,
        num_train_epochs=settings.epochs, learning_rate=settings.learning_rate,
        per_device_train_batch_size=settings.batch_size, per_device_eval_batch_size=2 * settings.batch_size,
        bf16=settings.precision == "bfloat16", fp16=settings.precision == "float16",
        use_cpu=settings.device == "cpu", dataloader_pin_memory=settings.device != "cpu",
        # Otherwise, in models that ignore the count of items, gradients would be multiplied by the number of processes.
        average_tokens_across_devices=False,
        eval_strategy="epoch", save_strategy="epoch",
        save_total_limit=2,  # the last checkpoint, to resume from, and the best
        metric_for_best_model=best, greater_is_better=True,
        logging_steps=LOGGED, logging_nan_inf_filter=False,
        disable_tqdm=True, log_level="error", report_to=[],
    )  # fmt: skip


def _make_collator(task: Task, tokenizer: PreTrainedTokenizerBase) -> Any:
    if task.kind == "tagging":
        return DataCollatorForTokenClassification(tokenizer, label_pad_token_id=IGNORED)
    return DataCollatorWithPadding(tokenizer)


def _predict(task: Task, logits: Any) -> torch.Tensor:
    """Return the number of the label with the highest logit for each token or example; for a regression, the logit.

    With two labels, this is the label whose softmax is above one half. The softmax of two logits is the sigmoid of
    their difference, so the result is the same as with the sigmoid and the threshold of Zhao and Bethard's tagger.
    """
    first: torch.Tensor = logits[0] if isinstance(logits, tuple) else logits
    return first.squeeze(-1) if task.kind == "regression" else first.argmax(-1)


def _score(task: Task, prediction: EvalPrediction) -> dict[str, Any]:
    """Return the scores of predictions and, unless the labels are numbers, the count of each predicted label."""
    predicted, gold = np.asarray(prediction.predictions), np.asarray(prediction.label_ids)
    is_scored = gold != IGNORED if task.kind == "tagging" else np.ones(gold.shape, dtype=bool)
    scores: dict[str, Any] = dict(compute_scores(task, predicted[is_scored], gold[is_scored]))
    if task.kind != "regression":
        counts = np.bincount(predicted[is_scored], minlength=len(task.labels)).tolist()
        scores[ATTRIBUTE] = count_predictions(len(gold), dict(zip(task.labels, counts, strict=True)))
    return scores


def _find_last_checkpoint(folder: Path) -> str | None:
    """Return the last complete checkpoint, or None; incomplete checkpoints of a killed command are removed."""
    steps = {checkpoint: read_step(checkpoint) for checkpoint in folder.glob("checkpoint-*")}
    for checkpoint, step in steps.items():
        if step is None:
            shutil.rmtree(checkpoint, ignore_errors=True)
    whole = {step: checkpoint for checkpoint, step in steps.items() if step is not None}
    return str(whole[max(whole)]) if whole else None


def read_step(checkpoint: Path) -> int | None:
    """Return the training step of a checkpoint; None for an incomplete checkpoint.

    Raises:
        HeadscopeError: The state of the checkpoint is not a file, or the system refuses to read it.
    """
    state = checkpoint / _STATE
    try:
        return int(parse_json(read_bytes(state, TRAINER_STATE))["global_step"]) if state.exists() else None
    except (ValueError, KeyError, TypeError, OverflowError):
        return None


def _group_by_epoch(
    history: Sequence[Mapping[str, Any]], splits: Mapping[str, Any], epochs: int
) -> tuple[tuple[dict[str, dict[str, float]], ...], list[int]]:
    """Return, from Trainer's log, the scores of each split after each epoch, and the last step of each epoch."""
    scores: tuple[dict[str, dict[str, float]], ...] = tuple({} for _ in range(epochs))
    steps = [0] * epochs
    for entry in history:
        epoch = round(entry["epoch"]) - 1
        for split in splits:
            names = [name for name in NAMES if f"eval_{split}_{name}" in entry]
            if names:
                scores[epoch][split] = {name: float(entry[f"eval_{split}_{name}"]) for name in names}
                steps[epoch] = int(entry["step"])
    return scores, steps


@contextmanager
def _preserve_random_state() -> Iterator[None]:
    """Restore the random states of the caller at the end of the block.

    Trainer seeds the random numbers of Python, numpy and torch.
    """
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - Trainer seeds this state
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002 - the same
