"""The validation of a task before a model is tuned on it."""

import math
from collections.abc import Iterable, Sequence

from headscope.errors import HeadscopeError
from headscope.learn.scoring import NAMES
from headscope.learn.splits import find_labels
from headscope.learn.task import SPLITS, TEST, TRAIN, VALIDATION, Example, Task


def check(task: Task, select: str) -> None:
    """Raise an error if a task cannot be learnt or cannot be scored.

    Args:
        task: A task or a control.
        select: The split on which epochs will be chosen, ``validation`` or ``test``.

    Raises:
        HeadscopeError: A split is missing or empty, the task has fewer than two labels, an example has no label or a
            label that the task lacks, the labels of the splits do not fit together, or the metric does not exist for
            this kind of task.
    """
    if task.metric not in _allowed_metrics(task):
        raise HeadscopeError(
            f"the task {task.name} is scored by {task.metric!r}, which {_describe_kind(task)} does not have; "
            f"it has {', '.join(_allowed_metrics(task))}."
        )
    if task.kind != "regression" and len(task.labels) < 2:
        raise HeadscopeError(
            f"the task {task.name} has {len(task.labels) or 'no'} label{'s' * (len(task.labels) != 1)}, and needs two "
            "or more; give it more labels."
        )
    for split in SPLITS:
        examples = task.splits.get(split, ())
        if not examples and not (split == VALIDATION and select == TEST):
            raise HeadscopeError(
                f"the {split} split of {task.name} is empty; give it examples, since a model is trained on `{TRAIN}`, "
                f"its epoch is chosen on `{VALIDATION}`, and it is scored on `{TEST}`."
            )
        for example in examples:
            _check_example(task, example)
    if task.kind != "regression":
        _check_labels(task)


def _check_example(task: Task, example: Example) -> None:
    if task.kind == "tagging":
        if len(example.words) != len(example.tags):
            raise HeadscopeError(
                f"{example.name} has {len(example.words)} words and {len(example.tags)} tags; give each word a tag."
            )
        for tag in example.tags:
            if tag is not None and tag not in task.labels:
                raise _unknown_label_error(task, example, tag)
        return
    if len(example.texts) not in (1, 2):
        raise HeadscopeError(f"{example.name} has {len(example.texts)} texts; give one or two.")
    if example.label is None:
        raise HeadscopeError(f"{example.name} has no label; the task {task.name} needs one for each example.")
    if task.kind == "regression":
        if not isinstance(example.label, int | float) or not math.isfinite(example.label):
            raise HeadscopeError(f"{example.name} has the label {example.label!r}; {task.name} needs a number.")
    elif example.label not in task.labels:
        raise _unknown_label_error(task, example, example.label)


def _check_labels(task: Task) -> None:
    """Raise an error if the labels of the splits do not fit together.

    The training split must have all labels of the task and of the other splits, and each split must have the positive
    label.
    """
    split_labels = {split: find_labels(task.splits.get(split, ())) for split in SPLITS}
    if not split_labels[TRAIN]:
        raise HeadscopeError(f"no example of the task {task.name} has a label; give it files that have them.")
    for split, labels in split_labels.items():
        if new := sorted(set(labels) - set(split_labels[TRAIN])):
            raise HeadscopeError(
                f"the {split} split of {task.name} has the label {new[0]!r} ({labels[new[0]]}), and the training split "
                f"has only {_quote_all(split_labels[TRAIN])}; give splits with the same labels."
            )
        if labels and task.positive and task.positive not in labels:
            raise HeadscopeError(
                f"the {split} split of {task.name} never has the label {task.positive!r}, whose F1 is the score; "
                "give splits with the same labels."
            )
    if missing := sorted(set(task.labels) - set(split_labels[TRAIN])):
        raise HeadscopeError(
            f"the training split of {task.name} never has the label {missing[0]!r}; give splits with the same labels."
        )


def _allowed_metrics(task: Task) -> tuple[str, ...]:
    if task.kind == "regression":
        return ("pearson",)
    positive_metrics: Sequence[str] = ("precision", "recall", "f1") if task.positive else ()
    whole_metrics = ("accuracy", "matthews") if task.kind == "classification" else ("accuracy",)
    return tuple(name for name in NAMES if name in (*positive_metrics, *whole_metrics))


def _describe_kind(task: Task) -> str:
    return task.kind if task.positive or task.kind == "regression" else f"{task.kind} without a positive label"


def _unknown_label_error(task: Task, example: Example, label: object) -> HeadscopeError:
    return HeadscopeError(
        f"{example.name} has the label {label!r}, and the task {task.name} has {_quote_all(task.labels)}; "
        "correct it, or give splits with the same labels."
    )


def _quote_all(labels: Iterable[str]) -> str:
    return ", ".join(repr(label) for label in labels)
