"""How well predicted labels agree with given ones, by scikit-learn."""

from typing import Any

import numpy as np
from jaxtyping import Num

from headscope.learn.task import Task

NAMES = ("precision", "recall", "f1", "accuracy", "matthews", "pearson")
"""What `scores` can give; a task is judged by one of them."""


def scores(task: Task, predicted: Num[np.ndarray, " example"], given: Num[np.ndarray, " example"]) -> dict[str, float]:
    """The scores of one split.

    Tagging: precision, recall and F1 of the positive label and accuracy, each word piece an example. Classification:
    accuracy, Matthews' correlation, and those of the positive label where there is one. Regression: Pearson's
    correlation. What is not defined, for want of predictions or of variation in them, is 0.

    Args:
        task: says which of them there are.
        predicted: numbers of labels, or the numbers of a regression.
        given: likewise.
    """
    if task.kind == "regression":
        varies = np.ptp(predicted) > 0 and np.ptp(given) > 0
        return {"pearson": float(np.corrcoef(predicted, given)[0, 1]) if varies else 0.0}
    metrics = _sklearn_metrics()
    found = {"accuracy": float(metrics.accuracy_score(given, predicted))}
    if task.kind == "classification":
        found["matthews"] = float(metrics.matthews_corrcoef(given, predicted))
    if task.positive:
        positive = [task.labels.index(task.positive)]
        of_positive = metrics.precision_recall_fscore_support(
            given, predicted, labels=positive, average="macro", zero_division=0.0
        )
        found |= dict(zip(("precision", "recall", "f1"), map(float, of_positive[:3]), strict=True))
    return {name: found[name] for name in NAMES if name in found}


def _sklearn_metrics() -> Any:
    from sklearn import metrics

    return metrics
