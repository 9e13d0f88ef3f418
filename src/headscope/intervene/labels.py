"""Evaluations of a model on a task that it was tuned on: the labels or numbers of the examples of one split."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.analyse.metrics import classification_metrics, name_cell, pearson_metric, ratio_metric
from headscope.capture.forward.loss import find_task
from headscope.capture.model.model import Model
from headscope.capture.passes.stream import BATCH_TOKENS
from headscope.capture.tokens.companions import divide, list_thresholds
from headscope.corpora.document import Origin
from headscope.corpora.originals import name_clusters
from headscope.errors import HeadscopeError, ModelError, list_some
from headscope.intervene.evaluation import (
    ALL,
    Evaluation,
    EvaluationBatch,
    compute_divergence,
    loss_metric,
    name_sums,
)
from headscope.intervene.label_names import ATTRIBUTE, match_labels
from headscope.learn.encode import IGNORED, Features, encode
from headscope.learn.splits import find_labels
from headscope.learn.task import TEST, Example, Task

HEADS = {"classification": "classification", "regression": "classification", "tagging": "tagging"}
"""The argument `task` of `headscope.load` that loads a model for each kind of task."""


def prepare_task(
    model: Model, task: Task, *, split: str = TEST, max_tokens: int | None = None, batch_tokens: int = BATCH_TOKENS,
    label_names: Mapping[str, str] = MappingProxyType({}),
) -> Evaluation:  # fmt: skip
    """Prepare an evaluation on one split of a task, for a model that was tuned on the task.

    Args:
        model: A model that was loaded with its task head (`HEADS`).
        task: The task that the model was tuned on.
        split: The split whose examples are used.
        max_tokens: Cut longer examples to this number of tokens. Default: the limit of the model.
        batch_tokens: The number of tokens of a batch, including padding.
        label_names: The task's label for each label of the model, if the names of labels differ.

    Raises:
        HeadscopeError: The split has no example, or none that is scored, or the metric of the task is undefined on it;
            or the model lacks a label of `label_names`.
        ModelError: The model has another kind of head, or its labels do not match the task's.
    """
    labels, matched = _match_labels(model, task, label_names)
    examples = task.splits.get(split, ())
    _refuse_undefined(task, split, examples)
    limits = [limit for limit in (model.max_tokens, max_tokens) if limit is not None]
    skipped: Counter[str] = Counter()
    encoded = [encode(task, [example], model.tokenizer, min(limits, default=None), skipped) for example in examples]
    scored = [example for example, features in zip(examples, encoded, strict=True) if features]
    rows = [features[0] for features in encoded if features]
    if not rows:
        raise HeadscopeError(f"no example of the {split} split of {task.name} has a token that is scored; allow more.")
    if task.kind == "regression":
        quantities: tuple[str, ...] = ("minus_squared_error", *_MOMENTS)
        units = "squared units of the label"
        metrics = [pearson_metric(), loss_metric("mean squared error", units, "examples", "minus_squared_error")]
    else:
        cells = [name_cell(gold, predicted) for gold in range(len(labels)) for predicted in range(len(labels))]
        quantities = ("log_probability", "scored", "divergence", *cells)
        positive = task.labels.index(task.positive) if task.positive else None
        known = classification_metrics(len(labels), positive)
        first = next(name for name in (task.metric, "f1", "accuracy") if name in known)
        metrics = [known.pop(first), *known.values()]
        metrics.append(loss_metric("loss of the task", "nats", "scored"))
        metrics.append(ratio_metric("kl", "divergence from the whole model", "nats", 0, "divergence", "scored"))

    def quantify(batch: EvaluationBatch, logits: Tensor, whole: Tensor | None) -> Float[Tensor, "row quantity"]:
        if task.kind == "regression":
            return _quantify_numbers(logits.squeeze(-1).double(), batch.targets)
        return _quantify_labels(logits[..., labels], batch.targets, None if whole is None else whole[..., labels])

    return Evaluation(
        name=f"{task.name} ({split})", content="examples", batches=tuple(_collate(task, model, rows, batch_tokens)),
        items=len(rows), quantities=quantities, quantify=quantify,
        gather=lambda sums: name_sums(sums, quantities),
        metrics=tuple(metrics), smooth="loss", examples=tuple(example.name for example in scored),
        clusters=name_clusters(
            [Origin(example.group, example.name) for example in scored],
            [example.texts or example.words for example in scored],
        ),
        subsets={ALL: np.ones(len(rows), dtype=bool)}, source=dict(task.source),
        skipped=+skipped, reading={ATTRIBUTE: matched} if matched else {}, labels=task.labels,
    )  # fmt: skip


_MOMENTS = ("examples", "predicted", "gold", "predicted_squared", "gold_squared", "predicted_gold")


def _quantify_numbers(predicted: Float[Tensor, " row"], gold: Float[Tensor, " row"]) -> Float[Tensor, "row quantity"]:
    moments = (torch.ones_like(gold), predicted, gold, predicted**2, gold**2, predicted * gold)
    return torch.stack([-((predicted - gold) ** 2), *moments], dim=-1)


def _quantify_labels(
    logits: Float[Tensor, "..."], gold: Int[Tensor, "..."], whole: Tensor | None
) -> Float[Tensor, "row quantity"]:
    """Return the log-probability of the gold labels of each row; with `whole`, also all other quantities.

    `whole` has the logits of the whole model. A row has one label, or one label for each token.
    """
    scored = gold != IGNORED
    target = gold.where(scored, 0)
    log_probability = logits.double().log_softmax(-1).gather(-1, target[..., None])[..., 0]
    values = [log_probability]
    if whole is not None:
        labels, predicted = logits.shape[-1], logits.argmax(-1)
        cells = torch.nn.functional.one_hot(target * labels + predicted, labels**2).double()
        values += [torch.ones_like(log_probability), compute_divergence(whole, logits), *cells.unbind(-1)]
    return torch.stack([(value * scored).flatten(1).sum(1) if value.ndim > 1 else value for value in values], dim=-1)


def _collate(task: Task, model: Model, rows: Sequence[Features], batch_tokens: int) -> Iterator[EvaluationBatch]:
    """Yield batches of examples with similar numbers of tokens, the longest examples first."""
    order = sorted(range(len(rows)), key=lambda number: -len(rows[number]["input_ids"]))
    thresholds = list_thresholds(model.module)
    while order:
        count = max(1, batch_tokens // len(rows[order[0]]["input_ids"]))
        chosen = next(divide(order[:count], thresholds, lambda number: len(rows[number]["input_ids"])))
        order = order[len(chosen) :]
        inputs = [{name: values for name, values in rows[number].items() if name != "labels"} for number in chosen]
        padded = model.tokenizer.pad(inputs, return_tensors="pt", padding_side="right").to(model.device)
        length = padded["input_ids"].shape[1]
        labels = [rows[number]["labels"] for number in chosen]
        if task.kind == "tagging":
            labels = [tags + [IGNORED] * (length - len(tags)) for tags in labels]
        kind = torch.double if task.kind == "regression" else torch.long
        yield EvaluationBatch(dict(padded), torch.tensor(chosen), torch.tensor(labels, dtype=kind, device=model.device))


def _match_labels(model: Model, task: Task, label_names: Mapping[str, str]) -> tuple[list[int], str]:
    """Find each label of a task among the labels of a model; return their numbers and a description of the match.

    The description is empty if all names are equal. A regression has one number, 0.

    Raises:
        ModelError: The model has another kind of head, or its labels do not match the task's.
    """
    config, name = model.module.config, f"the model {model.name!r}"
    if (head := find_task(type(model.module).__name__)) != HEADS[task.kind]:
        raise ModelError(
            f"{name} has {f'a head for {head}' if head else 'no task head'}, and the task {task.name} needs one for "
            f"{HEADS[task.kind]}; give a model that `headscope tune` tuned on it."
        )
    problem = config.problem_type if task.kind != "tagging" else None
    if problem == "multi_label_classification":
        raise ModelError(
            f"{name} gives a text several labels at once (its problem_type is {problem}), and an example of the task "
            f"{task.name} has one {'number' if task.kind == 'regression' else 'label'}; give a classifier that chooses "
            "one of its labels."
        )
    if task.kind == "regression":
        if config.num_labels != 1:
            raise ModelError(
                f"{name} has {config.num_labels} labels, and the task {task.name} needs one number; give a model that "
                "`headscope tune` tuned on it."
            )
        return [0], ""
    if config.num_labels == 1 or problem == "regression":
        raise ModelError(
            f"{name} gives numbers and no labels (it is a regression), and the task {task.name} has the labels "
            f"{list_some([*map(repr, task.labels)])}; give a classifier."
        )
    return match_labels(model.name, config.id2label, task.name, task.labels, label_names)


def _refuse_undefined(task: Task, split: str, examples: Sequence[Example]) -> None:
    """Raise an error if a split has fewer than two different labels, so that the metric of its task is undefined."""
    if not examples:
        raise HeadscopeError(f"the {split} split of {task.name} has no examples; give it some, with their labels.")
    labels = [str(example.label) for example in examples] if task.kind == "regression" else [*find_labels(examples)]
    if len(set(labels)) < 2:
        has = f"only the label {labels[0]!r}" if labels else "no label"
        raise HeadscopeError(
            f"the {split} split of {task.name} has {has}, so {task.metric} is not defined on it; give more examples, "
            "or others."
        )
