"""Scores against counts by hand and closed forms."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import pearsonr

import toys
from headscope.learn.scoring import NAMES, compute_scores

GIVEN = np.array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0])
SAID = np.array([1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0])  # 3 hits, 1 false, 2 missed, 5 rightly not


def test_tagging_is_scored_by_the_positive_label() -> None:
    scores = compute_scores(toys.tagging(), SAID, GIVEN)
    assert scores == {"precision": 3 / 4, "recall": 3 / 5, "f1": pytest.approx(2 / 3), "accuracy": 8 / 11}
    of_other = compute_scores(toys.tagging(positive="0"), SAID, GIVEN)
    assert of_other["precision"] == pytest.approx(5 / 7)
    assert compute_scores(toys.tagging(positive="", metric="accuracy"), SAID, GIVEN) == {"accuracy": 8 / 11}


def test_classification_is_scored_by_matthews_correlation_too() -> None:
    task = toys.classification(labels=("no", "yes"), positive="yes")
    scores = compute_scores(task, SAID, GIVEN)
    assert scores["matthews"] == pytest.approx((3 * 5 - 1 * 2) / math.sqrt(4 * 5 * 6 * 7))
    assert list(scores) == [name for name in NAMES if name != "pearson"]
    assert list(compute_scores(replace(task, positive=""), SAID, GIVEN)) == ["accuracy", "matthews"]


def test_regression_is_scored_by_pearsons_correlation() -> None:
    rng = np.random.default_rng(3)
    given = rng.normal(size=13)
    predicted = given + rng.normal(size=13)
    assert compute_scores(toys.regression(), predicted, given) == {
        "pearson": pytest.approx(pearsonr(predicted, given).statistic)
    }


def test_what_is_not_defined_is_zero() -> None:
    none = np.zeros_like(GIVEN)
    assert compute_scores(toys.tagging(), none, GIVEN) == {"precision": 0, "recall": 0, "f1": 0, "accuracy": 6 / 11}
    assert compute_scores(toys.classification(labels=("no", "yes")), none, GIVEN)["matthews"] == 0
    assert compute_scores(toys.regression(), np.ones(11), GIVEN.astype(float)) == {"pearson": 0.0}
