"""Metrics from sums, beside scikit-learn and scipy on the examples themselves."""

from collections.abc import Mapping

import numpy as np
import pytest
from scipy.stats import pearsonr
from sklearn import metrics as sklearn

from headscope.analyse.metrics import classification_metrics, name_cell, pearson_metric, ratio_metric


def count_cells(gold: np.ndarray, predicted: np.ndarray, labels: int) -> Mapping[str, np.ndarray]:
    return {
        name_cell(g, p): np.array([float(((gold == g) & (predicted == p)).sum())])
        for g in range(labels)
        for p in range(labels)
    }


@pytest.mark.parametrize(("labels", "seed"), [(2, 0), (2, 1), (3, 2), (5, 3)])
def test_classification_metrics_are_those_of_scikit_learn(labels: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    gold = generator.integers(0, labels, 101)
    predicted = np.where(generator.random(101) < 0.4, gold, generator.integers(0, labels, 101))
    sums = count_cells(gold, predicted, labels)
    computed = {name: float(m.compute(sums)[0]) for name, m in classification_metrics(labels, positive=1).items()}
    assert computed == pytest.approx(
        {
            "accuracy": sklearn.accuracy_score(gold, predicted),
            "matthews": sklearn.matthews_corrcoef(gold, predicted),
            "f1": sklearn.f1_score(gold, predicted, labels=[1], average="macro"),
        }
    )


def test_a_constant_prediction_has_no_correlation_and_no_f1() -> None:
    gold, predicted = np.array([0, 1, 0, 1, 1]), np.zeros(5, dtype=int)
    computed = classification_metrics(2, positive=1)
    assert float(computed["matthews"].compute(count_cells(gold, predicted, 2))[0]) == 0
    assert float(computed["f1"].compute(count_cells(gold, predicted, 2))[0]) == 0


def test_without_a_positive_label_there_is_no_f1() -> None:
    assert set(classification_metrics(3, None)) == {"accuracy", "matthews"}


def sum_moments(predicted: np.ndarray, gold: np.ndarray) -> Mapping[str, np.ndarray]:
    moments = {
        "examples": np.ones_like(gold), "predicted": predicted, "gold": gold, "predicted_squared": predicted**2,
        "gold_squared": gold**2, "predicted_gold": predicted * gold,
    }  # fmt: skip
    return {name: np.array([values.sum()]) for name, values in moments.items()}


def test_pearson_is_that_of_scipy() -> None:
    generator = np.random.default_rng(5)
    gold = generator.normal(3, 1, 97)
    predicted = gold + generator.normal(0, 2, 97)
    value = float(pearson_metric().compute(sum_moments(predicted, gold))[0])
    assert value == pytest.approx(pearsonr(predicted, gold).statistic)


def test_pearson_of_a_constant_is_0() -> None:
    gold = np.random.default_rng(5).normal(3, 1, 97)
    assert float(pearson_metric().compute(sum_moments(np.full(97, 0.3), gold))[0]) == 0


def test_a_ratio_of_nothing_is_not_defined() -> None:
    metric = ratio_metric("accuracy", "accuracy", "share", 1, "right", "all")
    assert np.isnan(metric.compute({"right": np.zeros(1), "all": np.zeros(1)})[0])
