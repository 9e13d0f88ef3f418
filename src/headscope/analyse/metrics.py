"""Metrics of a task as functions of sums over examples, so that a subset needs no new predictions.

Accuracy is a ratio of two sums, and F1, Matthews' and Pearson's correlation are functions of several sums. A metric
without a text, or with some heads disabled, is the same function of other sums.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.errors import TableError
from headscope.files import parse_json

ATTRIBUTE = "metrics"
"""The attribute of a table of effects that describes its metrics, as JSON."""

Sums = Mapping[str, Float[np.ndarray, "..."]]
"""Sums of quantities over examples, by name; all have the same shape."""

Values = Float[np.ndarray, "..."]


@dataclass(frozen=True)
class Metric:
    """A metric of a task.

    Attributes:
        name: The name, as in `headscope.learn.scoring`, or ``loss``, ``margin`` or ``kl``.
        title: A noun phrase that describes the metric.
        units: The units of its value.
        better: 1 if a model with a higher value is better, -1 if a model with a lower value is better, and 0 if neither
            holds, as for the divergence from the whole model.
        compute: A function from sums over examples to the value of the metric; NaN if the value is undefined.
    """

    name: str
    title: str
    units: str
    better: int
    compute: Callable[[Sums], Values]


def describe_metrics(metrics: Sequence[Metric]) -> str:
    """Describe metrics for the attribute of a table of effects: all fields except the function `compute`."""
    about = [{"name": m.name, "title": m.title, "units": m.units, "better": m.better} for m in metrics]
    return json.dumps(about)


def read_metrics(table: xr.Dataset, attribute: str = ATTRIBUTE) -> list[dict[str, Any]]:
    """Read the metrics of a table of effects, the most important first: name, title, units and better.

    Raises:
        TableError: The table has no metrics, or they do not have the form in which they were written.
    """
    if attribute not in table.attrs:
        raise TableError("the table has no effects of disabling heads; those are written by `headscope disable`.")
    try:
        metrics = parse_json(table.attrs[attribute])
        if not all(_is_metric(metric) for metric in metrics):
            raise ValueError("a metric lacks something")
    except (TypeError, ValueError) as error:
        raise TableError(f"the attribute {attribute} of the table is not as it was written; measure again.") from error
    return list(metrics)


def _is_metric(metric: Any) -> bool:
    names = ("name", "title", "units")
    return isinstance(metric, dict) and all(isinstance(metric.get(name), str) for name in names) and (
        metric.get("better") in (-1, 0, 1)
    )  # fmt: skip


def ratio_metric(name: str, title: str, units: str, better: int, numerator: str, denominator: str) -> Metric:
    """Make the metric that is the ratio of two sums."""
    return Metric(name, title, units, better, lambda sums: _divide(sums[numerator], sums[denominator]))


def name_cell(gold: int, predicted: int) -> str:
    """Name the quantity that counts examples with a gold and a predicted label, by the labels' numbers."""
    return f"gold_{gold}_predicted_{predicted}"


def count_predicted(sums: Sums, labels: Sequence[str]) -> dict[str, float]:
    """Count how often each label is predicted, from the cells of a confusion matrix (`name_cell`)."""
    return {
        label: float(sum(sums[name_cell(gold, number)].sum() for gold in range(len(labels))))
        for number, label in enumerate(labels)
    }


def classification_metrics(labels: int, positive: int | None) -> dict[str, Metric]:
    """Make the metrics of predicted labels, which use the cells of a confusion matrix (`name_cell`).

    Args:
        labels: The number of labels.
        positive: The number of the positive label, for F1; None for metrics without F1.
    """

    def confuse(sums: Sums) -> Float[np.ndarray, "... gold predicted"]:
        rows = [[sums[name_cell(gold, predicted)] for predicted in range(labels)] for gold in range(labels)]
        return np.moveaxis(np.asarray(rows, dtype=float), (0, 1), (-2, -1))

    def accuracy(sums: Sums) -> Values:
        matrix = confuse(sums)
        return _divide(np.trace(matrix, axis1=-2, axis2=-1), matrix.sum((-2, -1)))

    def matthews(sums: Sums) -> Values:
        # Gorodkin 2004: the correlation of two labellings, of any number of labels.
        matrix = confuse(sums)
        gold, predicted, total = matrix.sum(-1), matrix.sum(-2), matrix.sum((-2, -1))
        covariance = np.trace(matrix, axis1=-2, axis2=-1) * total - (gold * predicted).sum(-1)
        spread = (total**2 - (gold**2).sum(-1)) * (total**2 - (predicted**2).sum(-1))
        # A constant prediction has the correlation 0, as in scikit-learn.
        return np.where(spread > 0, covariance / np.sqrt(np.where(spread > 0, spread, 1)), 0.0)

    metrics = [Metric("accuracy", "accuracy", "share of examples", 1, accuracy)]
    metrics.append(Metric("matthews", "Matthews' correlation", "correlation", 1, matthews))
    if positive is not None:

        def f1(sums: Sums) -> Values:
            matrix = confuse(sums)
            right = matrix[..., positive, positive]
            named = matrix[..., positive, :].sum(-1) + matrix[..., :, positive].sum(-1)
            return np.where(named > 0, 2 * right / np.where(named > 0, named, 1), 0.0)

        metrics.append(Metric("f1", "F1 of the positive label", "F1", 1, f1))
    return {metric.name: metric for metric in metrics}


def pearson_metric() -> Metric:
    """Make Pearson's correlation from sums of ``predicted``, ``gold``, their squares and products, and ``examples``."""

    def pearson(sums: Sums) -> Values:
        n, x, y = sums["examples"], sums["predicted"], sums["gold"]
        covariance = n * sums["predicted_gold"] - x * y
        spread = (n * sums["predicted_squared"] - x**2) * (n * sums["gold_squared"] - y**2)
        defined = spread > 1e-12 * np.maximum(1, n**4)
        # As in `headscope.learn.scoring`, a constant prediction has the correlation 0.
        return np.where(defined, covariance / np.sqrt(np.where(defined, spread, 1)), 0.0)

    return Metric("pearson", "Pearson's correlation", "correlation", 1, pearson)


def _divide(numerator: Values, denominator: Values) -> Values:
    defined = np.asarray(denominator) > 0
    return np.where(defined, numerator / np.where(defined, denominator, 1), np.nan)
