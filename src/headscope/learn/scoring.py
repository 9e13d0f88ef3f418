"""The scores of predicted labels against gold labels, computed with scikit-learn."""

import numpy as np
from jaxtyping import Num

from headscope.learn.task import Task

NAMES = ("precision", "recall", "f1", "accuracy", "matthews", "pearson")
"""The names of all scores; one of them chooses the best epoch."""


def compute_scores(
    task: Task, predicted: Num[np.ndarray, " example"], gold: Num[np.ndarray, " example"]
) -> dict[str, float]:
    """Compute the scores of predictions for the examples of a split.

    Tagging: the accuracy over word pieces. Classification: the accuracy and Matthews' correlation. Both also have
    precision, recall and F1 if the task has a positive label. Regression: Pearson's correlation. An undefined score is
    0, for example if nothing was predicted or all predictions are equal.

    Args:
        task: The task.
        predicted: The predicted numbers of labels, or the predicted numbers of a regression.
        gold: The right numbers.
    """
    from sklearn import metrics

    if task.kind == "regression":
        varies = np.ptp(predicted) > 0 and np.ptp(gold) > 0
        return {"pearson": float(np.corrcoef(predicted, gold)[0, 1]) if varies else 0.0}
    scores = {"accuracy": float(metrics.accuracy_score(gold, predicted))}
    if task.kind == "classification":
        scores["matthews"] = float(metrics.matthews_corrcoef(gold, predicted))
    if task.positive:
        positive = [task.labels.index(task.positive)]
        positive_scores = metrics.precision_recall_fscore_support(
            gold, predicted, labels=positive, average="macro", zero_division=0.0
        )
        scores |= dict(zip(("precision", "recall", "f1"), map(float, positive_scores[:3]), strict=True))
    return {name: scores[name] for name in NAMES if name in scores}
